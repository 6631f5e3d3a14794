//! Copies that the application keeps by hand: an update of a document, then on the same session an
//! `updateMany` of another collection by the value with which the document was found.

use super::Entry;
use crate::workload::Kind;
use crate::workload::parts;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// The statements of a session that are looked back at.
const WINDOW: usize = 8;
/// The microseconds that are looked back.
const WINDOW_MICROS: u64 = 10_000_000;
/// The least number of pairs and of distinct values.
const MATCHES_MIN: u64 = 3;
/// The least share of the later updates.
const SHARE_MIN: f64 = 0.5;

/// A copy that the application keeps by hand.
#[derive(Clone, Debug, PartialEq)]
pub struct HandCopy {
    /// The collection that is changed first.
    pub from: String,
    /// The path by which its document is found.
    pub from_path: String,
    /// The collection with the copies.
    pub to: String,
    /// The path by which the copies are found.
    pub to_path: String,
    /// The paths that the first update writes.
    pub written_from: Vec<String>,
    /// The paths that the second update writes.
    pub written_to: Vec<String>,
    /// The pairs that were seen.
    pub matches: u64,
    /// Their share of all updates of many documents by `to_path`.
    pub share: f64,
}

#[derive(Default)]
struct Pair {
    matches: u64,
    distinct: BTreeSet<i64>,
    written_from: BTreeSet<String>,
    written_to: BTreeSet<String>,
}

/// Returns the copies that a trace shows, those with most pairs first.
pub fn hand_copies(entries: &[Entry]) -> Vec<HandCopy> {
    let mut sessions: HashMap<u64, VecDeque<&Entry>> = HashMap::new();
    let mut pairs: BTreeMap<(&str, &str, &str, &str), Pair> = BTreeMap::new();
    let mut all: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| updates(entry)) {
        let window = sessions.entry(entry.session).or_default();
        if entry.kind == Some(Kind::Update) && is_multi(entry) {
            for asked in entry.asked.iter().filter(|asked| asked.hashes.len() == 1) {
                *all.entry((&entry.namespace, &asked.path)).or_default() += 1;
                let hash = asked.hashes[0];
                let Some((first, path)) = first_update(window, entry, hash) else { continue };
                let key = (&*first.namespace, path, &*entry.namespace, &*asked.path);
                let pair = pairs.entry(key).or_default();
                pair.matches += 1;
                pair.distinct.insert(hash);
                pair.written_from.extend(written(first));
                pair.written_to.extend(written(entry));
            }
        }
        window.push_back(entry);
        if window.len() > WINDOW {
            window.pop_front();
        }
    }
    let copy = |((from, from_path, to, to_path), pair): (_, Pair)| {
        let of_all = all.get(&(to, to_path)).copied().unwrap_or(0).max(1);
        HandCopy {
            from: String::from(from),
            from_path: String::from(from_path),
            to: String::from(to),
            to_path: String::from(to_path),
            written_from: pair.written_from.into_iter().collect(),
            written_to: pair.written_to.into_iter().collect(),
            matches: pair.matches,
            share: pair.matches as f64 / of_all as f64,
        }
    };
    let counts = |(_, pair): &(_, Pair)| {
        pair.matches >= MATCHES_MIN && pair.distinct.len() as u64 >= MATCHES_MIN
    };
    let mut copies: Vec<HandCopy> = pairs.into_iter().filter(counts).map(copy).collect();
    copies.retain(|copy| copy.share >= SHARE_MIN);
    copies.sort_by_key(|copy| std::cmp::Reverse(copy.matches));
    copies
}

fn updates(entry: &Entry) -> bool {
    !entry.failed && matches!(entry.kind, Some(Kind::Update | Kind::FindAndModify))
}

fn is_multi(entry: &Entry) -> bool {
    entry.shape.get("multi").and_then(|multi| multi.as_bool()) == Some(true)
}

/// Returns the latest update of one document of another collection that was found by this value, and
/// the path of the value.
fn first_update<'t>(
    window: &VecDeque<&'t Entry>,
    entry: &Entry,
    hash: i64,
) -> Option<(&'t Entry, &'t str)> {
    let candidates = window.iter().rev().filter(|first| {
        let age = entry.at_micros.saturating_sub(first.at_micros);
        first.namespace != entry.namespace && !is_multi(first) && age <= WINDOW_MICROS
    });
    candidates.copied().find_map(|first| {
        let asked = first.asked.iter().find(|asked| asked.hashes == [hash])?;
        Some((first, asked.path.as_str()))
    })
}

fn written(entry: &Entry) -> impl Iterator<Item = String> {
    let kind = entry.kind.unwrap_or(Kind::Update);
    parts::of(kind, entry.shape.as_doc()).written.into_iter().map(|written| written.path)
}
