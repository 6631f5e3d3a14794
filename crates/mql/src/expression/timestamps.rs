//! `$tsSecond` and `$tsIncrement`: the parts of a timestamp.

use super::operator::{Arity, Call, Operator};
use crate::context::EvalContext;
use quire_document::{Timestamp, Value};
use quire_error::{Error, Result};

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] = &[
    Operator::function("$tsIncrement", Arity::Exactly(1), |call, cx| {
        part(call, cx, 5687302, |timestamp| timestamp.increment)
    })
    .doc("The increment of a timestamp.")
    .since("5.1"),
    Operator::function("$tsSecond", Arity::Exactly(1), |call, cx| {
        part(call, cx, 5687301, |timestamp| timestamp.seconds)
    })
    .doc("The seconds of a timestamp.")
    .since("5.1"),
];

fn part<'a>(
    call: &'a Call,
    cx: &EvalContext<'a>,
    code: i32,
    take: fn(Timestamp) -> u32,
) -> Result<Option<Value<'a>>> {
    match call.eval(0, cx)? {
        None | Some(Value::Null | Value::Undefined) => Ok(Some(Value::Null)),
        Some(Value::Timestamp(timestamp)) => Ok(Some(Value::Int64(take(timestamp).into()))),
        Some(other) => {
            let found = other.type_name();
            let text = format!(" Argument to {} must be a timestamp, but is {found}", call.name());
            Err(Error::location(code, text))
        }
    }
}
