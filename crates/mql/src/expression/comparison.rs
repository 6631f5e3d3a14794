//! `$eq`, `$ne`, `$lt`, `$lte`, `$gt`, `$gte`, `$cmp`: comparisons in MongoDB's total order, across
//! types.

use super::operator::{Arity, Call, Operator};
use crate::context::{Collator, EvalContext};
use quire_document::{Value, compare};
use quire_error::Result;
use std::cmp::Ordering;

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] = &[
    Operator::function("$eq", Arity::Exactly(2), |call, cx| test(call, cx, Ordering::is_eq))
        .doc("True if both arguments are equal.")
        .total(),
    Operator::function("$ne", Arity::Exactly(2), |call, cx| test(call, cx, Ordering::is_ne))
        .doc("True if the arguments are not equal.")
        .total(),
    Operator::function("$lt", Arity::Exactly(2), |call, cx| test(call, cx, Ordering::is_lt))
        .doc("True if the first argument comes before the second.")
        .total(),
    Operator::function("$lte", Arity::Exactly(2), |call, cx| test(call, cx, Ordering::is_le))
        .doc("True if the first argument does not come after the second.")
        .total(),
    Operator::function("$gt", Arity::Exactly(2), |call, cx| test(call, cx, Ordering::is_gt))
        .doc("True if the first argument comes after the second.")
        .total(),
    Operator::function("$gte", Arity::Exactly(2), |call, cx| test(call, cx, Ordering::is_ge))
        .doc("True if the first argument does not come before the second.")
        .total(),
    Operator::function("$cmp", Arity::Exactly(2), cmp)
        .doc("The order of the first argument relative to the second: -1, 0 or 1.")
        .total(),
];

/// Compares two results. A missing value sorts like undefined, below null.
pub fn compare_results(
    left: Option<Value<'_>>,
    right: Option<Value<'_>>,
    collator: Option<&dyn Collator>,
) -> Ordering {
    match (left, right) {
        (Some(left), Some(right)) => compare(left, right, collator),
        (left, right) => {
            compare(left.unwrap_or(Value::Undefined), right.unwrap_or(Value::Undefined), collator)
        }
    }
}

fn order<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Ordering> {
    Ok(compare_results(call.eval(0, cx)?, call.eval(1, cx)?, cx.collator()))
}

fn test<'a>(
    call: &'a Call,
    cx: &EvalContext<'a>,
    holds: fn(Ordering) -> bool,
) -> Result<Option<Value<'a>>> {
    Ok(Some(Value::Bool(holds(order(call, cx)?))))
}

fn cmp<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    Ok(Some(Value::Int32(order(call, cx)? as i32)))
}
