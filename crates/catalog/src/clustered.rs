//! `clusteredIndex` and `expireAfterSeconds` of `create`: a collection whose natural order is the
//! order of `_id`. Its documents have record ids as in any collection. The order comes from the
//! `_id` index, which users see as the clustered index; it is not listed among the collection's
//! indexes.

use quire_document::decimal::Rounding;
use quire_document::{Doc, DocBuf, Value, doc};
use quire_error::{Error, ErrorCode, Result};

use crate::index_pattern::{decimal_is_zero, number};

/// The largest `_id` in bytes, counted as MongoDB counts them in a record id.
pub const CLUSTERED_ID_BYTES_MAX: usize = 8 << 20;

/// Returns the option as `listCollections` shows it; `None` if the value is false.
///
/// # Errors
/// `TypeMismatch` for a value that is not a document, 5979703 for `true`, 40414 without `key` or
/// `unique`, 40415 for an unknown field, 197 for another key pattern than `{_id: 1}`, 5979700 if it
/// is not unique, 5979704 for another version than 2.
pub(crate) fn parse(value: Value<'_>) -> Result<Option<DocBuf>> {
    let spec = match value {
        Value::Document(spec) => spec,
        value => {
            return match truth(value) {
                Some(false) => Ok(None),
                Some(true) => Err(Error::location(
                    5979703,
                    "the 'clusteredIndex' legacy format {clusteredIndex: <bool>} is only supported for specific internal collections",
                )),
                None => Err(wrong_type(
                    "clusteredIndex",
                    value,
                    "[bool, object, long, int, decimal, double]",
                )),
            };
        }
    };
    let (mut key, mut unique, mut name) = (None, None, "_id_");
    for (field, value) in spec.fields() {
        let path = format!("clusteredIndex.{field}");
        match (field, value) {
            ("key" | "unique" | "name" | "v", Value::Null | Value::Undefined) => {}
            ("key", Value::Document(pattern)) => key = Some(pattern),
            ("key", other) => return Err(wrong_type(&path, other, "object")),
            ("unique", value) => match truth(value) {
                Some(flag) => unique = Some(flag),
                None => {
                    let expected = "[bool, long, int, decimal, double]";
                    return Err(wrong_type(&path, value, expected));
                }
            },
            ("name", Value::String(text)) => name = text,
            ("name", other) => return Err(wrong_type(&path, other, "string")),
            ("v", value) => check_version(&path, value)?,
            _ => {
                let text = format!("BSON field 'create.{path}' is an unknown field.");
                return Err(Error::location(40415, text));
            }
        }
    }
    let key = key.ok_or_else(|| missing("key"))?;
    let unique = unique.ok_or_else(|| missing("unique"))?;
    let mut fields = key.fields();
    let ascends = |value| quire_document::equal(value, Value::Int32(1), None);
    if !matches!((fields.next(), fields.next()), (Some(("_id", way)), None) if ascends(way)) {
        let text = "The clusteredIndex option is only supported for key: {_id: 1}";
        return Err(Error::new(ErrorCode::InvalidIndexSpecificationOption, text));
    }
    if !unique {
        let text = "The clusteredIndex option requires unique: true to be specified";
        return Err(Error::location(5979700, text));
    }
    Ok(Some(doc! { "v": 2, "key": { "_id": 1 }, "name": name, "unique": true }))
}

/// Checks that `clusteredIndex` is compatible with the other options of `create`.
///
/// # Errors
/// 6049200 with `capped`, 6049204 with `max`, 6026500 with `viewOn`, `InvalidOptions` with
/// `timeseries` or `idIndex`.
pub fn check_beside(fields: Doc<'_>) -> Result<()> {
    let given = |name: &str| fields.get(name).is_some_and(|value| !value.is_nullish());
    if !given("clusteredIndex") {
        return Ok(());
    }
    let is_true = |name: &str| fields.get(name).and_then(truth) == Some(true);
    if is_true("capped") {
        let text = "the 'clusteredIndex' option is not supported on capped collections";
        return Err(Error::location(6049200, text));
    }
    if given("viewOn") {
        let text = "the 'clusteredIndex' option is not supported with views";
        return Err(Error::location(6026500, text));
    }
    if !matches!(fields.get("clusteredIndex"), Some(Value::Document(_))) {
        return Ok(());
    }
    if given("max") {
        let text = "the 'max' option is not supported on clustered collections";
        return Err(Error::location(6049204, text));
    }
    for option in ["timeseries", "idIndex"] {
        if given(option) {
            let text = format!("'clusteredIndex' is not allowed with '{option}'");
            return Err(Error::new(ErrorCode::InvalidOptions, text));
        }
    }
    Ok(())
}

/// Returns the seconds of `expireAfterSeconds`. Truncates a double, rounds a decimal half to even,
/// and returns 0 for NaN.
///
/// # Errors
/// `InvalidOptions` if the seconds are negative, exceed `now_ms`, or overflow 64 bits in
/// milliseconds.
pub fn parse_expiry(value: Value<'_>, now_ms: i64) -> Result<i64> {
    let invalid = |text: &str| Err(Error::new(ErrorCode::InvalidOptions, text));
    let seconds = match value {
        value if value.is_number() => whole(value),
        other => {
            return Err(wrong_type("expireAfterSeconds", other, "[long, int, decimal, double]"));
        }
    };
    if seconds < 0 {
        return invalid("TTL index 'expireAfterSeconds' option cannot be less than 0");
    }
    match seconds.checked_mul(1000) {
        None => invalid(
            "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a lower number",
        ),
        Some(ms) if ms > now_ms => invalid(
            "TTL index 'expireAfterSeconds' option is larger than the current time since 1970",
        ),
        Some(_) => Ok(seconds),
    }
}

/// Fails if the `_id` is larger than MongoDB allows in a record id. (MongoDB stores the `_id` of a
/// clustered collection in its record ids.)
///
/// # Errors
/// Code 5894900 if it is.
pub fn check_clustered_id(id: Value<'_>) -> Result<()> {
    let bytes = match id {
        Value::String(text) => text.len() + 2,
        Value::Binary(binary) => binary.bytes.len() + 7,
        Value::Document(doc) => doc.len(),
        _ => return Ok(()),
    };
    if bytes <= CLUSTERED_ID_BYTES_MAX {
        return Ok(());
    }
    let text = format!("RecordId too large: {bytes} bytes, at most {CLUSTERED_ID_BYTES_MAX}");
    Err(Error::location(5894900, text))
}

fn check_version(path: &str, value: Value<'_>) -> Result<()> {
    if !value.is_number() {
        return Err(wrong_type(path, value, "[long, int, decimal, double]"));
    }
    if whole(value) == 2 {
        return Ok(());
    }
    let text = "the 'clusteredIndex' option supports only version 2";
    Err(Error::location(5979704, text))
}

/// Converts a number to a long. Truncates a double, rounds a decimal half to even, returns the
/// nearest long for a number out of range, and 0 for NaN.
pub fn whole(value: Value<'_>) -> i64 {
    match value {
        Value::Int32(number) => i64::from(number),
        Value::Int64(number) => number,
        Value::Double(number) => number as i64,
        Value::Decimal(number) if number.is_nan() => 0,
        Value::Decimal(number) => {
            let nearest = if number.is_negative() { i64::MIN } else { i64::MAX };
            number.to_i64_rounded(Rounding::HalfEven).unwrap_or(nearest)
        }
        _ => 0,
    }
}

/// Returns the truth value of a bool or a number; `None` for other types.
pub(crate) fn truth(value: Value<'_>) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(flag),
        Value::Decimal(decimal) => Some(!decimal_is_zero(decimal)),
        other => number(other).map(|number| number != 0.0),
    }
}

fn missing(field: &str) -> Error {
    let text =
        format!("BSON field 'create.clusteredIndex.{field}' is missing but a required field");
    Error::location(40414, text)
}

fn wrong_type(path: &str, value: Value<'_>, expected: &str) -> Error {
    let found = value.type_name();
    Error::type_mismatch(format!(
        "BSON field 'create.{path}' is the wrong type '{found}', expected types '{expected}'"
    ))
}
