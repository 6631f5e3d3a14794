//! Joins that the application makes itself: on one session, values that one statement returned come
//! back as equality or `$in` of a later one.
//!
//! Two things look like a join and are none. A value that the application knew before, because it
//! had asked with it itself, did not come from the documents; such values do not count. And values
//! of a small domain, such as states, agree by chance; so each match is compared with the documents
//! that the same statement returned another time, and an edge whose values are found there nearly as
//! often is not reported.

use super::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// The statements of a session that are looked back at.
const WINDOW: usize = 16;
/// The microseconds that are looked back.
const WINDOW_MICROS: u64 = 10_000_000;
/// The least number of statements and of distinct values that make an edge.
const MATCHES_MIN: u64 = 5;
/// The least share of the asking statements.
const SHARE_MIN: f64 = 0.5;
/// The greatest share of the matches that may also agree with another result.
const CHANCE_MAX: f64 = 0.5;

/// A join that the application makes itself.
#[derive(Clone, Debug, PartialEq)]
pub struct AppJoin {
    /// The collection whose documents gave the values.
    pub from: String,
    /// The path of the values there.
    pub from_path: String,
    /// The collection that was asked with them.
    pub to: String,
    /// The path that was compared with them.
    pub to_path: String,
    /// The statements on `to_path` whose values came from there.
    pub matches: u64,
    /// Their share of all statements on `to_path`.
    pub share: f64,
    /// The values of `from_path` that were looked up for one statement on `from`, on average.
    pub fan_out: f64,
    /// The statements on `to_path` for one statement on `from`: 1 for an `$in`, more for a loop.
    pub round_trips: f64,
}

/// An edge while it is counted.
#[derive(Default)]
struct Edge {
    matches: u64,
    /// Matches that agree with another result of the same statement, too.
    by_chance: u64,
    values: u64,
    distinct: BTreeSet<i64>,
    /// The statements that gave values, by position in the trace.
    givers: BTreeSet<usize>,
}

type Key<'t> = (&'t str, &'t str, &'t str, &'t str);

/// Returns the joins of a trace, those with most statements first.
pub fn app_joins(entries: &[Entry]) -> Vec<AppJoin> {
    let mut sessions: HashMap<u64, VecDeque<usize>> = HashMap::new();
    let mut edges: BTreeMap<Key<'_>, Edge> = BTreeMap::new();
    let mut asked: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let others = next_results(entries);
    for (at, entry) in entries.iter().enumerate() {
        let window = sessions.entry(entry.session).or_default();
        if entry.reads() && !entry.failed {
            for one in entry.asked.iter().filter(|one| !one.hashes.is_empty()) {
                *asked.entry((&entry.namespace, &one.path)).or_default() += 1;
                let Some(giver) = giver(entries, window, entry, &one.hashes) else { continue };
                note(entries, (giver, others[giver]), (entry, one), &mut edges);
            }
        }
        window.push_back(at);
        if window.len() > WINDOW {
            window.pop_front();
        }
    }
    chosen(edges, &asked)
}

/// Returns for each statement another one of the same shape: the next, or the first for the last.
fn next_results(entries: &[Entry]) -> Vec<Option<usize>> {
    let mut of_shape: HashMap<(&str, &[u8]), Vec<usize>> = HashMap::new();
    for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| !entry.returned.is_empty()) {
        of_shape.entry((&entry.namespace, entry.shape.as_bytes())).or_default().push(at);
    }
    let mut next = vec![None; entries.len()];
    for places in of_shape.values() {
        for (at, place) in places.iter().enumerate() {
            let other = places.get(at + 1).or(places.first()).filter(|other| *other != place);
            next[*place] = other.copied();
        }
    }
    next
}

/// Returns the latest statement in the window that returned all of the values, none of which was
/// asked with before its end.
fn giver(
    entries: &[Entry],
    window: &VecDeque<usize>,
    entry: &Entry,
    hashes: &[i64],
) -> Option<usize> {
    let recent =
        |at: &&usize| entry.at_micros.saturating_sub(entries[**at].at_micros) <= WINDOW_MICROS;
    let gives = |at: &&usize| {
        let returned = &entries[**at].returned;
        returned.iter().any(|one| hashes.iter().all(|hash| one.hashes.contains(hash)))
    };
    let found = *window.iter().rev().filter(recent).find(gives)?;
    let known_before = window
        .iter()
        .take_while(|at| **at <= found)
        .any(|at| hashes.iter().any(|hash| entries[*at].asks(*hash)));
    (!known_before).then_some(found)
}

fn note<'t>(
    entries: &'t [Entry],
    (giver, other): (usize, Option<usize>),
    (entry, asked): (&'t Entry, &'t super::PathHashes),
    edges: &mut BTreeMap<Key<'t>, Edge>,
) {
    let from = &entries[giver];
    let contains =
        |one: &super::PathHashes| asked.hashes.iter().all(|hash| one.hashes.contains(hash));
    for one in from.returned.iter().filter(|one| contains(one)) {
        if from.namespace == entry.namespace && one.path == asked.path {
            continue;
        }
        let key = (&*from.namespace, &*one.path, &*entry.namespace, &*asked.path);
        let edge = edges.entry(key).or_default();
        edge.matches += 1;
        edge.values += asked.hashes.len() as u64;
        edge.distinct.extend(&asked.hashes);
        edge.givers.insert(giver);
        let elsewhere = other
            .and_then(|other| entries[other].returned.iter().find(|other| other.path == one.path));
        edge.by_chance += u64::from(elsewhere.is_some_and(contains));
    }
}

/// Returns the edges that count, for each asked path the one with most matches.
fn chosen(edges: BTreeMap<Key<'_>, Edge>, asked: &BTreeMap<(&str, &str), u64>) -> Vec<AppJoin> {
    let mut best: BTreeMap<(String, String), AppJoin> = BTreeMap::new();
    for ((from, from_path, to, to_path), edge) in edges {
        let all = asked.get(&(to, to_path)).copied().unwrap_or(0).max(edge.matches);
        let share = edge.matches as f64 / all as f64;
        let is_chance = edge.by_chance as f64 > CHANCE_MAX * edge.matches as f64;
        let is_rare = edge.matches < MATCHES_MIN || (edge.distinct.len() as u64) < MATCHES_MIN;
        if is_rare || is_chance || share < SHARE_MIN {
            continue;
        }
        let givers = edge.givers.len().max(1) as f64;
        let join = AppJoin {
            from: from.to_owned(),
            from_path: from_path.to_owned(),
            to: to.to_owned(),
            to_path: to_path.to_owned(),
            matches: edge.matches,
            share,
            fan_out: edge.values as f64 / givers,
            round_trips: edge.matches as f64 / givers,
        };
        let place = (join.to.clone(), join.to_path.clone());
        match best.get(&place) {
            Some(known) if known.matches >= join.matches => {}
            _ => drop(best.insert(place, join)),
        }
    }
    let mut joins: Vec<AppJoin> = best.into_values().collect();
    joins.sort_by_key(|join| std::cmp::Reverse(join.matches));
    joins
}
