//! The types that stand in shapes in place of literals.

use quire_document::{Array, Doc, DocBuf, Value};
use std::borrow::Cow;

/// The type of a number in a shape.
pub(super) const NUMBER: &str = "?number";

/// Returns the text in place of a literal: `?number`. An array names the common type of its
/// elements, `?array<?number>`, so that its length is no part of the shape; `?array<>` stands for
/// mixed types, `[]` for no elements.
pub(super) fn of(value: Value<'_>) -> Cow<'static, str> {
    match value {
        Value::Array(array) => of_array(array),
        value => Cow::Borrowed(of_scalar(value)),
    }
}

/// Returns the document with a type in place of each value.
pub(super) fn of_fields(fields: Doc<'_>) -> DocBuf {
    DocBuf::build(|out| {
        for (name, value) in fields.fields() {
            out.append(name, &*of(value));
        }
    })
}

fn of_array(array: Array<'_>) -> Cow<'static, str> {
    let mut types = array.iter().map(of_scalar);
    let Some(first) = types.next() else { return Cow::Borrowed("[]") };
    match types.all(|other| other == first) {
        true if first == NUMBER => Cow::Borrowed("?array<?number>"),
        true => Cow::Owned(format!("?array<{first}>")),
        false => Cow::Borrowed("?array<>"),
    }
}

fn of_scalar(value: Value<'_>) -> &'static str {
    match value {
        Value::Double(_) | Value::Int32(_) | Value::Int64(_) | Value::Decimal(_) => NUMBER,
        Value::String(_) => "?string",
        Value::Document(_) => "?object",
        Value::Array(_) => "?array",
        Value::Binary(_) => "?binData",
        Value::Undefined => "?undefined",
        Value::ObjectId(_) => "?objectId",
        Value::Bool(_) => "?bool",
        Value::Date(_) => "?date",
        Value::Null => "?null",
        Value::Regex(_) => "?regex",
        Value::DbPointer(_) => "?dbPointer",
        Value::Code(_) => "?javascript",
        Value::Symbol(_) => "?symbol",
        Value::CodeWithScope(_) => "?javascriptWithScope",
        Value::Timestamp(_) => "?timestamp",
        Value::MinKey => "?minKey",
        Value::MaxKey => "?maxKey",
    }
}
