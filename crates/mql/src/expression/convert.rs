//! `$convert` and its short forms: converts a value to another type, with an error that `onError`
//! catches. (Manual: "$convert (aggregation)", its tables of results by type.)

mod binary;
mod hexadecimal;
mod scalar;
mod target;

use super::operator::{Arity, Call, Field, Fields, Operator};
use crate::context::EvalContext;
use quire_document::{Type, Value};
use quire_error::{Error, ErrorCode, Result};
use target::{ByteOrder, Format, Target};

const FIELDS: Fields = Fields {
    fields: &[
        Field::required("input", 9),
        Field::required("to", 9),
        Field::optional("onError"),
        Field::optional("onNull"),
        Field::optional("format"),
        Field::optional("byteOrder"),
    ],
    not_object: 9,
    unknown: 9,
};
const INPUT: usize = 0;
const TO: usize = 1;
const ON_ERROR: usize = 2;
const ON_NULL: usize = 3;
const FORMAT: usize = 4;
const BYTE_ORDER: usize = 5;

/// Defines the short form for a target type.
macro_rules! shorthand {
    ($name:literal, $kind:expr, $doc:literal) => {
        Operator::checked($name, Arity::Any, one_argument, |call, cx| to(call, cx, $kind))
            .doc($doc)
            .since("4.0")
    };
}

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] = &[
    Operator::function("$convert", Arity::Named(&FIELDS), convert)
        .doc("A value as another type.")
        .since("4.0"),
    shorthand!("$toBool", Type::Bool, "A value as a boolean."),
    shorthand!("$toDate", Type::Date, "A value as a date."),
    shorthand!("$toDecimal", Type::Decimal, "A value as a decimal."),
    shorthand!("$toDouble", Type::Double, "A value as a double."),
    shorthand!("$toInt", Type::Int32, "A value as an int."),
    shorthand!("$toLong", Type::Int64, "A value as a long."),
    shorthand!("$toObjectId", Type::ObjectId, "A value as an object id."),
    shorthand!("$toString", Type::String, "A value as a string."),
    Operator::checked("$toUUID", Arity::Any, one_argument, to_uuid)
        .doc("A string as a UUID.")
        .since("8.0"),
];

/// The options of a conversion, except its target.
#[derive(Clone, Copy)]
struct Options {
    format: Option<Format>,
    byte_order: ByteOrder,
}

fn one_argument(call: &Call) -> Result<()> {
    if call.args.len() == 1 {
        return Ok(());
    }
    let text = format!("{} requires a single argument, got {}", call.name(), call.args.len());
    Err(Error::location(50723, text))
}

fn is_null(value: Option<Value<'_>>) -> bool {
    value.is_none_or(|value| value.is_nullish())
}

fn to<'a>(call: &'a Call, cx: &EvalContext<'a>, kind: Type) -> Result<Option<Value<'a>>> {
    let options = Options { format: Some(Format::Auto), byte_order: ByteOrder::Little };
    run(call.eval(0, cx)?, Target::of(kind), options, cx)
}

fn to_uuid<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let options = Options { format: Some(Format::Uuid), byte_order: ByteOrder::Little };
    run(call.eval(0, cx)?, Target { kind: Type::Binary, subtype: 4 }, options, cx)
}

fn run<'a>(
    input: Option<Value<'a>>,
    target: Target,
    options: Options,
    cx: &EvalContext<'a>,
) -> Result<Option<Value<'a>>> {
    match input {
        Some(value) if !value.is_nullish() => value_to(value, target, options, cx).map(Some),
        _ => Ok(Some(Value::Null)),
    }
}

fn convert<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let (input, to) = (call.eval(INPUT, cx)?, call.eval(TO, cx)?);
    let for_null = || match call.has(ON_NULL) {
        true => call.eval(ON_NULL, cx),
        false => Ok(Some(Value::Null)),
    };
    let Some(to) = to.filter(|to| !to.is_nullish()) else {
        return if is_null(input) { for_null() } else { Ok(Some(Value::Null)) };
    };
    let kind = target::parse_kind(to)?;
    let Some(input) = input.filter(|input| !input.is_nullish()) else { return for_null() };
    let subtype = target::parse_subtype(to, kind)?;
    let byte_order = target::parse_byte_order(call.eval(BYTE_ORDER, cx)?)?;
    let format = target::parse_format(call.eval(FORMAT, cx)?)?;
    let converted = match kind {
        Some(kind) => value_to(input, Target { kind, subtype }, Options { format, byte_order }, cx),
        None => Err(unsupported(input, "missing")),
    };
    match converted {
        Ok(value) => Ok(Some(value)),
        Err(error) if call.has(ON_ERROR) && is_caught(&error) => call.eval(ON_ERROR, cx),
        Err(error) => Err(error),
    }
}

/// Returns true for errors that `onError` catches: failed conversions, but not invalid requests.
fn is_caught(error: &Error) -> bool {
    let year_range = ErrorCode::location(18537);
    let too_long = ErrorCode::location(16493);
    error.code() == ErrorCode::ConversionFailure
        || error.code() == year_range
        || error.code() == too_long
}

/// Returns the error 241 ConversionFailure.
fn failure(text: impl Into<String>) -> Error {
    Error::new(ErrorCode::ConversionFailure, text)
}

fn unsupported(value: Value<'_>, target: &str) -> Error {
    failure(format!(
        "Unsupported conversion from {} to {target} in $convert with no onError value",
        value.type_name()
    ))
}

/// Converts one value to another type.
fn value_to<'a>(
    value: Value<'a>,
    target: Target,
    options: Options,
    cx: &EvalContext<'a>,
) -> Result<Value<'a>> {
    match (value, target.kind) {
        (value, Type::Bool) => Ok(Value::Bool(scalar::truth(value))),
        (Value::Binary(binary), Type::String) => binary::to_string(binary, options, cx),
        (value, Type::String) => scalar::to_string(value, cx),
        (value, Type::Binary) => binary::from_value(value, target.subtype, options, cx),
        (Value::Binary(binary), kind @ (Type::Int32 | Type::Int64 | Type::Double)) => {
            binary::to_number(binary, kind, options.byte_order)
        }
        (value, Type::Int32) => scalar::to_int(value),
        (value, Type::Int64) => scalar::to_long(value),
        (value, Type::Double) => scalar::to_double(value),
        (value, Type::Decimal) => scalar::to_decimal(value),
        (value, Type::Date) => scalar::to_date(value),
        (value, Type::ObjectId) => scalar::to_object_id(value),
        (value, kind) => Err(unsupported(value, kind.alias())),
    }
}
