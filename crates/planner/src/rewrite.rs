//! Rewriting pipelines: filters and limits move forward, neighbours are joined. Filters are taken
//! apart and put together as conditions, never as BSON.

use crate::{joins, windows};
use quire_document::path::Path;
use quire_mql::expression::Node as ExprNode;
use quire_mql::filter::{Node as Condition, PathNode};
use quire_mql::stage::{Limit, Match, Modified, Skip, Stage, StageBody, Transform};
use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

/// The most steps that rewriting takes.
const ROUNDS_MAX: usize = 10_000;

/// Moves filters and limits forward, joins neighbours.
pub(crate) fn optimise(stages: Vec<Stage>) -> Vec<Stage> {
    let mut stages = join_matches(stages);
    let (mut at, mut rounds) = (0, 0);
    while at + 1 < stages.len() && rounds < ROUNDS_MAX {
        rounds += 1;
        let second = stages.remove(at + 1);
        let first = stages.remove(at);
        let (pair, changed) = combine(first, second);
        for (offset, stage) in pair.into_iter().enumerate() {
            stages.insert(at + offset, stage);
        }
        at = if changed { at.saturating_sub(1) } else { at + 1 };
    }
    stages
}

/// The two neighbours, joined or exchanged where that is the same; whether anything changed.
fn combine(first: Stage, second: Stage) -> (Vec<Stage>, bool) {
    match (first, second) {
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
        (first @ (Stage::Lookup(_) | Stage::GraphLookup(_) | Stage::UnionWith(_)), second) => {
            joins::combine(first, second)
        }
        (first, second) => (vec![first, second], false),
    }
}

/// Joins each run of filters at once: pair by pair a long run would be simplified again for each.
fn join_matches(stages: Vec<Stage>) -> Vec<Stage> {
    let mut out = Vec::with_capacity(stages.len());
    let mut run: Vec<Arc<Match>> = Vec::new();
    for stage in stages {
        match stage {
            Stage::Match(filter) => run.push(filter),
            other => {
                out.extend(joined_run(&mut run));
                out.push(other);
            }
        }
    }
    out.extend(joined_run(&mut run));
    out
}

/// The one filter that a run of them is; none for none.
fn joined_run(run: &mut Vec<Arc<Match>>) -> Option<Stage> {
    let mut run = std::mem::take(run);
    match run.len() {
        0 | 1 => run.pop().map(Stage::Match),
        _ => Some(all_of(&run)),
    }
}

/// The filter that is all of these.
fn all_of(filters: &[Arc<Match>]) -> Stage {
    conjunction(filters.iter().map(|filter| filter.filter().root().clone()).collect())
}

pub(crate) fn conjunction(conditions: Vec<Condition>) -> Stage {
    Stage::Match(Arc::new(Match::all_of(conditions)))
}

/// Moves the parts of a filter that a stage does not touch to before it.
pub(crate) fn push_match(first: Stage, filter: Arc<Match>) -> (Vec<Stage>, bool) {
    let modified = first.modified();
    let renames = renames(&first);
    push_parts(first, filter, |part| moved(part, &modified, &renames))
}

/// Moves the parts of a filter for which `moved` returns how they read before the stage.
pub(crate) fn push_parts(
    first: Stage,
    filter: Arc<Match>,
    moved: impl Fn(&Condition) -> Option<Condition>,
) -> (Vec<Stage>, bool) {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for part in filter.filter().root().conjuncts() {
        match moved(part) {
            Some(part) => before.push(part),
            None => after.push(part.clone()),
        }
    }
    if before.is_empty() {
        return (vec![first, Stage::Match(filter)], false);
    }
    let mut stages = vec![conjunction(before), first];
    if !after.is_empty() {
        stages.push(conjunction(after));
    }
    (stages, true)
}

/// The condition as it reads before the stage; `None` if it cannot stand there.
fn moved(
    part: &Condition,
    modified: &Modified,
    renames: &HashMap<String, String>,
) -> Option<Condition> {
    let paths = part.paths()?;
    if paths.iter().all(|path| is_untouched(path, modified)) {
        return Some(part.clone());
    }
    renamed(part, renames)
}

/// The condition with the name that its field has before the stage.
fn renamed(part: &Condition, renames: &HashMap<String, String>) -> Option<Condition> {
    match part {
        Condition::Not(inner) => renamed(inner, renames).map(Condition::negate),
        Condition::Path(node) => {
            let path = node.path.as_str();
            let top = path.split('.').next().unwrap_or_default();
            let old = format!("{}{}", renames.get(top)?, path.strip_prefix(top)?);
            Some(Condition::Path(PathNode::new(Path::new(&old), node.test.clone())))
        }
        _ => None,
    }
}

/// True if the set has a path that this one is below.
pub(crate) fn has_parent(paths: &BTreeSet<String>, path: &str) -> bool {
    path.match_indices('.').any(|(end, _)| paths.contains(&path[..end]))
}

/// True if the set has a path that is below this one.
fn has_child(paths: &BTreeSet<String>, path: &str) -> bool {
    let below = format!("{path}.");
    let mut behind = paths.range::<str, _>((Bound::Included(below.as_str()), Bound::Unbounded));
    behind.next().is_some_and(|next| next.starts_with(&below))
}

pub(crate) fn is_untouched(path: &str, modified: &Modified) -> bool {
    match modified {
        Modified::Nothing => true,
        Modified::All => false,
        Modified::Paths(paths) => {
            !paths.contains(path) && !has_parent(paths, path) && !has_child(paths, path)
        }
        Modified::AllExcept(kept) => kept.contains(path) || has_parent(kept, path),
    }
}

/// New names for fields that a stage only copies: `{$project: {x: "$a"}}`.
fn renames(stage: &Stage) -> HashMap<String, String> {
    let computed = match stage {
        Stage::Transform(Transform::Projection("$project", projection)) => {
            projection.computed_fields()
        }
        _ => return HashMap::new(),
    };
    computed
        .into_iter()
        .filter(|(new, _)| !new.contains('.'))
        .filter_map(|(new, expression)| match expression.node() {
            ExprNode::Path(path) => {
                let old: Vec<&str> = path.components().collect();
                (old.len() == 1).then(|| (new, old.concat()))
            }
            _ => None,
        })
        .collect()
}
