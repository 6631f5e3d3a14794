//! Rewrites pipelines: filters and limits move forward, adjacent stages are joined. Filters are
//! split and combined as conditions, never as BSON.

use super::{group_keys, joins, windows};
use crate::pipeline::pushing::{conjunction, push_match};
use quire_error::Result;
use quire_mql::ParseContext;
use quire_mql::stage::{Limit, Match, Skip, Stage};
use std::sync::Arc;

/// The largest number of rewriting steps.
const ROUNDS_MAX: usize = 10_000;

/// The steps between two checks of the interrupt. A step may list all fields that a stage changes.
const UNCHECKED_ROUNDS: usize = 4;

/// Moves filters and limits forward and joins adjacent stages, unless the pipeline must run as
/// written.
///
/// # Errors
/// The interrupt's error.
pub(crate) fn optimise(stages: Vec<Stage>, context: &ParseContext) -> Result<Vec<Stage>> {
    if context.as_written || stages.len() < 2 {
        return Ok(stages);
    }
    let mut stages = join_matches(stages);
    let (mut at, mut rounds) = (0, 0);
    while at + 1 < stages.len() && rounds < ROUNDS_MAX {
        rounds += 1;
        if rounds.is_multiple_of(UNCHECKED_ROUNDS)
            && let Some(interrupt) = &context.interrupt
        {
            interrupt.check()?;
        }
        let second = stages.remove(at + 1);
        let first = stages.remove(at);
        let (pair, changed) = combine(first, second);
        for (offset, stage) in pair.into_iter().enumerate() {
            stages.insert(at + offset, stage);
        }
        at = if changed { at.saturating_sub(1) } else { at + 1 };
    }
    Ok(stages)
}

/// Joins or exchanges two adjacent stages, if the result is the same. Returns the stages, and true
/// if anything changed.
fn combine(first: Stage, second: Stage) -> (Vec<Stage>, bool) {
    match (first, second) {
        (first, Stage::Match(filter)) if filter.is_held() => {
            (vec![first, Stage::Match(filter)], false)
        }
        (Stage::Match(held), second @ Stage::Match(_)) if held.is_held() => {
            (vec![second, Stage::Match(held)], true)
        }
        (Stage::Match(a), Stage::Match(b)) => (vec![all_of(&[a, b])], true),
        (Stage::Limit(a), Stage::Limit(b)) => (vec![Stage::Limit(Limit(a.0.min(b.0)))], true),
        (Stage::Skip(a), Stage::Skip(b)) => {
            (vec![Stage::Skip(Skip(a.0.saturating_add(b.0)))], true)
        }
        (Stage::Limit(Limit(limit)), Stage::Skip(Skip(skip))) if limit > skip => {
            (vec![Stage::Skip(Skip(skip)), Stage::Limit(Limit(limit - skip))], true)
        }
        (Stage::Sort(sort), Stage::Match(filter)) => {
            (vec![Stage::Match(filter), Stage::Sort(sort)], true)
        }
        (first @ Stage::Transform(_), second @ (Stage::Limit(_) | Stage::Skip(_))) => {
            (vec![second, first], true)
        }
        (first @ (Stage::Transform(_) | Stage::Unwind(_)), Stage::Match(filter)) => {
            push_match(first, filter)
        }
        (Stage::WindowFields(fields), Stage::Match(filter)) => windows::push_match(fields, filter),
        (Stage::Group(group), Stage::Match(filter)) => group_keys::push_match(group, filter),
        (first @ (Stage::Lookup(_) | Stage::GraphLookup(_) | Stage::UnionWith(_)), second) => {
            joins::combine(first, second)
        }
        (first, second) => (vec![first, second], false),
    }
}

/// Joins each sequence of filters at once: joining pair by pair would simplify a long filter again
/// for each.
fn join_matches(stages: Vec<Stage>) -> Vec<Stage> {
    let mut out = Vec::with_capacity(stages.len());
    let mut run: Vec<Arc<Match>> = Vec::new();
    for stage in stages {
        match stage {
            Stage::Match(filter) if !filter.is_held() => run.push(filter),
            other => {
                out.extend(joined_run(&mut run));
                out.push(other);
            }
        }
    }
    out.extend(joined_run(&mut run));
    out
}

/// Returns the conjunction of a sequence of filters; `None` if it is empty.
fn joined_run(run: &mut Vec<Arc<Match>>) -> Option<Stage> {
    let mut run = std::mem::take(run);
    match run.len() {
        0 | 1 => run.pop().map(Stage::Match),
        _ => Some(all_of(&run)),
    }
}

/// Returns the conjunction of the filters.
fn all_of(filters: &[Arc<Match>]) -> Stage {
    conjunction(filters.iter().map(|filter| filter.filter().root().clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::{DocBuf, Value, doc};
    use quire_error::{Error, ErrorCode};
    use quire_mql::stage::parse_pipeline;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Rewriting had no check, and each step of it may list all fields that a stage changes.
    #[test]
    fn rewriting_long_pipelines_can_be_interrupted() {
        let stages: Vec<DocBuf> = (0..40)
            .map(|at| match at % 2 {
                0 => doc! { "$set": { "a": at } },
                _ => doc! { "$match": { "b": at } },
            })
            .collect();
        let mut context = ParseContext::default();
        let stages = stages.iter().map(|stage| Value::from(stage.as_doc()));
        let stages = parse_pipeline(stages, &context).unwrap();
        let looks = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&looks);
        context.interrupt = Some(Arc::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }));
        assert_eq!(optimise(stages.clone(), &context).unwrap().len(), 21);
        // Each filter moves before all fields that come before it.
        assert!(looks.load(Ordering::Relaxed) > 50);
        context.interrupt = Some(Arc::new(|| Err(Error::new(ErrorCode::Interrupted, "killed"))));
        assert_eq!(optimise(stages, &context).unwrap_err().code(), ErrorCode::Interrupted);
    }
}
