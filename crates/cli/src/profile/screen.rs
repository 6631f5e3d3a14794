//! A profile for people: a table for each collection.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use indicatif::{HumanBytes, HumanCount};
use quire_advisor::profile::PathProfile;
use quire_advisor::workload::ShapeUse;
use quire_advisor::{
    CollectionProfile, DatabaseProfile, Extent, Reference, SourceCollection, Workload,
};
use quire_document::{DocBuf, extjson};
use std::fmt::Write;

/// The smallest correlation of length and age for which the growth of an array is shown.
const CORRELATION_MIN: f64 = 0.3;

/// Returns the text.
pub(super) fn screen(database: &str, profile: &DatabaseProfile) -> String {
    let mut text =
        format!("{database}: {}", plural(profile.collections.len() as u64, "collection"));
    if let Extent::Sample(size) = profile.extent {
        let _ = write!(text, ", at most {} random documents of each", HumanCount(size));
    }
    text.push('\n');
    for (collection, found) in &profile.collections {
        text.push('\n');
        text.push_str(&heading(collection, found));
        if found.documents() > 0 {
            let of_this = |reference: &&Reference| reference.from == collection.name;
            let references: Vec<&Reference> = profile.references.iter().filter(of_this).collect();
            let _ = writeln!(text, "{}", table(found, &references));
        }
        if found.left_out() > 0 {
            let _ = writeln!(text, "{} fields were left out: too many paths", found.left_out());
        }
    }
    text
}

/// The number of shapes that are shown.
const SHAPES: usize = 20;

/// Returns what was asked of a database, by shape: those that took most time.
pub(super) fn requests(database: &str, workload: &Workload) -> String {
    let prefix = format!("{database}.");
    let of_this = |one: &&ShapeUse| one.namespace.starts_with(&prefix);
    let mut shapes: Vec<&ShapeUse> = workload.shapes.iter().filter(of_this).collect();
    shapes.sort_by_key(|one| std::cmp::Reverse(one.measures.total_micros.sum));
    let seconds = (workload.ends_ms - workload.begins_ms) / 1000;
    let (count, seconds) = (shapes.len() as u64, seconds.unsigned_abs());
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["", "statements", "ms", "examined", "returned", "shape"]);
    for one in shapes.iter().take(SHAPES) {
        let measures = &one.measures;
        let mean = |sum: u64| HumanCount(sum / measures.count.max(1)).to_string();
        let shape = DocBuf::build(|out| {
            for (name, value) in one.shape.as_doc().fields() {
                if !["cmdNs", "command"].contains(&name) {
                    out.append(name, value);
                }
            }
        });
        table.add_row([
            format!("{} {}", one.kind.name(), one.namespace.replacen(&prefix, "", 1)),
            HumanCount(measures.count).to_string(),
            HumanCount(measures.total_micros.sum / 1000).to_string(),
            mean(measures.docs_examined.sum),
            mean(measures.returned.sum),
            extjson::print(shape.as_doc(), extjson::Format::default()),
        ]);
    }
    let shown = plural(count, "shape");
    format!("{shown} of statements in {} s, by time:\n{table}\n", HumanCount(seconds))
}

fn heading(collection: &SourceCollection, found: &CollectionProfile) -> String {
    let read = found.documents();
    let of = collection.documents.filter(|documents| *documents > read);
    let of = of.map_or_else(String::new, |documents| format!(" of {}", HumanCount(documents)));
    let mut text = format!("{}: {}{of} read", collection.name, plural(read, "document"));
    if read > 0 {
        let at = |rank| HumanBytes(found.size_at(rank) as u64);
        let (half, most) = (at(0.5), at(1.0));
        let _ = write!(text, ", {half} at the median, {most} at most");
    }
    let indexes = collection.indexes.len() as u64;
    let (sets, others) = found.field_sets();
    let sets = sets.len() as u64 + u64::from(others > 0);
    let _ = writeln!(text, "; {}, {}", index_count(indexes), plural(sets, "set of fields"));
    text
}

fn index_count(count: u64) -> String {
    if count == 1 { "1 index".to_owned() } else { format!("{count} indexes") }
}

/// Returns a count with its noun in the right number; of "set of fields" the first word counts.
fn plural(count: u64, noun: &str) -> String {
    match (count, noun.split_once(' ')) {
        (1, _) => format!("1 {noun}"),
        (_, Some((first, rest))) => format!("{} {first}s {rest}", HumanCount(count)),
        (_, None) => format!("{} {noun}s", HumanCount(count)),
    }
}

fn table(found: &CollectionProfile, references: &[&Reference]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["path", "present", "types", "distinct", "bytes", ""]);
    found.for_each_path(&mut |path, values, parent| {
        let presence = match path.ends_with("[]") || parent.names().is_some() {
            true => String::new(),
            false => percent(values.present() as f64 / parent.of_type("object").max(1) as f64),
        };
        let distinct = match values.extremes() {
            Some(_) => HumanCount(values.distinct()).to_string(),
            None => String::new(),
        };
        let bytes = percent(values.bytes() as f64 / found.bytes().max(1.0));
        let notes = notes(path, values, references).join("; ");
        table.add_row([path.to_owned(), presence, types(values), distinct, bytes, notes]);
    });
    for place in [1, 3, 4] {
        if let Some(column) = table.column_mut(place) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Returns the types, the most frequent first, with their shares if there are several.
fn types(values: &PathProfile) -> String {
    let mut types: Vec<(&str, u64)> = values.types().collect();
    types.sort_by(|left, right| right.1.cmp(&left.1).then(left.0.cmp(right.0)));
    if let [(only, _)] = types.as_slice() {
        return (*only).to_owned();
    }
    let share = |count: u64| percent(count as f64 / values.present().max(1) as f64);
    let shown = types.iter().map(|(name, count)| format!("{name} {}", share(*count)));
    shown.collect::<Vec<_>>().join(", ")
}

fn notes(path: &str, values: &PathProfile, references: &[&Reference]) -> Vec<String> {
    let mut notes = Vec::new();
    for reference in references.iter().filter(|reference| reference.path == path.replace("[]", ""))
    {
        if path.contains("[]") == reference.in_array {
            notes.push(reference_note(reference));
        }
    }
    if let Some(lengths) = values.lengths() {
        let at = |rank| HumanCount(lengths.at(rank).round() as u64);
        let mut note = format!("{} elements at the median, {} at most", at(0.5), at(1.0));
        let growth = lengths.growth().filter(|growth| growth.correlation > CORRELATION_MIN);
        if let Some(growth) = growth.filter(|growth| growth.per_day > 0.0) {
            let _ = write!(note, ", grows by {:.2} a day", growth.per_day);
        }
        notes.push(note);
    }
    if let Some(names) = values.names() {
        notes.push(format!("about {} field names are data", HumanCount(names)));
    }
    notes
}

fn reference_note(reference: &Reference) -> String {
    let [half, .., most] = reference.fan_out;
    let mut note = format!("-> {}.{}", reference.to, reference.field);
    if half != most || most > 1 {
        let _ = write!(note, ", {half} for one at the median, {most} at most");
    }
    if reference.found < reference.looked_up {
        let missing = reference.looked_up - reference.found;
        let _ = write!(note, ", {missing} of {} values do not exist", reference.looked_up);
    }
    note
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        whole if whole >= 99.95 => "100 %".to_owned(),
        part if (10.0..99.0).contains(&part) => format!("{part:.0} %"),
        part if part < 0.1 => "<0.1 %".to_owned(),
        part => format!("{part:.1} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_shares_read_well() {
        assert_eq!(plural(1, "set of fields"), "1 set of fields");
        assert_eq!(plural(1200, "document"), "1,200 documents");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!((percent(0.995).as_str(), percent(0.5).as_str()), ("99.5 %", "50 %"));
        assert_eq!(percent(0.0001), "<0.1 %");
        assert_eq!(percent(0.051), "5.1 %");
    }
}
