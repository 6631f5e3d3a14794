//! `$bitAnd`, `$bitOr`, `$bitXor`, `$bitNot` over int and long.

use super::operator::{Arity, Call, Operator};
use crate::context::EvalContext;
use quire_document::Value;
use quire_error::{Error, Result};

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] = &[
    Operator::function("$bitAnd", Arity::Any, |call, cx| combine(call, cx, -1, |a, b| a & b))
        .doc("Bitwise and of ints and longs.")
        .since("6.3"),
    Operator::function("$bitOr", Arity::Any, |call, cx| combine(call, cx, 0, |a, b| a | b))
        .doc("Bitwise or of ints and longs.")
        .since("6.3"),
    Operator::function("$bitXor", Arity::Any, |call, cx| combine(call, cx, 0, |a, b| a ^ b))
        .doc("Bitwise exclusive or of ints and longs.")
        .since("6.3"),
    Operator::function("$bitNot", Arity::Exactly(1), not)
        .doc("Bitwise complement of an int or a long.")
        .since("6.3"),
];

fn unsupported(call: &Call, value: Value<'_>) -> Error {
    let text = format!("{} only supports int and long, not: {}", call.name(), value.type_name());
    Error::type_mismatch(text)
}

fn combine<'a>(
    call: &'a Call,
    cx: &EvalContext<'a>,
    identity: i64,
    operation: fn(i64, i64) -> i64,
) -> Result<Option<Value<'a>>> {
    let (mut result, mut long) = (identity, false);
    for arg in &call.args {
        let number = match arg.eval(cx)? {
            None | Some(Value::Null | Value::Undefined) => return Ok(Some(Value::Null)),
            Some(Value::Int32(number)) => i64::from(number),
            Some(Value::Int64(number)) => {
                long = true;
                number
            }
            Some(other) => return Err(unsupported(call, other)),
        };
        result = operation(result, number);
    }
    Ok(Some(if long { Value::Int64(result) } else { Value::Int32(result as i32) }))
}

fn not<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    match call.eval(0, cx)? {
        None | Some(Value::Null | Value::Undefined) => Ok(Some(Value::Null)),
        Some(Value::Int32(number)) => Ok(Some(Value::Int32(!number))),
        Some(Value::Int64(number)) => Ok(Some(Value::Int64(!number))),
        Some(other) => Err(unsupported(call, other)),
    }
}
