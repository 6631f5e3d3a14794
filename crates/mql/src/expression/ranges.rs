//! A `$switch` whose cases are adjacent, ascending ranges of one path, as `$bucket` makes it. A
//! binary search finds the branch.

use super::comparison::compare_results;
use super::field_path::FieldPath;
use super::operator::Call;
use super::tree::{Expression, ExpressionNode};
use quire_document::{Value, ValueBuf, compare};

/// The bounds of the ranges: the lower bound of each case, and the upper bound of the last.
#[derive(Debug)]
pub(super) struct Ranges {
    bounds: Vec<ValueBuf>,
}

impl Ranges {
    /// Returns the ranges of the cases; `None` if they are not adjacent ranges of one path.
    pub fn of<'e>(cases: impl Iterator<Item = &'e Expression>) -> Option<Self> {
        let (mut bounds, mut path): (Vec<ValueBuf>, Option<String>) = (Vec::new(), None);
        for case in cases {
            let (by, low, high) = range(case)?;
            let follows = bounds.last().is_none_or(|last| compare(last.into(), low, None).is_eq());
            if !follows || compare(low, high, None).is_ge() {
                return None;
            }
            if *path.get_or_insert_with(|| by.to_string()) != by.to_string() {
                return None;
            }
            if bounds.is_empty() {
                bounds.push(ValueBuf::new(low));
            }
            bounds.push(ValueBuf::new(high));
        }
        (!bounds.is_empty()).then_some(Ranges { bounds })
    }

    /// Returns the index of the case that is true for a value; `None` if none is. Strings are
    /// compared by bytes.
    pub fn case_of(&self, value: Option<Value<'_>>) -> Option<usize> {
        let reached = |bound: &ValueBuf| compare_results(value, Some(bound.into()), None).is_ge();
        let reached = self.bounds.partition_point(reached);
        reached.checked_sub(1).filter(|case| case + 1 < self.bounds.len())
    }
}

/// Returns the path that a case compares: the first operand of its first comparison.
pub(super) fn compared(case: &Expression) -> Option<&Expression> {
    called(case, "$and")?.args.first().and_then(|low| called(low, "$gte")?.args.first())
}

/// Returns path and bounds of `{$and: [{$gte: ["$path", low]}, {$lt: ["$path", high]}]}`.
fn range(case: &Expression) -> Option<(&FieldPath, Value<'_>, Value<'_>)> {
    let [low, high] = &called(case, "$and")?.args[..] else { return None };
    let [low_path, low] = &called(low, "$gte")?.args[..] else { return None };
    let [high_path, high] = &called(high, "$lt")?.args[..] else { return None };
    let (ExpressionNode::Path(path), ExpressionNode::Path(other)) =
        (low_path.node(), high_path.node())
    else {
        return None;
    };
    (path.to_string() == other.to_string()).then_some(())?;
    Some((path, low.as_constant()?, high.as_constant()?))
}

fn called<'e>(expression: &'e Expression, name: &str) -> Option<&'e Call> {
    match expression.node() {
        ExpressionNode::Call(call) if call.name() == name => Some(call),
        _ => None,
    }
}
