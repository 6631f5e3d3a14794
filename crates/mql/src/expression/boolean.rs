//! `$and`, `$or`, `$not`, and the truth of a value.

use super::operator::{Arity, Call, Operator};
use crate::context::EvalContext;
use quire_document::Value;
use quire_error::Result;

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] = &[
    Operator::function("$and", Arity::Any, and)
        .doc("True if all arguments are true, or if there are none.")
        .decided_by(false)
        .total(),
    Operator::function("$or", Arity::Any, or)
        .doc("True if any argument is true; false if there are none.")
        .decided_by(true)
        .total(),
    Operator::function("$not", Arity::Exactly(1), not)
        .doc("True if the argument is false.")
        .total(),
];

/// Returns false for missing, null, undefined, false and zero, and true for everything else, NaN
/// included.
pub fn is_true(value: Option<Value<'_>>) -> bool {
    match value {
        None | Some(Value::Null | Value::Undefined) => false,
        Some(Value::Bool(flag)) => flag,
        Some(Value::Int32(number)) => number != 0,
        Some(Value::Int64(number)) => number != 0,
        Some(Value::Double(number)) => number != 0.0,
        Some(Value::Decimal(number)) => !number.is_zero(),
        Some(_) => true,
    }
}

fn and<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    for arg in &call.args {
        if !is_true(arg.eval(cx)?) {
            return Ok(Some(Value::Bool(false)));
        }
    }
    Ok(Some(Value::Bool(true)))
}

fn or<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    for arg in &call.args {
        if is_true(arg.eval(cx)?) {
            return Ok(Some(Value::Bool(true)));
        }
    }
    Ok(Some(Value::Bool(false)))
}

fn not<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    Ok(Some(Value::Bool(!is_true(call.eval(0, cx)?))))
}
