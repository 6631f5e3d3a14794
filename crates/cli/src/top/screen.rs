//! One screen of `quire top`: what has happened between two looks, as a table or as JSON.

use super::look::{Counted, Counts, Look};
use comfy_table::{CellAlignment, Table, presets};
use quire_advisor::findings::labels::number;
use quire_document::extjson::{self, Format};
use quire_document::{DocBuf, DocWriter};
use std::cmp::Ordering;
use std::fmt::Write;

/// The columns without the shape take this many letters.
const WIDTH_OF_NUMBERS: usize = 76;
/// The fewest letters of a shape that say anything.
const SHAPE_MIN: usize = 24;
/// The running operations that are shown.
const RUNNING: usize = 3;

/// The column by which the rows are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Time,
    Examined,
    Count,
}

impl Order {
    /// Returns the order with this name.
    pub(super) fn parse(name: &str) -> Option<Order> {
        match name {
            "time" => Some(Order::Time),
            "examined" => Some(Order::Examined),
            "count" => Some(Order::Count),
            _ => None,
        }
    }
}

/// What has happened between two looks.
pub(super) struct Screen<'l> {
    now: &'l Look,
    seconds: f64,
    /// Only what has run, in the order of the screen.
    rows: Vec<(&'l Counted, Counts)>,
}

impl<'l> Screen<'l> {
    /// Returns the difference of two looks.
    pub(super) fn between(before: &Look, now: &'l Look, order: Order) -> Screen<'l> {
        let seconds = (now.at - before.at).as_secs_f64().max(0.001);
        let rows = now.counts.iter().map(|(counted, counts)| {
            // A counter that has fallen began anew: the shape had left, or the counts were reset.
            let earlier =
                before.counts.get(counted).filter(|earlier| earlier.count <= counts.count);
            (counted, earlier.map_or_else(|| counts.clone(), |earlier| since(counts, earlier)))
        });
        let mut rows: Vec<(&Counted, Counts)> =
            rows.filter(|(_, counts)| counts.count > 0).collect();
        let weight = |counts: &Counts| match order {
            Order::Time => counts.micros,
            Order::Examined => counts.examined.unwrap_or(0),
            Order::Count => counts.count,
        };
        rows.sort_by(|left, right| {
            let order = weight(&right.1).cmp(&weight(&left.1));
            let order = order.then_with(|| right.1.count.cmp(&left.1.count));
            order.then_with(|| names(left.0).cmp(&names(right.0)))
        });
        Screen { now, seconds, rows }
    }

    /// Returns the text for a terminal of this width.
    pub(super) fn text(&self, limit: usize, width: usize) -> String {
        let mut text = self.heading();
        if let Some(missing) = self.now.origin.missing() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{missing}");
        }
        text.push('\n');
        if self.rows.is_empty() {
            text.push_str("nothing ran");
            return text;
        }
        let _ = write!(text, "{}", self.table(limit, width));
        let more = self.rows.len().saturating_sub(limit);
        if more > 0 {
            let _ = write!(text, "\n{more} more: --limit");
        }
        text
    }

    fn heading(&self) -> String {
        let sum = |of: fn(&Counts) -> u64| self.rows.iter().map(|(_, counts)| of(counts)).sum();
        let (count, micros): (u64, u64) = (sum(|counts| counts.count), sum(|counts| counts.micros));
        let mut text = format!(
            "{} statements a second, {} ms of work a second, {} s, from {}\n",
            number(count as f64 / self.seconds),
            number(micros as f64 / 1000.0 / self.seconds),
            number(self.seconds),
            self.now.origin.name()
        );
        match &self.now.running {
            None => text.push_str("running: not visible to this user\n"),
            Some(running) if running.is_empty() => text.push_str("running: nothing\n"),
            Some(running) => {
                let longest = running.iter().take(RUNNING).map(|one| {
                    format!("{} {} {:.1} s", plain(&one.what), plain(&one.namespace), one.seconds)
                });
                let longest: Vec<String> = longest.collect();
                let _ = writeln!(text, "running: {}, {}", running.len(), longest.join(", "));
            }
        }
        text
    }

    fn table(&self, limit: usize, width: usize) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        table.set_header([
            "ms/s",
            "mean ms",
            "count/s",
            "examined",
            "returned",
            "scans",
            "statement",
        ]);
        (0..6).for_each(|at| {
            if let Some(column) = table.column_mut(at) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        });
        let rest = width.saturating_sub(WIDTH_OF_NUMBERS).max(SHAPE_MIN);
        for (counted, counts) in self.rows.iter().take(limit) {
            let count = counts.count as f64;
            let each = |sum: Option<u64>| sum.map_or("-".into(), |sum| number(sum as f64 / count));
            let scans = counts.scans.map_or("-".into(), |scans| match scans {
                0 => String::new(),
                scans => format!("{:.0} %", scans as f64 / count * 100.0),
            });
            let statement = format!("{} {}", counted.what, counted.namespace);
            let statement = match counted.shape.is_empty() {
                true => statement,
                false => format!("{statement} {}", cut(&counted.shape, rest)),
            };
            table.add_row([
                number(counts.micros as f64 / 1000.0 / self.seconds),
                number(counts.micros as f64 / 1000.0 / count),
                number(count / self.seconds),
                each(counts.examined),
                each(counts.returned),
                scans,
                plain(&statement),
            ]);
        }
        table
    }

    /// Returns the screen as a document on one line (docs/tools.md).
    pub(super) fn json(&self, limit: usize) -> String {
        let document = DocBuf::build(|out| {
            out.append("version", 1).append("origin", self.now.origin.name());
            out.append("seconds", self.seconds);
            if let Some(missing) = self.now.origin.missing() {
                out.append("missing", missing);
            }
            let mut rows = out.array("statements");
            for (counted, counts) in self.rows.iter().take(limit) {
                write_row(counted, counts, &mut rows.document());
            }
            rows.finish();
            if let Some(running) = &self.now.running {
                let mut rows = out.array("running");
                for one in running {
                    let mut row = rows.document();
                    row.append("command", one.what.as_str()).append("ns", one.namespace.as_str());
                    row.append("seconds", one.seconds);
                }
            }
        });
        extjson::print(document.as_doc(), Format::default())
    }
}

fn write_row(counted: &Counted, counts: &Counts, out: &mut DocWriter<'_>) {
    let long = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    out.append("command", counted.what.as_str()).append("ns", counted.namespace.as_str());
    if !counted.shape.is_empty() {
        out.append("shape", counted.shape.as_str());
    }
    out.append("count", long(counts.count)).append("micros", long(counts.micros));
    for (name, value) in [
        ("docsExamined", counts.examined),
        ("returned", counts.returned),
        ("collectionScans", counts.scans),
    ] {
        if let Some(value) = value {
            out.append(name, long(value));
        }
    }
}

fn names(counted: &Counted) -> (&str, &str, &str) {
    (&counted.namespace, &counted.what, &counted.shape)
}

/// Returns what was counted since an earlier time.
fn since(counts: &Counts, earlier: &Counts) -> Counts {
    let grown = |now: Option<u64>, before: Option<u64>| {
        now.map(|now| now.saturating_sub(before.unwrap_or(0)))
    };
    Counts {
        count: counts.count - earlier.count,
        micros: counts.micros.saturating_sub(earlier.micros),
        examined: grown(counts.examined, earlier.examined),
        returned: grown(counts.returned, earlier.returned),
        scans: grown(counts.scans, earlier.scans),
    }
}

/// Returns at most `most` letters of a text.
fn cut(text: &str, most: usize) -> String {
    match text.chars().count().cmp(&most) {
        Ordering::Greater => {
            let kept: String = text.chars().take(most.saturating_sub(1)).collect();
            format!("{kept}…")
        }
        _ => text.to_owned(),
    }
}

/// Returns a text without control characters, which a name of the data may have: a terminal would
/// obey them.
fn plain(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::look::{Origin, Running};
    use super::*;
    use std::collections::HashMap;
    use std::time::{Duration, Instant};

    fn look(at: Instant, rows: &[(&str, u64, u64, u64)]) -> Look {
        let row = |(name, count, micros, examined): &(&str, u64, u64, u64)| {
            let counted = Counted {
                what: "find".into(),
                namespace: format!("shop.{name}"),
                shape: r#"{"filter":{"a":"?number"}}"#.into(),
            };
            let counts = Counts {
                count: *count,
                micros: *micros,
                examined: Some(*examined),
                returned: Some(*count),
                scans: Some(0),
            };
            (counted, counts)
        };
        let running =
            vec![Running { what: "find".into(), namespace: "a\u{1b}.b".into(), seconds: 2.0 }];
        Look {
            at,
            origin: Origin::Recorder,
            counts: rows.iter().map(row).collect::<HashMap<_, _>>(),
            running: Some(running),
        }
    }

    fn order_of(screen: &Screen<'_>) -> Vec<String> {
        screen.rows.iter().map(|(counted, _)| counted.namespace.clone()).collect()
    }

    #[test]
    fn rows_are_differences_in_the_wanted_order() {
        let begun = Instant::now();
        let before = look(begun, &[("a", 10, 1_000, 10), ("b", 500, 9, 9), ("c", 5, 5, 5)]);
        let rows =
            [("a", 12, 91_000, 30), ("b", 3, 40_000, 5_000), ("c", 5, 5, 5), ("d", 90, 1, 1)];
        let now = look(begun + Duration::from_secs(2), &rows);
        let by = |order| Screen::between(&before, &now, order);
        // Nothing ran on `c`; the counter of `b` began anew.
        assert_eq!(order_of(&by(Order::Time)), ["shop.a", "shop.b", "shop.d"]);
        assert_eq!(order_of(&by(Order::Examined)), ["shop.b", "shop.a", "shop.d"]);
        assert_eq!(order_of(&by(Order::Count)), ["shop.d", "shop.b", "shop.a"]);
        let text = by(Order::Time).text(2, 100);
        let line = text.lines().find(|line| line.contains("shop.a")).unwrap_or_default();
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(&cells[..5], ["45", "45", "1", "10", "1"], "{text}");
        assert!(
            text.contains("1 more: --limit") && text.contains("running: 1, find a\u{fffd}.b 2.0 s")
        );
        let json = by(Order::Time).json(1);
        let found = extjson::parse_doc(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
        let first = found.get("statements").and_then(|rows| rows.as_array()?.get(0)?.as_document());
        let micros = first.and_then(|first| first.get("micros")?.exact_i64());
        assert_eq!(micros, Some(90_000), "{json}");
    }

    #[test]
    fn long_shapes_are_cut() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("äöü", 3), "äöü");
    }
}
