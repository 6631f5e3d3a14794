//! Conversions between numbers, strings, dates, object ids and booleans.

use super::super::dates::{millis, parse_text};
use super::{failure, hexadecimal, unsupported};
use crate::context::EvalContext;
use quire_document::calendar::iso_text;
use quire_document::number::conversion_text;
use quire_document::{Decimal128, ObjectId, Value};
use quire_error::{Error, Result};

/// Returns false for zero, false and null, and true for everything else.
pub(super) fn truth(value: Value<'_>) -> bool {
    super::super::is_true(Some(value))
}

pub(super) fn to_string<'a>(value: Value<'a>, cx: &EvalContext<'a>) -> Result<Value<'a>> {
    let text = match value {
        Value::String(_) => return Ok(value),
        Value::Double(number) => conversion_text(number),
        Value::Int32(number) => number.to_string(),
        Value::Int64(number) => number.to_string(),
        Value::Decimal(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::ObjectId(id) => id.to_string(),
        Value::Date(millis) => date_text(millis)?,
        other => return Err(unsupported(other, "string")),
    };
    cx.string(&text)
}

/// Returns the ISO 8601 text; only for the years 0 to 9999.
fn date_text(millis: i64) -> Result<String> {
    const YEAR_0: i64 = -62_167_219_200_000;
    const YEAR_10000: i64 = 253_402_300_800_000;
    if (YEAR_0..YEAR_10000).contains(&millis) {
        return Ok(iso_text(millis));
    }
    let text = "Could not convert date to string: date component was outside the supported range of 0-9999";
    Err(Error::location(18537, text))
}

/// Truncates a double to an integer, which must be within `least..=most`.
fn cut(number: f64, least: i64, most: i64) -> Result<i64> {
    if number.is_nan() {
        return Err(failure(
            "Attempt to convert NaN value to integer type in $convert with no onError value",
        ));
    }
    if number.is_infinite() {
        return Err(failure(
            "Attempt to convert infinity value to integer type in $convert with no onError value",
        ));
    }
    let cut = number.trunc();
    // The largest long is not a double, and the next double above it is out of range.
    if cut < least as f64 || cut >= most as f64 + 1.0 {
        return Err(overflow(&conversion_text(number)));
    }
    Ok(cut as i64)
}

fn overflow(text: &str) -> Error {
    failure(format!(
        "Conversion would overflow target type in $convert with no onError value: {text}"
    ))
}

fn cut_decimal(number: Decimal128, least: i64, most: i64) -> Result<i64> {
    if number.is_nan() || number.is_infinite() {
        return cut(number.to_f64(), least, most);
    }
    match number.to_i64_truncated() {
        Some(cut) if (least..=most).contains(&cut) => Ok(cut),
        _ => Err(overflow(&number.to_string())),
    }
}

/// Parses decimal digits with an optional sign.
fn whole_text(text: &str, least: i64, most: i64) -> Result<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let text =
            format!("Failed to parse number '{text}' in $convert with no onError value: Bad digit");
        return Err(failure(text));
    }
    match text.parse::<i64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => {
            let text = format!(
                "Failed to parse number '{text}' in $convert with no onError value: Overflow"
            );
            Err(failure(text))
        }
    }
}

fn to_whole(value: Value<'_>, least: i64, most: i64, target: &str) -> Result<i64> {
    match value {
        Value::Int32(number) => Ok(number.into()),
        Value::Int64(number) if (least..=most).contains(&number) => Ok(number),
        Value::Int64(number) => Err(overflow(&number.to_string())),
        Value::Double(number) => cut(number, least, most),
        Value::Decimal(number) => cut_decimal(number, least, most),
        Value::Bool(flag) => Ok(flag.into()),
        Value::String(text) => whole_text(text, least, most),
        other => Err(unsupported(other, target)),
    }
}

pub(super) fn to_int(value: Value<'_>) -> Result<Value<'_>> {
    to_whole(value, i32::MIN.into(), i32::MAX.into(), "int")
        .map(|number| Value::Int32(number as i32))
}

pub(super) fn to_long(value: Value<'_>) -> Result<Value<'_>> {
    if let Value::Date(millis) = value {
        return Ok(Value::Int64(millis));
    }
    to_whole(value, i64::MIN, i64::MAX, "long").map(Value::Int64)
}

pub(super) fn to_double(value: Value<'_>) -> Result<Value<'_>> {
    let number = match value {
        Value::Double(number) => number,
        Value::Int32(number) => number.into(),
        Value::Int64(number) => number as f64,
        Value::Decimal(number) => {
            let double = number.to_f64();
            if double.is_infinite() && !number.is_infinite() {
                return Err(overflow(&number.to_string()));
            }
            double
        }
        Value::Bool(flag) => f64::from(u8::from(flag)),
        Value::Date(millis) => millis as f64,
        Value::String(text) => double_text(text)?,
        other => return Err(unsupported(other, "double")),
    };
    Ok(Value::Double(number))
}

fn double_text(text: &str) -> Result<f64> {
    let bad = |why: &str| {
        failure(format!("Failed to parse number '{text}' in $convert with no onError value: {why}"))
    };
    let number = match text.parse::<f64>().ok().or_else(|| hexadecimal::double(text)) {
        Some(number) => number,
        None => return Err(bad("Did not consume whole string.")),
    };
    let too_large = number.is_infinite() && !is_infinity_text(text);
    if too_large || (number == 0.0 && !is_zero_text(text)) {
        Err(bad("Out of range"))
    } else {
        Ok(number)
    }
}

fn is_infinity_text(text: &str) -> bool {
    text.trim_start_matches(['+', '-']).starts_with(['i', 'I'])
}

/// Returns true if all digits before the exponent are 0.
fn is_zero_text(text: &str) -> bool {
    let unsigned = text.trim_start_matches(['+', '-']);
    match unsigned.strip_prefix(['0']).and_then(|rest| rest.strip_prefix(['x', 'X'])) {
        Some(digits) => digits.bytes().take_while(|byte| !matches!(byte, b'p' | b'P')).all(is_zero),
        None => unsigned.bytes().take_while(|byte| !matches!(byte, b'e' | b'E')).all(is_zero),
    }
}

fn is_zero(digit: u8) -> bool {
    matches!(digit, b'0' | b'.')
}

pub(super) fn to_decimal(value: Value<'_>) -> Result<Value<'_>> {
    let number = match value {
        Value::Decimal(number) => number,
        Value::Double(number) => Decimal128::from_f64(number),
        Value::Int32(number) => Decimal128::from_i32(number),
        Value::Int64(number) => Decimal128::from_i64(number),
        Value::Bool(flag) => Decimal128::from_i32(flag.into()),
        Value::Date(millis) => Decimal128::from_i64(millis),
        Value::String(text) => decimal_text(text)?,
        other => return Err(unsupported(other, "decimal")),
    };
    Ok(Value::Decimal(number))
}

fn decimal_text(text: &str) -> Result<Decimal128> {
    let number = Decimal128::parse_truncated(text).filter(|number| {
        let too_large = number.is_infinite() && !is_infinity_text(text);
        !too_large && (!number.is_zero() || is_zero_text(text))
    });
    number.ok_or_else(|| {
        failure(format!("Failed to parse number '{text}' in $convert with no onError value: Failed to parse string to decimal"))
    })
}

pub(super) fn to_date(value: Value<'_>) -> Result<Value<'_>> {
    let millis = match value {
        Value::Int64(millis) => millis,
        Value::Double(number) => cut(number, i64::MIN, i64::MAX)?,
        Value::Decimal(number) => cut_decimal(number, i64::MIN, i64::MAX)?,
        Value::String(text) => parse_text(text)
            .map_err(|why| failure(format!("Error parsing date string '{text}'; {why}")))?,
        other => millis(other).ok_or_else(|| unsupported(other, "date"))?,
    };
    Ok(Value::Date(millis))
}

pub(super) fn to_object_id(value: Value<'_>) -> Result<Value<'_>> {
    match value {
        Value::ObjectId(_) => Ok(value),
        Value::String(text) => ObjectId::parse(text).map(Value::ObjectId).ok_or_else(|| {
            failure(format!(
                "Failed to parse objectId '{text}' in $convert with no onError value: Invalid string length for parsing to OID, expected 24 but found {}",
                text.len()
            ))
        }),
        other => Err(unsupported(other, "objectId")),
    }
}
