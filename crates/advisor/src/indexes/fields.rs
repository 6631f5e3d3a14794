//! The paths that documents have, to find the indexes whose key no document has.

use quire_document::{Doc, Value};
use std::collections::BTreeMap;

/// The most different paths that are kept: data with values as names have any number.
const PATHS_MAX: usize = 5000;
/// The deepest path that is looked at.
const DEPTH_MAX: usize = 8;

/// How many documents have each path.
#[derive(Clone, Debug, Default)]
pub struct SeenPaths {
    documents: u64,
    paths: BTreeMap<String, u64>,
    is_full: bool,
}

impl SeenPaths {
    /// Adds a document.
    pub fn add(&mut self, document: Doc<'_>) {
        self.documents += 1;
        let mut found = Vec::new();
        collect(document, "", 1, &mut found);
        found.sort_unstable();
        found.dedup();
        for path in found {
            if let Some(count) = self.paths.get_mut(&path) {
                *count += 1;
            } else if self.paths.len() < PATHS_MAX {
                self.paths.insert(path, 1);
            } else {
                self.is_full = true;
            }
        }
    }

    /// Returns the number of documents.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Returns true if it is certain that no document has the path.
    pub fn lacks(&self, path: &str) -> bool {
        self.documents > 0 && !self.is_full && !self.paths.contains_key(&without_positions(path))
    }

    /// Returns the path that most resembles one that no document has: of those with the same parent,
    /// and at most two changed letters (a third of a short name).
    pub fn near(&self, path: &str) -> Option<&str> {
        let (parent, name) = split(path);
        let most = (name.chars().count() / 3).clamp(1, 2);
        let near = self.paths.iter().filter_map(|(known, count)| {
            let (other_parent, other) = split(known);
            let distance = distance(name, other);
            (other_parent == parent && distance <= most).then_some((distance, *count, known))
        });
        let best = near.min_by(|left, right| left.0.cmp(&right.0).then(right.1.cmp(&left.1)));
        best.map(|(_, _, path)| path.as_str())
    }
}

fn collect(document: Doc<'_>, below: &str, depth: usize, found: &mut Vec<String>) {
    for (name, value) in document.fields() {
        let path = if below.is_empty() { name.to_owned() } else { format!("{below}.{name}") };
        collect_value(value, &path, depth, found);
        found.push(path);
    }
}

fn collect_value(value: Value<'_>, path: &str, depth: usize, found: &mut Vec<String>) {
    if depth >= DEPTH_MAX {
        return;
    }
    match value {
        Value::Document(inner) => collect(inner, path, depth + 1, found),
        Value::Array(items) => {
            items.iter().for_each(|item| collect_value(item, path, depth + 1, found));
        }
        _ => {}
    }
}

/// Returns the path without positions in arrays: `a.0.b` finds what `a.b` finds.
fn without_positions(path: &str) -> String {
    let is_name = |part: &&str| part.parse::<u32>().is_err();
    path.split('.').filter(is_name).collect::<Vec<&str>>().join(".")
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}

/// Returns the number of letters to insert, remove, replace or exchange with their neighbours
/// (Damerau and Levenshtein, without overlapping exchanges).
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.to_lowercase().chars().collect();
    let right: Vec<char> = right.to_lowercase().chars().collect();
    let (mut older, mut old): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=right.len()).collect());
    for (at, letter) in left.iter().enumerate() {
        let mut new = vec![at + 1];
        for (to, other) in right.iter().enumerate() {
            let get = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(usize::MAX / 2);
            let replaced = get(&old, to) + usize::from(letter != other);
            let mut best = replaced.min(get(&old, to + 1) + 1).min(get(&new, to) + 1);
            let exchanged = at > 0
                && to > 0
                && left.get(at - 1) == Some(other)
                && right.get(to - 1) == Some(letter);
            if exchanged {
                best = best.min(get(&older, to - 1) + 1);
            }
            new.push(best);
        }
        older = std::mem::replace(&mut old, new);
    }
    old.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    #[test]
    fn a_misspelt_field_is_found() {
        let mut seen = SeenPaths::default();
        seen.add(
            doc! { "sensor_od": "SENSOR-1", "created_time": "x", "a": { "town": 1 } }.as_doc(),
        );
        seen.add(doc! { "sensor_od": "SENSOR-2", "list": [{ "b": 1 }] }.as_doc());
        assert!(seen.lacks("sensor_id") && !seen.lacks("list.0.b") && !seen.lacks("a.town"));
        assert_eq!(seen.near("sensor_id"), Some("sensor_od"));
        assert_eq!(seen.near("a.twon"), Some("a.town"));
        assert_eq!(seen.near("town"), None, "another parent");
        assert_eq!(seen.near("created_by"), None);
    }

    #[test]
    fn distances_count_letters() {
        let cases = [
            ("abc", "abc", 0),
            ("abc", "abd", 1),
            ("abc", "acb", 1),
            ("abc", "ab", 1),
            ("", "xy", 2),
            ("O_ENTRY_ID", "o_entry_d", 1),
            ("kitten", "sitting", 3),
        ];
        for (left, right, expected) in cases {
            assert_eq!(distance(left, right), expected, "{left} {right}");
        }
    }
}
