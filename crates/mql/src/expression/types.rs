//! `$type`, `$isNumber`, `$binarySize`, `$bsonSize`.

use super::array_access::type_name;
use super::operator::{Arity, Call, Operator};
use crate::context::EvalContext;
use quire_document::Value;
use quire_error::{Error, Result};

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] = &[
    Operator::function("$type", Arity::Exactly(1), |call, cx| {
        Ok(Some(Value::String(type_name(call.eval(0, cx)?))))
    })
    .doc("The alias of the argument's type, or \"missing\".")
    .total()
    .since("3.4"),
    Operator::function("$isNumber", Arity::Exactly(1), |call, cx| {
        Ok(Some(Value::Bool(call.eval(0, cx)?.is_some_and(|value| value.is_number()))))
    })
    .doc("True for int, long, double and decimal.")
    .total()
    .since("4.4"),
    Operator::function("$binarySize", Arity::Exactly(1), binary_size)
        .doc("The length of a string or binary value in bytes.")
        .since("4.4"),
    Operator::function("$bsonSize", Arity::Exactly(1), bson_size)
        .doc("The size of a document in bytes.")
        .since("4.4"),
];

fn binary_size<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let size = match call.eval(0, cx)? {
        None | Some(Value::Null | Value::Undefined) => return Ok(Some(Value::Null)),
        Some(Value::String(text)) => text.len(),
        Some(Value::Binary(binary)) => binary.bytes.len(),
        Some(other) => {
            let text = format!(
                "$binarySize requires a string or BinData argument, found: {}",
                other.type_name()
            );
            return Err(Error::location(51276, text));
        }
    };
    Ok(Some(Value::Int32(size as i32)))
}

fn bson_size<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    match call.eval(0, cx)? {
        None | Some(Value::Null | Value::Undefined) => Ok(Some(Value::Null)),
        Some(Value::Document(doc)) => Ok(Some(Value::Int32(doc.len() as i32))),
        Some(other) => {
            let text = format!("$bsonSize requires a document input, found: {}", other.type_name());
            Err(Error::location(31393, text))
        }
    }
}
