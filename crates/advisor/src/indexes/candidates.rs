//! The indexes that may serve requests. The fields of a key come in the order equality, sort, range
//! (manual: "The ESR Guideline"); also equality, range, sort, which is better where the range finds
//! far fewer documents than the equalities. The laboratory decides which of them is built.

use crate::indexes::conditions::{Asked, Bound, Condition};
use crate::indexes::definition::{IndexDefinition, KeyField};
use quire_document::{DocBuf, ValueBuf};
use std::collections::HashMap;

/// The share of the requests of a collection that must have a constant for a partial index on it.
const CONSTANT_SHARE_MIN: f64 = 0.95;
/// The most fields of a key that is proposed.
const FIELDS_MAX: usize = 8;
/// The most candidates of a collection.
pub const CANDIDATES_MAX: usize = 32;

/// A request and how often it runs.
#[derive(Clone, Debug)]
pub struct WeighedRequest {
    /// What it asks.
    pub asked: Asked,
    /// How often it runs.
    pub count: f64,
}

/// An index that may serve requests.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexCandidate {
    /// The definition of the index.
    pub definition: IndexDefinition,
    /// Why it is a candidate: `E: user_id, status; S: created_at; R: amount`.
    pub reason: String,
    /// The positions of the requests for which it was made.
    pub requests: Vec<usize>,
    /// The number of fields at the beginning of the key that requests bind to values.
    equal: usize,
}

/// The fields of one alternative of a request.
struct Fields {
    equal: Vec<String>,
    sort: Vec<KeyField>,
    ranges: Vec<String>,
    covered: Vec<String>,
}

/// Returns the candidates of the requests of one collection, the most useful first, without those that
/// an existing index makes superfluous.
pub fn candidates(
    requests: &[WeighedRequest],
    existing: &[IndexDefinition],
) -> Vec<IndexCandidate> {
    let mut found = Found { all: Vec::new(), existing };
    let uses = equality_uses(requests);
    let constant = common_constant(requests);
    for (at, request) in requests.iter().enumerate() {
        for conditions in &request.asked.alternatives {
            let fields = Fields::of(&request.asked, conditions, &uses);
            fields.add_candidates(&request.asked, at, constant.as_ref(), &mut found);
        }
    }
    found.merge();
    let weight = |candidate: &IndexCandidate| -> f64 {
        candidate.requests.iter().filter_map(|at| requests.get(*at)).map(|r| r.count).sum()
    };
    let mut all = found.all;
    all.sort_by(|left, right| weight(right).total_cmp(&weight(left)));
    all.truncate(CANDIDATES_MAX);
    all
}

/// Returns the candidate by which a pipeline looks up documents of another collection.
pub fn joined_candidate(
    field: &str,
    requests: Vec<usize>,
    existing: &[IndexDefinition],
) -> Option<IndexCandidate> {
    let definition =
        IndexDefinition { key: vec![(field.to_owned(), false)], ..IndexDefinition::default() };
    let is_served = existing.iter().any(|index| definition.is_prefix_of(index));
    let reason = format!("looked up by: {field}");
    (!is_served).then_some(IndexCandidate { definition, reason, requests, equal: 1 })
}

/// Returns how many executions bind each path to a value.
fn equality_uses(requests: &[WeighedRequest]) -> HashMap<&str, f64> {
    let mut uses = HashMap::new();
    for request in requests {
        for condition in request.asked.alternatives.iter().flatten() {
            if condition.bound != Bound::Range {
                *uses.entry(condition.path.as_str()).or_insert(0.0) += request.count;
            }
        }
    }
    uses
}

/// Returns a path with the value to which nearly all requests bind it.
fn common_constant(requests: &[WeighedRequest]) -> Option<(String, ValueBuf)> {
    let asking = || requests.iter().filter(|request| request.asked.can_use_index());
    let all: f64 = asking().map(|request| request.count).sum();
    let conditions = asking().flat_map(|request| request.asked.alternatives.iter().flatten());
    let mut paths: Vec<&str> = conditions.map(|condition| condition.path.as_str()).collect();
    paths.sort_unstable();
    paths.dedup();
    // One request says nothing about what others have in common.
    if asking().count() < 2 {
        return None;
    }
    paths.into_iter().find_map(|path| {
        let value = asking().find_map(|request| request.asked.constant(path))?;
        let same = asking().filter(|request| request.asked.constant(path) == Some(value));
        let share = same.map(|request| request.count).sum::<f64>() / all;
        (share > CONSTANT_SHARE_MIN && !value.as_value().is_nullish())
            .then(|| (path.to_owned(), value.clone()))
    })
}

impl Fields {
    fn of(asked: &Asked, conditions: &[Condition], uses: &HashMap<&str, f64>) -> Fields {
        let paths = |is_wanted: fn(&Bound) -> bool| {
            let wanted = conditions.iter().filter(move |condition| is_wanted(&condition.bound));
            wanted.map(|condition| condition.path.clone())
        };
        // Single values before lists, then paths that other requests bind as well, so that requests
        // share a prefix.
        let use_of = |path: &String| uses.get(path.as_str()).copied().unwrap_or(0.0);
        let mut single: Vec<String> = paths(|bound| matches!(bound, Bound::Value(_))).collect();
        single.sort_by(|left, right| use_of(right).total_cmp(&use_of(left)));
        let single_count = single.len();
        single.extend(paths(|bound| matches!(bound, Bound::Values)));
        single.retain(|path| path != "_id" || single_count > 1);
        let sort: Vec<KeyField> =
            asked.sort.iter().filter(|(path, _)| !single.contains(path)).cloned().collect();
        let is_sorted = |path: &String| sort.iter().any(|(sorted, _)| sorted == path);
        let ranges: Vec<String> = paths(|bound| matches!(bound, Bound::Range))
            .filter(|path| !single.contains(path) && !is_sorted(path))
            .collect();
        let is_known =
            |path: &String| single.contains(path) || is_sorted(path) || ranges.contains(path);
        let covered = asked.returned.iter().flatten().filter(|path| !is_known(path)).cloned();
        Fields { covered: covered.collect(), equal: single, sort, ranges }
    }

    fn add_candidates(
        &self,
        asked: &Asked,
        request: usize,
        constant: Option<&(String, ValueBuf)>,
        found: &mut Found<'_>,
    ) {
        let ascending = |paths: &[String]| -> Vec<KeyField> {
            paths.iter().map(|path| (path.clone(), false)).collect()
        };
        let (equal, sort, ranges) =
            (ascending(&self.equal), self.sort.clone(), ascending(&self.ranges));
        let first_range = ranges.get(..1).unwrap_or_default().to_vec();
        let mut keys = vec![
            [equal.clone(), sort.clone(), ranges.clone()].concat(),
            [equal.clone(), first_range.clone(), sort.clone()].concat(),
            [equal.clone(), first_range].concat(),
            [equal.clone(), sort.clone()].concat(),
            equal.clone(),
        ];
        // A list bounds the scan to points, which are not in the order of the sort.
        if asked.returned.is_some() && !self.covered.is_empty() {
            keys.push([equal, sort, ranges, ascending(&self.covered)].concat());
        }
        keys.retain(|key| !key.is_empty() && key.len() <= FIELDS_MAX);
        for key in keys {
            let definition =
                IndexDefinition { key, collation: asked.collation.clone(), partial: None };
            if let Some((path, value)) = constant
                && asked.constant(path) == Some(value)
            {
                let equal = self.equal.len().saturating_sub(1);
                found.add(definition.partial_on(path, value), self.reason(), request, equal);
            }
            found.add(Some(definition), self.reason(), request, self.equal.len());
        }
    }

    fn reason(&self) -> String {
        let sorted = self.sort.iter().map(|(path, descending)| match descending {
            true => format!("{path} descending"),
            false => path.clone(),
        });
        let parts =
            [("E", self.equal.clone()), ("S", sorted.collect()), ("R", self.ranges.clone())];
        let parts = parts.into_iter().filter(|(_, paths)| !paths.is_empty());
        let parts = parts.map(|(name, paths)| format!("{name}: {}", paths.join(", ")));
        parts.collect::<Vec<String>>().join("; ")
    }
}

impl IndexDefinition {
    /// Returns the index of the documents with a value, without the path of the value; `None` if no
    /// other path is left.
    fn partial_on(&self, path: &str, value: &ValueBuf) -> Option<IndexDefinition> {
        let key: Vec<KeyField> = self.key.iter().filter(|(own, _)| own != path).cloned().collect();
        let partial = Some(DocBuf::build(|out| {
            out.append(path, value);
        }));
        let is_useful = !key.is_empty() && key.len() < self.key.len();
        is_useful.then(|| IndexDefinition { key, partial, collation: self.collation.clone() })
    }
}

/// The candidates so far.
struct Found<'e> {
    all: Vec<IndexCandidate>,
    existing: &'e [IndexDefinition],
}

impl Found<'_> {
    fn add(
        &mut self,
        definition: Option<IndexDefinition>,
        reason: String,
        request: usize,
        equal: usize,
    ) {
        let Some(definition) = definition else { return };
        let is_served = self.existing.iter().any(|index| definition.is_prefix_of(index));
        let is_id = definition.key.first().is_some_and(|(path, _)| path == "_id");
        if is_served || is_id && definition.key.len() == 1 {
            return;
        }
        match self.all.iter_mut().find(|known| known.definition == definition) {
            Some(known) if known.requests.contains(&request) => {}
            Some(known) => known.requests.push(request),
            None => {
                self.all.push(IndexCandidate {
                    definition,
                    reason,
                    requests: vec![request],
                    equal,
                });
            }
        }
    }

    /// Adds candidates that serve two requests: the fields of the shorter key first, if the longer one
    /// binds all of them to values. A candidate also serves the requests of its prefixes.
    fn merge(&mut self) {
        let known = self.all.clone();
        for short in &known {
            for long in &known {
                let merged = merged(&short.definition, long);
                for request in short.requests.iter().chain(&long.requests) {
                    self.add(merged.clone(), long.reason.clone(), *request, long.equal);
                }
            }
        }
        let known = self.all.clone();
        for candidate in &mut self.all {
            for short in &known {
                if short.definition.is_prefix_of(&candidate.definition) {
                    candidate.requests.extend(&short.requests);
                }
            }
            candidate.requests.sort_unstable();
            candidate.requests.dedup();
        }
    }
}

/// Returns the longer key with the fields of the shorter one first, if requests bind all of these to
/// values.
fn merged(short: &IndexDefinition, long: &IndexCandidate) -> Option<IndexDefinition> {
    let IndexCandidate { definition: long, equal, .. } = long;
    let is_alike = short.collation == long.collation && short.partial == long.partial;
    let bound = long.key.get(..*equal)?;
    if !is_alike || !short.key.iter().all(|field| bound.contains(field)) {
        return None;
    }
    let rest = long.key.iter().filter(|field| !short.key.contains(field)).cloned();
    let key: Vec<KeyField> = short.key.iter().cloned().chain(rest).collect();
    (key != long.key).then(|| IndexDefinition { key, ..long.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    fn request(command: &DocBuf, count: f64) -> WeighedRequest {
        WeighedRequest { asked: Asked::of_command(command.as_doc()).unwrap(), count }
    }

    fn names(found: &[IndexCandidate]) -> Vec<String> {
        found.iter().map(|candidate| candidate.definition.name()).collect()
    }

    fn orders() -> DocBuf {
        doc! {
            "find": "orders",
            "filter": { "user_id": "user001", "status": "active", "amount": { "$gte": 100 } },
            "sort": { "created_at": -1 },
        }
    }

    #[test]
    fn the_first_candidate_has_equality_sort_range() {
        let found = candidates(&[request(&orders(), 1.0)], &[]);
        let first = &found[0];
        assert_eq!(first.definition.name(), "user_id_1_status_1_created_at_-1_amount_1");
        assert_eq!(first.reason, "E: user_id, status; S: created_at descending; R: amount");
        let range_before_sort = "user_id_1_status_1_amount_1_created_at_-1".to_owned();
        assert!(names(&found).contains(&range_before_sort), "{:?}", names(&found));
    }

    #[test]
    fn nothing_is_proposed_that_exists_or_is_a_prefix_of_what_exists() {
        let existing =
            doc! { "key": { "user_id": -1, "status": -1, "created_at": 1, "amount": -1 } };
        let existing = IndexDefinition::of_spec(existing.as_doc()).unwrap();
        let found = candidates(&[request(&orders(), 1.0)], std::slice::from_ref(&existing));
        assert_eq!(
            names(&found),
            ["user_id_1_status_1_amount_1_created_at_-1", "user_id_1_status_1_amount_1"]
        );
        let id = doc! { "find": "orders", "filter": { "_id": 1 } };
        assert!(candidates(&[request(&id, 1.0)], &[]).is_empty());
    }

    #[test]
    fn two_requests_share_a_prefix_and_a_list_counts_as_equality() {
        let both = doc! { "find": "c", "filter": { "a": 1, "b": { "$in": [1, 2] } } };
        let one = doc! { "find": "c", "filter": { "b": 5 } };
        let found = candidates(&[request(&both, 1.0), request(&one, 9.0)], &[]);
        let served: Vec<&IndexCandidate> =
            found.iter().filter(|candidate| candidate.requests == [0, 1]).collect();
        assert_eq!(served[0].definition.name(), "b_1_a_1", "{:?}", names(&found));
    }

    #[test]
    fn nearly_constant_conditions_make_partial_indexes() {
        let of = |user: &str| doc! { "find": "c", "filter": { "s": "active", "u": user } };
        let (first, second) = (request(&of("x"), 5.0), request(&of("y"), 5.0));
        let found = candidates(&[first.clone(), second.clone()], &[]);
        let partial =
            found.iter().find(|candidate| candidate.definition.partial.is_some()).unwrap();
        assert_eq!(partial.definition.partial, Some(doc! { "s": "active" }));
        assert_eq!(partial.definition.name(), "u_1_partial");
        let other = doc! { "find": "c", "filter": { "s": "closed" } };
        let found = candidates(&[first, second, request(&other, 1.0)], &[]);
        assert!(found.iter().all(|candidate| candidate.definition.partial.is_none()));
    }

    #[test]
    fn collations_and_covered_paths_are_kept() {
        let command = doc! {
            "find": "c", "filter": { "a": "x" }, "projection": { "_id": 0, "b": 1 },
            "collation": { "locale": "en", "strength": 2 },
        };
        let found = candidates(&[request(&command, 1.0)], &[]);
        assert_eq!(names(&found), ["a_1_collation", "a_1_b_1_collation"]);
        assert!(joined_candidate("x", vec![0], &[]).is_some());
        assert!(joined_candidate("a", vec![0], &[found[1].definition.clone()]).is_some());
    }
}
