//! Substrings: `$substrBytes` and `$substrCP`.

use super::super::operator::Call;
use super::coerce::coerced_text;
use crate::context::EvalContext;
use quire_document::Value;
use quire_document::decimal::Rounding;
use quire_document::number::Number;
use quire_error::{Error, Result};

pub(super) fn by_bytes<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let (text, start, length) = (call.eval(0, cx)?, call.eval(1, cx)?, call.eval(2, cx)?);
    let text = coerced_text(text)?;
    let name = call.name();
    let start = number(start, 16034, &format!("{name}:  starting index must be a numeric type"))?;
    let length = number(length, 16035, &format!("{name}:  length must be a numeric type"))?;
    if start < 0 {
        let text = format!("{name}:  starting index must be non-negative (got: {start})");
        return Err(Error::location(50752, text));
    }
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    if start >= text.len() {
        return cx.string("").map(Some);
    }
    if !text.is_char_boundary(start) {
        let text = format!("{name}:  Invalid range, starting index is a UTF-8 continuation byte.");
        return Err(Error::location(28656, text));
    }
    let end = match usize::try_from(length) {
        Ok(length) => start.saturating_add(length).min(text.len()),
        Err(_) => text.len(),
    };
    match text.get(start..end) {
        Some(part) => cx.string(part).map(Some),
        None => {
            let text = format!(
                "{name}:  Invalid range, ending index is in the middle of a UTF-8 character."
            );
            Err(Error::location(28657, text))
        }
    }
}

/// Converts a number to a long. Truncates a double (31109 if it is out of range), and rounds a
/// decimal half to even; a decimal out of range becomes the smallest long.
fn number(value: Option<Value<'_>>, code: i32, message: &str) -> Result<i64> {
    match value {
        Some(Value::Int32(number)) => Ok(number.into()),
        Some(Value::Int64(number)) => Ok(number),
        Some(Value::Double(number)) => {
            const LIMIT: f64 = 9_223_372_036_854_775_808.0;
            if !(-LIMIT..LIMIT).contains(&number) {
                let text = format!("Can't coerce out of range value {number} to long");
                return Err(Error::location(31109, text));
            }
            Ok(number as i64)
        }
        Some(Value::Decimal(number)) => {
            Ok(number.to_i64_rounded(Rounding::HalfEven).unwrap_or(i64::MIN))
        }
        other => {
            let found = other.map_or("missing", |value| value.type_name());
            Err(Error::location(code, format!("{message} (is BSON type {found})")))
        }
    }
}

pub(super) fn by_code_points<'a>(
    call: &'a Call,
    cx: &EvalContext<'a>,
) -> Result<Option<Value<'a>>> {
    let (text, start, count) = (call.eval(0, cx)?, call.eval(1, cx)?, call.eval(2, cx)?);
    let text = coerced_text(text)?;
    let start = whole(start, "starting index", (34450, 34451))?;
    let count = whole(count, "length", (34452, 34453))?;
    let count = not_negative(count, "length", 34454)?;
    let start = not_negative(start, "starting index", 34455)?;
    let part: String = text.chars().skip(start).take(count).collect();
    cx.string(&part).map(Some)
}

/// Returns an integer that fits in 32 bits. `codes` are the errors for other types and for other
/// numbers.
fn whole(value: Option<Value<'_>>, what: &str, codes: (i32, i32)) -> Result<i32> {
    let Some(number) = value.and_then(|value| value.as_number()) else {
        let found = value.map_or("missing", |value| value.type_name());
        let text = format!("$substrCP: {what} must be a numeric type (is BSON type {found})");
        return Err(Error::location(codes.0, text));
    };
    Number::exact_i64(number).and_then(|number| i32::try_from(number).ok()).ok_or_else(|| {
        let text = format!("$substrCP: {what} cannot be represented as a 32-bit integral value");
        Error::location(codes.1, text)
    })
}

fn not_negative(number: i32, what: &str, code: i32) -> Result<usize> {
    usize::try_from(number).map_err(|_| {
        Error::location(code, format!("$substrCP: the {what} must be a nonnegative integer"))
    })
}
