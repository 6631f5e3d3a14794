//! Aggregations that run again with the same values while nothing was written to the collections that
//! they read.

use super::Entry;
use crate::workload::Kind;
use crate::workload::parts;
use quire_document::DocBuf;
use std::collections::{BTreeMap, HashMap};

/// The least number of repetitions that are reported.
const REPEATS_MIN: u64 = 3;

/// An aggregation that was repeated.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeat {
    /// The collection that it begins with.
    pub namespace: String,
    /// The shape of the aggregation.
    pub shape: DocBuf,
    /// How often it ran, with any values.
    pub runs: u64,
    /// How often it ran with the values of an earlier run and nothing was written in between.
    pub repeats: u64,
    /// The microseconds of the repetitions.
    pub micros: u64,
}

/// Returns the repeated aggregations of a trace, those that took longest first.
pub fn repeats(entries: &[Entry]) -> Vec<Repeat> {
    let mut changed: HashMap<&str, usize> = HashMap::new();
    let mut last: HashMap<u64, usize> = HashMap::new();
    let mut found: BTreeMap<(&str, &[u8]), Repeat> = BTreeMap::new();
    for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| !entry.failed) {
        if entry.writes() {
            changed.insert(&entry.namespace, at);
        }
        if entry.kind != Some(Kind::Aggregate) || entry.statement == 0 {
            continue;
        }
        let key = (&*entry.namespace, entry.shape.as_bytes());
        let repeat = found.entry(key).or_insert_with(|| Repeat {
            namespace: entry.namespace.clone(),
            shape: entry.shape.clone(),
            runs: 0,
            repeats: 0,
            micros: 0,
        });
        repeat.runs += 1;
        let before = last.insert(entry.statement, at);
        let written = read_by(entry).iter().filter_map(|name| changed.get(name.as_str())).max();
        if before.is_some_and(|before| written.is_none_or(|written| *written < before)) {
            repeat.repeats += 1;
            repeat.micros += entry.micros;
        }
    }
    let mut repeats: Vec<Repeat> = found.into_values().collect();
    repeats.retain(|repeat| repeat.repeats >= REPEATS_MIN);
    repeats.sort_by_key(|repeat| std::cmp::Reverse(repeat.micros));
    repeats
}

/// Returns the collections that an aggregate reads.
fn read_by(entry: &Entry) -> Vec<String> {
    let db = entry.namespace.split('.').next().unwrap_or_default();
    let joined = parts::of(Kind::Aggregate, entry.shape.as_doc()).joined;
    let joined = joined.into_iter().map(|join| format!("{db}.{}", join.from));
    joined.chain([entry.namespace.clone()]).collect()
}
