//! Moves parts of a filter before a stage: which paths the stage leaves unchanged, and how a
//! condition reads before it.

use crate::indexes::keys::present;
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

/// What a condition meets on its way before a stage.
struct Passed {
    modified: Modified,
    /// The fields that the stage copies: the new names with the old ones.
    renames: HashMap<String, String>,
    /// True if a document may come in that does not come out.
    hides: bool,
}

/// Moves the parts of a filter that a stage does not change to before the stage.
pub(crate) fn push_match(first: Stage, filter: Arc<Match>) -> (Vec<Stage>, bool) {
    let hides = match &first {
        Stage::Unwind(_) => true,
        Stage::Lookup(lookup) => lookup.unwind.is_some(),
        _ => false,
    };
    let passed = Passed { modified: first.modified(), renames: renames(&first), hides };
    push_parts(first, filter, |part| passed.moved(part))
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

impl Passed {
    /// Returns the condition in its form before the stage; `None` if it cannot move there.
    fn moved(&self, part: &Condition) -> Option<Condition> {
        let all = |children: &[Condition]| {
            children.iter().map(|child| self.moved(child)).collect::<Option<Vec<_>>>()
        };
        Some(match part {
            Condition::And(children) => Condition::And(all(children)?),
            Condition::Or(children) => Condition::Or(all(children)?),
            Condition::Nor(children) => Condition::Nor(all(children)?),
            Condition::Not(child) => Condition::negate(self.moved(child)?),
            Condition::Path(node) => {
                let path = node.path.as_str();
                if is_untouched(path, &self.modified) && !sees_new_gaps(part, &self.modified) {
                    return Some(part.clone());
                }
                Condition::Path(self.renamed(node)?)
            }
            Condition::Expr(_) if self.lets_expression_pass(part) => part.clone(),
            Condition::Expr(_) | Condition::JsonSchema(_) | Condition::Search(_) => return None,
            Condition::SampleRate(_) | Condition::Always(_) => part.clone(),
        })
    }

    /// Returns the test with the name that its field has before the stage.
    fn renamed(&self, node: &PathNode) -> Option<PathNode> {
        let path = node.path.as_str();
        let top = path.split('.').next().unwrap_or_default();
        let old = format!("{}{}", self.renames.get(top)?, path.strip_prefix(top)?);
        Some(PathNode::new(Path::new(&old), node.test.clone()))
    }

    /// Returns true for an `$expr` that reads nothing that the stage changes. It must not fail on a
    /// document that the stage hides from it.
    fn lets_expression_pass(&self, part: &Condition) -> bool {
        let Condition::Expr(test) = part else { return false };
        let reads = test.expression().dependencies();
        let knows_paths = !reads.whole_document && !reads.volatile && reads.metadata.is_empty();
        knows_paths
            && !(self.hides && part.can_fail())
            && reads.paths.iter().all(|path| is_untouched(path, &self.modified))
    }
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
            Condition::Path(PathNode::new(Path::new(&before(path.as_str())?), present(test)))
        }
        _ => return None,
    })
}

fn compares(test: &Test) -> bool {
    match test {
        Test::Compare(_, operand) => divides(operand.value()),
        Test::In(list) if list.to_come().is_some() => true,
        Test::In(list) => list.regexes().is_empty() && list.values().all(divides),
        _ => false,
    }
}

/// Returns true if a comparison with the value cannot distinguish null, undefined and missing,
/// which are in the same group.
fn divides(value: Value<'_>) -> bool {
    !matches!(value, Value::Null | Value::Undefined | Value::MinKey | Value::MaxKey)
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
/// below it is among those that it modifies. A number in the path may be a position in an array, so
/// all that is modified below the array counts.
pub(crate) fn is_untouched(path: &str, modified: &Modified) -> bool {
    let path = up_to_position(path);
    match modified {
        Modified::Nothing => true,
        Modified::All => false,
        Modified::Paths(paths) => {
            !paths.contains(path) && !has_parent(paths, path) && !has_child(paths, path)
        }
        Modified::AllExcept(kept) => kept.contains(path) || has_parent(kept, path),
    }
}

/// Returns the part of a path before the first number that is not its first component.
fn up_to_position(path: &str) -> &str {
    let number = path
        .match_indices('.')
        .map(|(dot, _)| dot)
        .find(|&dot| path[dot + 1..].starts_with(|digit: char| digit.is_ascii_digit()));
    &path[..number.unwrap_or(path.len())]
}

/// Returns true if a stage may make documents out of the elements of an array, and the condition
/// finds that a field is missing in them: `{$addFields: {"a.x": 1}}` turns `[5]` into `[{x: 1}]`,
/// where `a.y` is missing. Before, `a.y` led to nothing at all.
fn sees_new_gaps(condition: &Condition, modified: &Modified) -> bool {
    let Modified::Paths(paths) = modified else { return false };
    let any = |children: &[Condition]| children.iter().any(|child| sees_new_gaps(child, modified));
    match condition {
        Condition::And(children) | Condition::Or(children) | Condition::Nor(children) => {
            any(children)
        }
        Condition::Not(child) => sees_new_gaps(child, modified),
        Condition::Path(node) => {
            let top = |path: &str| path.split_once('.').map(|(top, _)| top.to_owned());
            let written = top(node.path.as_str());
            written.is_some()
                && holds_for_missing(&node.test)
                && paths.iter().any(|path| top(path) == written)
        }
        _ => false,
    }
}

/// Returns false if no missing field passes the test.
fn holds_for_missing(test: &Test) -> bool {
    match test {
        Test::Compare(_, operand) => !divides(operand.value()),
        Test::In(list) => !list.values().all(divides),
        Test::All(tests) => tests.iter().all(holds_for_missing),
        Test::Not(_) | Test::Always(_) => true,
        _ => false,
    }
}

/// Returns the new names of fields that a stage only copies, with the old ones: `{$set: {x: "$a"}}`.
fn renames(stage: &Stage) -> HashMap<String, String> {
    let Stage::Transform(Transform::Projection(_, projection)) = stage else {
        return HashMap::new();
    };
    let computed = projection.computed_fields();
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

#[cfg(test)]
mod tests {
    use crate::pipeline::rewrite::optimise;
    use quire_document::{DocBuf, Value, doc};
    use quire_mql::ParseContext;
    use quire_mql::stage::{StageBody, parse_pipeline};

    /// True if a filter behind the stage moves before it.
    fn moves(stage: &DocBuf, filter: DocBuf) -> bool {
        let pipeline = [stage.clone(), doc! { "$match": &filter }];
        let stages = pipeline.iter().map(|stage| Value::from(stage.as_doc()));
        let context = ParseContext::default();
        let stages = parse_pipeline(stages, &context).unwrap();
        let names: Vec<_> =
            optimise(stages, &context).unwrap().iter().map(StageBody::name).collect();
        names == ["$match", stage.as_doc().first().unwrap().key()]
    }

    #[test]
    fn a_position_in_an_array_is_changed_with_its_fields() {
        let set = doc! { "$addFields": { "a.x": 1 } };
        assert!(moves(&set, doc! { "b.0": 5 }));
        assert!(moves(&set, doc! { "a.y": 5 }));
        assert!(!moves(&set, doc! { "a.0": { "y": 5 } }));
        assert!(!moves(&set, doc! { "a.0.y": 5 }));
        let keep = doc! { "$project": { "a.x": 1 } };
        assert!(moves(&keep, doc! { "a.x": 5 }));
        assert!(!moves(&keep, doc! { "a.0.x": 5 }));
    }

    #[test]
    fn elements_that_become_documents_lack_other_fields() {
        // The stage turns `{a: [5]}` into `{a: [{x: 1}]}`, in which `a.y` is missing.
        let set = doc! { "$addFields": { "a.x": 1 } };
        for filter in [
            doc! { "a.y": Value::Null },
            doc! { "a.y": { "$ne": Value::Null } },
            doc! { "a.y": { "$in": [1, Value::Null] } },
            doc! { "$or": [{ "a.y": { "$lte": Value::Null } }, { "b": 1 }] },
        ] {
            assert!(!moves(&set, filter.clone()), "{filter:?}");
        }
        for filter in [
            doc! { "a.y": { "$ne": 5 } },
            doc! { "a.y": { "$exists": false } },
            doc! { "b.y": Value::Null },
        ] {
            assert!(moves(&set, filter.clone()), "{filter:?}");
        }
    }

    /// Returns the filter that moves before the stage.
    fn before(stage: &DocBuf, filter: &DocBuf) -> Option<String> {
        first(&[stage.clone(), doc! { "$match": filter }])
    }

    /// Returns the filter with which the optimised pipeline begins.
    fn first(pipeline: &[DocBuf]) -> Option<String> {
        let stages = pipeline.iter().map(|stage| Value::from(stage.as_doc()));
        let context = ParseContext::default();
        let stages = optimise(parse_pipeline(stages, &context).unwrap(), &context).unwrap();
        let printed = DocBuf::build(|writer| stages[0].print(writer));
        let filter = printed.get("$match").and_then(|filter| filter.as_document());
        filter.map(quire_document::literal::print)
    }

    #[test]
    fn a_filter_passes_an_unwind_and_a_join_on_its_way_to_the_renamed_field() {
        let rename = doc! { "$set": { "x": "$a" } };
        let unwind = doc! { "$unwind": "$b" };
        let join = doc! { "$lookup": {
            "from": "f", "localField": "x", "foreignField": "k", "as": "j"
        } };
        let unwind_joined = doc! { "$unwind": "$j" };
        let of_x = doc! { "$match": { "x": 5 } };
        for between in [vec![&unwind], vec![&join], vec![&join, &unwind_joined, &unwind]] {
            let stages = std::iter::once(&rename).chain(between).chain([&of_x]);
            let stages: Vec<DocBuf> = stages.cloned().collect();
            assert_eq!(first(&stages).as_deref(), Some("{a: {$eq: 5}}"), "{stages:?}");
        }
    }

    #[test]
    fn a_filter_moves_before_a_stage_that_renames_its_field() {
        let filter = doc! { "$or": [{ "x.y": { "$gt": 3 } }, { "b": 1 }] };
        let moved = "{$or: [{b: {$eq: 1}}, {a.y: {$gt: 3}}]}".replace("a.y", "\"a.y\"");
        for stage in [
            doc! { "$set": { "x": "$a", "c": { "$add": ["$d", 1] } } },
            doc! { "$project": { "x": "$a", "b": 1 } },
        ] {
            assert_eq!(before(&stage, &filter), Some(moved.clone()), "{stage:?}");
        }
        assert_eq!(before(&doc! { "$set": { "x": "$a.z" } }, &filter), None);
        assert_eq!(before(&doc! { "$set": { "x": { "$add": ["$a", 1] } } }, &filter), None);
    }

    #[test]
    fn an_expression_moves_before_a_stage_that_does_not_change_what_it_reads() {
        let set = doc! { "$set": { "x": 1 } };
        let reads = |path: &str| doc! { "$expr": { "$eq": [path, 1] } };
        assert!(moves(&set, reads("$a")));
        assert!(!moves(&set, reads("$x")));
        assert!(!moves(&set, reads("$x.y")));
        assert!(!moves(&set, doc! { "$expr": { "$gt": [{ "$rand": {} }, "$a"] } }));
        assert!(!moves(&set, doc! { "$expr": { "$eq": ["$$ROOT", "$a"] } }));
        let unwind = doc! { "$unwind": "$x" };
        assert!(moves(&unwind, reads("$a")));
        assert!(!moves(&unwind, doc! { "$expr": { "$gt": [{ "$divide": [1, "$a"] }, 1] } }));
    }

    #[test]
    fn what_stands_in_the_way_of_a_joined_array_is_replaced() {
        // An array `s` becomes the document `{x: [...]}`: `s.y` is gone.
        let joins = [
            doc! { "$lookup": { "from": "f", "localField": "a", "foreignField": "b", "as": "s.x" } },
            doc! { "$graphLookup": {
                "from": "f", "startWith": "$a", "connectFromField": "a", "connectToField": "b", "as": "s.x"
            } },
            doc! { "$unwind": {
                "path": "$a", "includeArrayIndex": "s.x", "preserveNullAndEmptyArrays": true
            } },
        ];
        for join in joins {
            assert!(!moves(&join, doc! { "s.y": 5 }), "{join:?}");
            assert!(moves(&join, doc! { "b": 5 }), "{join:?}");
        }
    }
}
