//! `quire status --since`: what a server did, from the samples of `serverStatus` that it keeps on disk.
//! The server is asked for them, or the files in its directory are read, while it runs or not.

use super::{Look, StatusOptions, line, names_of_columns};
use crate::call::print;
use crate::connect::Client;
use crate::exit::{FAILED, Failure};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use quire_commands::history;
use quire_document::extjson::{self, Format};
use quire_document::{Array, DocBuf, Value, doc};
use std::io::ErrorKind;
use std::path::Path;

/// The lines that are printed without `--count`.
const LINES: usize = 30;
/// The format of the times that are printed and read.
const TIME: &str = "%Y-%m-%d %H:%M:%S";
/// The width of the column of times.
const TIME_WIDTH: usize = 19;

/// The samples that are asked for, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Period {
    pub(super) since_ms: i64,
    pub(super) until_ms: i64,
}

impl Default for Period {
    fn default() -> Self {
        Period { since_ms: i64::MIN, until_ms: i64::MAX }
    }
}

/// Parses a moment: a time before now such as `90s`, `30m`, `2h` or `7d`, or a date with or without a
/// time, in UTC unless it has an offset.
pub(super) fn parse_moment(text: &str, now_ms: i64) -> Option<i64> {
    if let Some((at, unit)) = text.char_indices().last()
        && let Ok(number) = text[..at].parse::<u32>()
    {
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            _ => return None,
        };
        return Some(now_ms - i64::from(number) * seconds * 1000);
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at.as_millisecond());
    }
    let at = text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok()?;
    Some(at.timestamp().as_millisecond())
}

/// Returns the samples in the files of a server's directory.
pub(super) fn of_directory(path: &Path, period: Period) -> Result<Vec<DocBuf>, Failure> {
    let folder = path.join(history::FOLDER);
    history::read(&folder, period.since_ms, period.until_ms).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            let text = format!("there is no history in {}", path.display());
            Failure::new(FAILED, text)
        }
        _ => Failure::new(FAILED, format!("cannot read {}: {error}", folder.display())),
    })
}

/// Returns the samples of a running server.
pub(super) fn of_server(client: &mut Client, period: Period) -> Result<Vec<DocBuf>, Failure> {
    let stage = DocBuf::build(|out| {
        let mut operand = out.document("$statusHistory");
        if period.since_ms > i64::MIN {
            operand.append("since", Value::Date(period.since_ms));
        }
        if period.until_ms < i64::MAX {
            operand.append("until", Value::Date(period.until_ms));
        }
    });
    let cursor = doc! { "batchSize": (history::SAMPLES_MAX as i32) };
    let mut command = doc! { "aggregate": 1, "pipeline": [&stage], "cursor": &cursor };
    let (mut samples, mut batch) = (Vec::new(), "firstBatch");
    loop {
        let reply = client.call("admin", command, None);
        let reply = reply.map_err(|error| error.failure("cannot read the history"))?;
        let cursor = reply.get("cursor").and_then(|cursor| cursor.as_document());
        let cursor = cursor.unwrap_or_default();
        let rows = cursor.get(batch).and_then(|rows| rows.as_array()).unwrap_or_else(Array::empty);
        samples.extend(rows.iter().filter_map(|row| Some(row.as_document()?.to_owned())));
        match cursor.get("id") {
            Some(Value::Int64(id)) if id != 0 => {
                command = doc! { "getMore": id, "collection": "$cmd.aggregate" };
                batch = "nextBatch";
            }
            _ => return Ok(samples),
        }
    }
}

/// Prints samples: as JSON, one on each line, or as a line for the time between two of them.
pub(super) fn show(samples: Vec<DocBuf>, options: &StatusOptions) {
    let count = options.count.map_or(LINES, |count| usize::try_from(count).unwrap_or(usize::MAX));
    if options.json {
        let chosen = match options.count {
            None => samples,
            Some(_) => evenly(samples, count),
        };
        chosen.iter().for_each(|sample| print(&extjson::print(sample.as_doc(), Format::default())));
        return;
    }
    let looks: Vec<Look> = evenly(samples, count.saturating_add(1)).into_iter().map(Look).collect();
    if looks.is_empty() {
        print("There are no samples of this time.");
        return;
    }
    print(&format!("{:<TIME_WIDTH$}{}", "UTC", names_of_columns()));
    let start = Look(DocBuf::new());
    let pairs = looks.iter().zip(looks.iter().skip(1));
    // A single sample tells of the time since its server's start.
    let single = (looks.len() == 1).then_some((&start, &looks[0]));
    for (before, now) in pairs.chain(single) {
        print(&format!("{}{}", time(now), line(before, now)));
    }
}

/// Returns `count` of the samples at about the same distances, with the first and the last.
fn evenly(samples: Vec<DocBuf>, count: usize) -> Vec<DocBuf> {
    if samples.len() <= count || count < 2 {
        let skip = if count < 2 { samples.len().saturating_sub(count) } else { 0 };
        return samples.into_iter().skip(skip).collect();
    }
    let (gaps, last) = (count - 1, samples.len() - 1);
    let mut next = 0;
    let chosen = samples.into_iter().enumerate().filter(|(at, _)| {
        let is_due = *at == next * last / gaps;
        next += usize::from(is_due);
        is_due
    });
    chosen.map(|(_, sample)| sample).collect()
}

/// Returns the time of a sample.
fn time(look: &Look) -> String {
    let at = history::time_of(look.0.as_doc()).unwrap_or(0);
    let at = Timestamp::from_duration(SignedDuration::from_millis(at)).unwrap_or_default();
    at.strftime(TIME).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_spans_or_dates() {
        let now = 1_795_947_002_000;
        assert_eq!(parse_moment("90s", now), Some(now - 90_000));
        assert_eq!(parse_moment("2h", now), Some(now - 7_200_000));
        assert_eq!(parse_moment("7d", now), Some(now - 7 * 86_400_000));
        for text in ["2026-11-29T10:10:02Z", "2026-11-29 10:10:02", "2026-11-29T12:10:02+02:00"] {
            assert_eq!(parse_moment(text, 0), Some(now), "{text}");
        }
        assert_eq!(parse_moment("2026-11-29", 0), Some(now - 36_602_000));
        for wrong in ["", "h", "2x", "-2h", "yesterday", "2026-13-01"] {
            assert_eq!(parse_moment(wrong, now), None, "{wrong}");
        }
    }

    #[test]
    fn chosen_samples_lie_at_the_same_distances() {
        let samples = |count: i32| (0..count).map(|n| doc! { "n": n }).collect::<Vec<_>>();
        let chosen = |have, count| -> Vec<i32> {
            let chosen = evenly(samples(have), count);
            let number = |sample: &DocBuf| match sample.get("n") {
                Some(Value::Int32(number)) => number,
                _ => -1,
            };
            chosen.iter().map(number).collect()
        };
        assert_eq!(chosen(9, 3), [0, 4, 8]);
        assert_eq!(chosen(1000, 4), [0, 333, 666, 999]);
        assert_eq!(chosen(2, 5), [0, 1]);
        assert_eq!(chosen(5, 1), [4]);
        assert_eq!(chosen(5, 0), [0; 0]);
    }
}
