//! `$dateFromString`.

use super::arguments::{format, on_null, present, type_name, zone};
use super::{format, lenient};
use crate::context::EvalContext;
use crate::expression::operator::{Arity, Call, Field, Fields, Operator};
use crate::text as shown;
use quire_document::Value;
use quire_error::{Error, ErrorCode, Result};

/// The registry rows of this family.
pub(in crate::expression) const OPERATORS: &[Operator] =
    &[Operator::function("$dateFromString", Arity::Named(&FIELDS), run)
        .doc("The date in a text, by a format or in a common notation.")
        .since("3.6")];

const FIELDS: Fields = Fields {
    fields: &[
        Field::required("dateString", 40542),
        Field::optional("format"),
        Field::optional("timezone"),
        Field::optional("onNull"),
        Field::optional("onError"),
    ],
    not_object: 40540,
    unknown: 40541,
};

fn run<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let value = present(call, 0, cx)?;
    let format = format(call, 1, cx, format::FROM_TEXT, 40684)?;
    let zone = zone(call, 2, cx)?;
    let Some(value) = value else { return on_null(call, 3, cx) };
    match read(value, call.has(1), format, call.has(2), zone) {
        Ok(millis) => Ok(Some(millis.map_or(Value::Null, Value::Date))),
        Err(error) if error.code() == ErrorCode::ConversionFailure && call.has(4) => {
            call.eval(4, cx)
        }
        Err(error) => Err(error),
    }
}

/// Parses a text as a date. Returns `None` if the zone or the format is null, so that the result is
/// null.
fn read(
    value: Value<'_>,
    has_format: bool,
    format: Option<&str>,
    has_zone: bool,
    zone: Option<super::zone::Zone>,
) -> Result<Option<i64>> {
    let fail = |message: String| Err(Error::new(ErrorCode::ConversionFailure, message));
    let Value::String(text) = value else {
        return fail(format!(
            "$dateFromString requires that 'dateString' be a string, found: {} with value {}",
            type_name(Some(value)),
            shown::value(value)
        ));
    };
    let Some(zone) = zone else { return Ok(None) };
    let reading = match (has_format, format) {
        (true, Some(format)) => format::read(text, format),
        (true, None) => return Ok(None),
        (false, _) => lenient::read(text),
    };
    let reading = match reading {
        Ok(reading) => reading,
        Err(message) => return fail(format!("Error parsing date string '{text}'; 0: {message}")),
    };
    if has_zone && reading.offset_seconds.is_some() && !zone.is_utc() {
        return fail(format!(
            "you cannot pass in a date/time string with time zone information ('{text}') together with a timezone argument"
        ));
    }
    match reading.millis(&zone) {
        Some(millis) => Ok(Some(millis)),
        None => fail(format!("Error parsing date string '{text}'; 0: The date does not fit")),
    }
}
