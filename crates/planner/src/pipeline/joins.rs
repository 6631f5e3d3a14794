//! Rewrites pipelines around stages that read other collections: a following stage moves before the
//! stage or into it.

use crate::indexes::keys::is_placeholder;
use crate::pipeline::pushing::{conjunction, push_match};
use quire_document::path::Path;
use quire_mql::filter::{Node as Condition, PathNode};
use quire_mql::stage::{Limit, Lookup, Match, Stage, UnionWith};
use std::sync::Arc;

/// Joins or exchanges a stage that reads another collection and the following stage, if the result
/// is the same. Returns the stages, and true if anything changed.
pub(crate) fn combine(first: Stage, second: Stage) -> (Vec<Stage>, bool) {
    match (first, second) {
        (Stage::UnionWith(union), second) => behind_union(union, second),
        (Stage::Lookup(lookup), Stage::Unwind(unwind))
            if lookup.unwind.is_none() && *unwind.path() == lookup.output =>
        {
            (vec![Stage::Lookup(Arc::new(lookup.with_unwind(unwind)))], true)
        }
        (Stage::Lookup(lookup), Stage::Match(filter)) => match of_joined(&lookup, &filter) {
            Some((lookup, rest)) => {
                let rest = (!rest.is_empty()).then(|| conjunction(rest));
                (std::iter::once(lookup).chain(rest).collect(), true)
            }
            None => push_match(Stage::Lookup(lookup), filter),
        },
        (first @ Stage::GraphLookup(_), Stage::Match(filter)) => push_match(first, filter),
        (first, second @ (Stage::Limit(_) | Stage::Skip(_))) if is_one_to_one(&first) => {
            (vec![second, first], true)
        }
        (first, second) => (vec![first, second], false),
    }
}

/// Returns true if a stage returns one document for each document of its input, in the same order.
fn is_one_to_one(stage: &Stage) -> bool {
    match stage {
        Stage::Lookup(lookup) => lookup.unwind.is_none(),
        Stage::GraphLookup(_) => true,
        _ => false,
    }
}

/// Moves a stage that follows a `$unionWith` into it. A filter moves to both sides. A limit is
/// copied to both sides and also stays where it is, because the first n documents of the union are
/// among the first n of each side.
fn behind_union(union: Arc<UnionWith>, second: Stage) -> (Vec<Stage>, bool) {
    let with = |stage: Stage| {
        let others = union.others.iter().cloned().map(|mut other| {
            other.pipeline.push(stage.clone());
            other
        });
        Stage::UnionWith(Arc::new(UnionWith { others: others.collect() }))
    };
    match second {
        Stage::Match(filter) => {
            let other = with(Stage::Match(Arc::clone(&filter)));
            (vec![Stage::Match(filter), other], true)
        }
        Stage::Limit(limit) => {
            let is_limited = |stages: &[Stage]| matches!(stages.last(), Some(Stage::Limit(Limit(own))) if *own <= limit.0);
            if union.others.iter().all(|other| is_limited(&other.pipeline)) {
                return (vec![Stage::UnionWith(union), Stage::Limit(limit)], false);
            }
            let (own, other) = (Stage::Limit(limit), with(Stage::Limit(limit)));
            (vec![own.clone(), other, own], true)
        }
        second => (vec![Stage::UnionWith(union), second], false),
    }
}

/// Moves conditions on the joined documents into a `$lookup` that unwinds them. Returns the stage
/// and the other conditions; `None` if there are no such conditions.
fn of_joined(lookup: &Lookup, filter: &Match) -> Option<(Stage, Vec<Condition>)> {
    // A document that is kept without a match, and an array index, depend on all joined documents.
    let unwind = lookup.unwind.as_ref()?;
    if unwind.preserves() || unwind.index_path().is_some() {
        return None;
    }
    let prefix = format!("{}.", lookup.output);
    let (mut inner, mut rest) = (Vec::new(), Vec::new());
    for part in filter.filter().root().conjuncts() {
        match below(part, &prefix) {
            Some(part) => inner.push(part),
            None => rest.push(part.clone()),
        }
    }
    if inner.is_empty() {
        return None;
    }
    inner.extend(lookup.filter.iter().map(|filter| filter.filter().root().clone()));
    let lookup = lookup.with_filter(Match::all_of(inner));
    Some((Stage::Lookup(Arc::new(lookup)), rest))
}

/// Returns a condition whose paths all begin with `prefix` as a condition on the value at `prefix`.
fn below(condition: &Condition, prefix: &str) -> Option<Condition> {
    let all = |conditions: &[Condition]| -> Option<Vec<Condition>> {
        conditions.iter().map(|condition| below(condition, prefix)).collect()
    };
    Some(match condition {
        Condition::And(conditions) => Condition::And(all(conditions)?),
        Condition::Or(conditions) => Condition::Or(all(conditions)?),
        Condition::Nor(conditions) => Condition::Nor(all(conditions)?),
        Condition::Not(inner) => Condition::negate(below(inner, prefix)?),
        // The join inside would be planned for keys that are not its own.
        Condition::Path(node) if is_placeholder(&node.test) => return None,
        Condition::Path(node) => {
            let path = Path::new(node.path.as_str().strip_prefix(prefix)?);
            Condition::Path(PathNode::new(path, node.test.clone()))
        }
        _ => return None,
    })
}
