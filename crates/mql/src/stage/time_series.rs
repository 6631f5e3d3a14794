//! The options of a time-series collection as the target of `$out`. Such collections are not built,
//! but errors in the options are reported first.

use crate::options::Options;
use quire_document::Value;
use quire_error::{Error, ErrorCode, Result};

const OPTIONS: Options<'_> = Options("timeseries");

/// The longest span of a bucket, in seconds: 365 days.
const SPAN_MAX: i64 = 31_536_000;

/// Checks the value of `timeseries`, which is not null.
///
/// # Errors
/// 14 TypeMismatch for values of wrong types, 40414 without a `timeField`, 40415 for an unknown
/// field, 2 BadValue for an unknown granularity or a span out of range, 72 InvalidOptions unless
/// both spans are given and equal, or if they are given with a granularity.
pub(super) fn check(value: Value<'_>) -> Result<()> {
    let Value::Document(spec) = value else {
        return Err(Options("$out").wrong_type("timeseries", value, "object"));
    };
    let (mut has_time, mut has_granularity) = (false, false);
    let (mut span, mut rounding) = (None, None);
    for field in OPTIONS.fields(spec) {
        let (name, value) = field?;
        match (name, value) {
            (
                "timeField"
                | "metaField"
                | "granularity"
                | "bucketMaxSpanSeconds"
                | "bucketRoundingSeconds",
                Value::Null | Value::Undefined,
            )
            | ("metaField", Value::String(_)) => {}
            ("timeField", Value::String(_)) => has_time = true,
            ("granularity", Value::String("seconds" | "minutes" | "hours")) => {
                has_granularity = true;
            }
            ("granularity", Value::String(other)) => {
                let text = format!(
                    "Enumeration value '{other}' for field 'timeseries.granularity' is not a valid value."
                );
                return Err(Error::bad_value(text));
            }
            ("timeField" | "metaField" | "granularity", other) => {
                return Err(OPTIONS.wrong_type(name, other, "string"));
            }
            ("bucketMaxSpanSeconds", value) => span = Some(seconds(name, value)?),
            ("bucketRoundingSeconds", value) => rounding = Some(seconds(name, value)?),
            _ => return Err(OPTIONS.unknown(name)),
        }
    }
    if !has_time {
        return Err(OPTIONS.missing("timeField"));
    }
    let text = match (span, rounding) {
        (None, None) => return Ok(()),
        (Some(span), Some(rounding)) if span == rounding && !has_granularity => return Ok(()),
        (Some(_), Some(_)) if has_granularity => {
            "timeseries 'granularity' cannot be used with 'bucketMaxSpanSeconds'"
        }
        _ => {
            "timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' must both be set to the same value"
        }
    };
    Err(Error::new(ErrorCode::InvalidOptions, text))
}

/// Parses the span of a bucket in seconds.
fn seconds(name: &str, value: Value<'_>) -> Result<i64> {
    let seconds = OPTIONS.integer_from(1, name, value)?;
    if seconds > SPAN_MAX {
        let text =
            format!("BSON field '{name}' value must be <= {SPAN_MAX}, actual value '{seconds}'");
        return Err(Error::bad_value(text));
    }
    Ok(seconds)
}
