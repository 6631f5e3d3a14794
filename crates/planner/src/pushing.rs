//! Moves parts of a filter before a stage: which paths the stage leaves unchanged, and how a
//! condition reads before it.

use quire_document::Value;
use quire_document::path::Path;
use quire_mql::expression::ExpressionNode;
use quire_mql::filter::{Node as Condition, PathNode, Test};
use quire_mql::stage::{Match, Modified, Stage, StageBody, Transform};
use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

/// Returns the `$match` of documents that meet all of these conditions.
pub(crate) fn conjunction(conditions: Vec<Condition>) -> Stage {
    Stage::Match(Arc::new(Match::all_of(conditions)))
}

/// Moves the parts of a filter that a stage does not change to before the stage.
pub(crate) fn push_match(first: Stage, filter: Arc<Match>) -> (Vec<Stage>, bool) {
    let modified = first.modified();
    let renames = renames(&first);
    push_parts(first, filter, |part| moved(part, &modified, &renames))
}

/// Moves the parts of a filter for which `moved` returns their form before the stage.
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

/// Returns the condition in its form before the stage; `None` if it cannot move there.
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

/// Returns the condition in its form before a stage that groups documents with equal values; `None`
/// if it can differ within a group. `before` returns the path that a tested path has before the
/// stage, if the path has a grouped value.
///
/// Comparisons with a value have the same result for the whole group. Tests of types do not: `1`
/// and `1.0` are equal.
pub(crate) fn of_equals(
    condition: &Condition,
    before: &dyn Fn(&str) -> Option<String>,
) -> Option<Condition> {
    let all = |children: &[Condition]| {
        children.iter().map(|child| of_equals(child, before)).collect::<Option<Vec<_>>>()
    };
    Some(match condition {
        Condition::And(children) => Condition::And(all(children)?),
        Condition::Or(children) => Condition::Or(all(children)?),
        Condition::Nor(children) => Condition::Nor(all(children)?),
        Condition::Not(child) => Condition::negate(of_equals(child, before)?),
        Condition::Path(PathNode { path, test, .. }) if compares(test) => {
            Condition::Path(PathNode::new(Path::new(&before(path.as_str())?), test.clone()))
        }
        _ => return None,
    })
}

fn compares(test: &Test) -> bool {
    match test {
        Test::Compare(_, operand) => divides(operand.value()),
        Test::In(list) => list.regexes().is_empty() && list.values().all(divides),
        _ => false,
    }
}

/// Returns true if a comparison with the value cannot distinguish null, undefined and missing,
/// which are in the same group.
fn divides(value: Value<'_>) -> bool {
    !matches!(value, Value::Null | Value::Undefined | Value::MinKey | Value::MaxKey)
}

/// Returns the condition with the name that its field has before the stage.
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

/// Returns true if the set contains a parent of this path.
pub(crate) fn has_parent(paths: &BTreeSet<String>, path: &str) -> bool {
    path.match_indices('.').any(|(end, _)| paths.contains(&path[..end]))
}

/// Returns true if the set contains a path below this one.
fn has_child(paths: &BTreeSet<String>, path: &str) -> bool {
    let below = format!("{path}.");
    let mut behind = paths.range::<str, _>((Bound::Included(below.as_str()), Bound::Unbounded));
    behind.next().is_some_and(|next| next.starts_with(&below))
}

/// Returns true if a stage leaves the value at `path` unchanged: neither the path nor one above or
/// below it is among those that it modifies.
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

/// Returns the new names of fields that a stage only copies: `{$project: {x: "$a"}}`.
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
            ExpressionNode::Path(path) => {
                let old: Vec<&str> = path.components().collect();
                (old.len() == 1).then(|| (new, old.concat()))
            }
            _ => None,
        })
        .collect()
}
