//! The common arguments of date operators.

use super::zone::Zone;
use crate::context::EvalContext;
use crate::expression::{Call, Expression};
use crate::text;
use quire_document::Value;
use quire_error::{Error, ErrorCode, Result};

/// Evaluates an argument; `None` if it is null or missing.
pub(super) fn present<'a>(
    call: &'a Call,
    index: usize,
    cx: &EvalContext<'a>,
) -> Result<Option<Value<'a>>> {
    Ok(call.eval(index, cx)?.filter(|value| !value.is_nullish()))
}

/// Returns the name of the type, or `missing`.
pub(super) fn type_name(value: Option<Value<'_>>) -> &'static str {
    value.map_or("missing", |value| value.type_name())
}

/// Returns the milliseconds of a date, a timestamp or an object id; `None` for other types.
pub(crate) fn millis(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Date(millis) => Some(millis),
        Value::Timestamp(timestamp) => Some(i64::from(timestamp.seconds) * 1000),
        // mongod treats an object id's seconds as a signed number.
        Value::ObjectId(id) => Some(i64::from(id.seconds() as i32) * 1000),
        _ => None,
    }
}

/// Like `millis`, but fails with 16006 for other types.
pub(super) fn date(value: Value<'_>) -> Result<i64> {
    millis(value).ok_or_else(|| {
        let message = format!("can't convert from BSON type {} to Date", value.type_name());
        Error::location(16006, message)
    })
}

/// Evaluates argument `index` as a time zone: UTC if it was not given, `None` if it is null or
/// missing.
pub(super) fn zone<'a>(call: &'a Call, index: usize, cx: &EvalContext<'a>) -> Result<Option<Zone>> {
    zone_of(call.arg(index), cx)
}

fn zone_of<'a>(argument: Option<&'a Expression>, cx: &EvalContext<'a>) -> Result<Option<Zone>> {
    let Some(argument) = argument else { return Ok(Some(Zone::Utc)) };
    match argument.eval(cx)? {
        None | Some(Value::Null | Value::Undefined) => Ok(None),
        Some(Value::String(text)) => Zone::parse(text).map(Some),
        Some(other) => {
            let message =
                format!("timezone must evaluate to a string, found {}", other.type_name());
            Err(Error::location(40517, message))
        }
    }
}

/// Evaluates argument `index` as a format and checks that it has only the specifiers in `known`.
/// Returns `None` if it is missing or null, and fails with `code` if it is not a string.
pub(super) fn format<'a>(
    call: &'a Call,
    index: usize,
    cx: &EvalContext<'a>,
    known: &str,
    code: i32,
) -> Result<Option<&'a str>> {
    let Some(format) = present(call, index, cx)? else { return Ok(None) };
    let Value::String(format) = format else {
        let message = format!(
            "{} requires that 'format' be a string, found: {} with value {}",
            call.name(),
            format.type_name(),
            text::value(format)
        );
        return Err(Error::location(code, message));
    };
    super::format::check(format, known)?;
    Ok(Some(format))
}

/// Returns the result for a null date: argument `index` (`onNull`), or null.
pub(super) fn on_null<'a>(
    call: &'a Call,
    index: usize,
    cx: &EvalContext<'a>,
) -> Result<Option<Value<'a>>> {
    if call.has(index) { call.eval(index, cx) } else { Ok(Some(Value::Null)) }
}

/// Returns the error for a calendar date that does not fit in a 64-bit date.
pub(super) fn does_not_fit() -> Error {
    Error::new(ErrorCode::DurationOverflow, "the date does not fit")
}

/// Returns the value as a long, if it is an integer of any numeric type.
pub(super) fn whole(value: Value<'_>) -> Option<i64> {
    value.as_number().and_then(|number| number.exact_i64())
}
