//! Conversion of arguments to strings.

use quire_document::calendar::iso_text;
use quire_document::{Timestamp, Value};
use quire_error::{Error, Result};
use std::borrow::Cow;

/// Returns the string. For other types fails with `message` and the type.
pub(super) fn text_of<'a>(value: Option<Value<'a>>, code: i32, message: &str) -> Result<&'a str> {
    match value {
        Some(Value::String(text)) => Ok(text),
        other => {
            let found = other.map_or("missing", |value| value.type_name());
            Err(Error::location(code, format!("{message}{found}")))
        }
    }
}

/// Returns strings, code and symbols unchanged; numbers, dates and timestamps as text; null and
/// missing values as the empty string. Fails with 16007 for other types.
pub(in crate::expression) fn coerced_text(value: Option<Value<'_>>) -> Result<Cow<'_, str>> {
    Ok(match value {
        None | Some(Value::Null | Value::Undefined) => Cow::Borrowed(""),
        Some(Value::String(text) | Value::Code(text) | Value::Symbol(text)) => Cow::Borrowed(text),
        Some(Value::Int32(number)) => Cow::Owned(number.to_string()),
        Some(Value::Int64(number)) => Cow::Owned(number.to_string()),
        Some(Value::Double(number)) => Cow::Owned(six_digits(number)),
        Some(Value::Decimal(number)) => Cow::Owned(number.to_string()),
        Some(Value::Date(millis)) => Cow::Owned(iso_text(millis)),
        Some(Value::Timestamp(time)) => Cow::Owned(timestamp_text(time)),
        Some(other) => {
            let text = format!("can't convert from BSON type {} to String", other.type_name());
            return Err(Error::location(16007, text));
        }
    })
}

/// Returns a double with six significant digits, in the format of C's `%g`.
pub(crate) fn six_digits(number: f64) -> String {
    if number.is_nan() {
        return "nan".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let text = format!("{number:.5e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..6).contains(&exponent) {
        let decimals = (5 - exponent).max(0) as usize;
        return trimmed(&format!("{number:.decimals$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs())
}

/// Returns a text like `Jan  1 00:00:00:42`: month, day, time and the increment.
fn timestamp_text(time: Timestamp) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let iso = iso_text(i64::from(time.seconds) * 1000);
    let part = |from: usize, to: usize| iso.get(from..to).unwrap_or_default();
    let month: usize = part(5, 7).parse().unwrap_or(1);
    let day: u32 = part(8, 10).parse().unwrap_or(1);
    let name = MONTHS.get(month.saturating_sub(1)).copied().unwrap_or_default();
    format!("{name} {day:2} {}:{}", part(11, 19), time.increment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_have_six_digits() {
        for (number, text) in [
            (42.0, "42"),
            (1.23456789, "1.23457"),
            (1e6, "1e+06"),
            (123456.0, "123456"),
            (1234567.0, "1.23457e+06"),
            (1e-10, "1e-10"),
            (-0.0, "-0"),
            (0.0001, "0.0001"),
        ] {
            assert_eq!(six_digits(number), text);
        }
        let time = Timestamp { seconds: 1_704_067_200, increment: 42 };
        assert_eq!(timestamp_text(time), "Jan  1 00:00:00:42");
    }
}
