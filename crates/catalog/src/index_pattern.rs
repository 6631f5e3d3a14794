//! Key patterns: the fields of an index, their directions, and names of index kinds, which may
//! replace a direction.

use quire_document::limits::INDEX_FIELDS_MAX;
use quire_document::limits::PATH_COMPONENTS_MAX;
use quire_document::{Decimal128, Doc, Value};
use quire_error::{Error, ErrorCode, Result};

use crate::debug_doc;

/// Returns true if both patterns have the same fields in the same order with equal directions.
/// Numbers of different types compare by value.
pub(crate) fn same_pattern(left: Doc<'_>, right: Doc<'_>) -> bool {
    let (mut left, mut right) = (left.fields(), right.fields());
    loop {
        match (left.next(), right.next()) {
            (None, None) => return true,
            (Some((a, x)), Some((b, y))) if a == b && same_direction(x, y) => {}
            _ => return false,
        }
    }
}

fn same_direction(left: Value<'_>, right: Value<'_>) -> bool {
    match (number(left), number(right)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => match (left, right) {
            (Value::String(a), Value::String(b)) => a == b,
            (Value::Decimal(a), Value::Decimal(b)) => a == b,
            _ => false,
        },
        _ => false,
    }
}

pub(crate) fn number(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Int32(number) => Some(f64::from(number)),
        Value::Int64(number) => Some(number as f64),
        Value::Double(number) => Some(number),
        _ => None,
    }
}

pub(crate) fn is_id_pattern(key: Doc<'_>) -> bool {
    let mut fields = key.fields();
    matches!((fields.next(), fields.next()), (Some(("_id", direction)), None) if number(direction) == Some(1.0))
}

pub(crate) fn is_reversed_id(key: Doc<'_>) -> bool {
    let mut fields = key.fields();
    matches!((fields.next(), fields.next()), (Some(("_id", direction)), None) if number(direction) == Some(-1.0))
}

pub(crate) fn not_id_pattern(key: Doc<'_>) -> Error {
    Error::bad_value(format!(
        "The field 'key' for an _id index must be {{_id: 1}}, but got {}",
        debug_doc(key)
    ))
}

pub(crate) fn check_pattern(key: Doc<'_>, is_plugin: fn(&str) -> bool) -> Result<()> {
    let count = key.count();
    if count == 0 {
        return Err(cannot("Index keys cannot be empty."));
    }
    if count > INDEX_FIELDS_MAX {
        return Err(Error::location(13103, "too many compound keys"));
    }
    let mut plugin = None;
    for (path, direction) in key.fields() {
        check_direction(path, direction, is_plugin)?;
        if let Value::String(name) = direction {
            if plugin.is_some_and(|other| other != name) {
                return Err(cannot("Can't use more than one index plugin for a single index."));
            }
            plugin = Some(name);
        }
        check_path(path)?;
        let illegal = match direction {
            Value::String(plugin) => is_wildcard_path(path) && plugin != "text",
            _ => false,
        };
        if illegal {
            return Err(illegal_name());
        }
    }
    if plugin.is_some() && key.fields().any(is_wildcard_term) {
        return Err(cannot(format!(
            "Wildcard indexes do not allow compounding with a special index type. Found: {}",
            debug_doc(key)
        )));
    }
    for (at, (path, _)) in key.fields().enumerate() {
        if key.fields().skip(at + 1).any(|(other, _)| other == path) {
            return Err(cannot(format!(
                "Index key pattern {} has duplicate field '{path}'.",
                debug_doc(key)
            ))
            .with_message(format!(
                "The field '{path}' appears multiple times in the index key pattern {}",
                debug_doc(key)
            )));
        }
    }
    Ok(())
}

fn check_direction(path: &str, direction: Value<'_>, is_plugin: fn(&str) -> bool) -> Result<()> {
    match direction {
        Value::String("") => Err(cannot("Values in the index key pattern cannot be empty strings")),
        Value::String("geoHaystack") => {
            Err(cannot("GeoHaystack indexes cannot be created in version 4.9 and above"))
        }
        Value::String("wildcard") if is_wildcard_path(path) => Err(cannot(
            "The key pattern value for an 'wildcard' index must be a non-zero number, not a string.",
        )),
        Value::String("wildcard") => {
            Err(Error::location(7246202, "The index plugin 'wildcard' is not allowed.")
                .with_message("Index type 'wildcard' is not a valid index plugin"))
        }
        Value::String(name) if is_plugin(name) => Ok(()),
        Value::String(other) => Err(cannot(format!("Unknown index plugin '{other}'"))),
        Value::Decimal(number) if number.is_nan() => {
            Err(cannot("Values in the index key pattern cannot be NaN."))
        }
        Value::Decimal(number) if number.is_zero() => {
            Err(cannot("Values in the index key pattern cannot be 0."))
        }
        Value::Decimal(_) => Ok(()),
        other => match number(other) {
            Some(number) if number.is_nan() => {
                Err(cannot("Values in the index key pattern cannot be NaN."))
            }
            Some(0.0) => Err(cannot("Values in the index key pattern cannot be 0.")),
            Some(_) => Ok(()),
            None => Err(cannot(format!(
                "Values in v:2 index key pattern cannot be of type {}. Only numbers > 0, numbers < 0, and strings are allowed.",
                other.type_name()
            ))),
        },
    }
}

fn check_path(path: &str) -> Result<()> {
    if path.is_empty() {
        return Err(cannot("Index keys cannot be an empty field."));
    }
    if path.split('.').any(str::is_empty) {
        return Err(cannot("Index keys cannot contain an empty field."));
    }
    let last = path.split('.').count() - 1;
    if last >= PATH_COMPONENTS_MAX {
        return Err(cannot(format!(
            "Index keys cannot have more than {PATH_COMPONENTS_MAX} parts."
        )));
    }
    let illegal = |(at, part): (usize, &str)| {
        let wildcard = part == "$**" && at == last;
        let allowed = (at > 0 && matches!(part, "$id" | "$ref" | "$db")) || wildcard;
        part.starts_with('$') && !allowed
    };
    if path.split('.').enumerate().any(illegal) {
        return Err(illegal_name());
    }
    Ok(())
}

fn illegal_name() -> Error {
    cannot("Index key contains an illegal field name: field name starts with '$'.")
}

/// Returns true for a wildcard term of a key pattern.
fn is_wildcard_term((path, direction): (&str, Value<'_>)) -> bool {
    is_wildcard_path(path) && !matches!(direction, Value::String(_))
}

/// Returns true if a direction means descending order.
pub(crate) fn is_negative(direction: Value<'_>) -> bool {
    match direction {
        Value::Int32(number) => number < 0,
        Value::Int64(number) => number < 0,
        Value::Double(number) => number < 0.0,
        Value::Decimal(number) => number.is_negative(),
        _ => false,
    }
}

/// Returns true if all directions of a pattern are numbers and no path is a wildcard.
pub(crate) fn is_ordinary(key: Doc<'_>) -> bool {
    plugin_of(key).is_none()
}

/// Returns true for `$**` and for paths that end in `.$**`.
pub(crate) fn is_wildcard_path(path: &str) -> bool {
    path == "$**" || path.ends_with(".$**")
}

/// Returns the name of the index kind in the pattern; `None` for an ordinary index.
pub(crate) fn plugin_of(key: Doc<'_>) -> Option<&str> {
    key.fields().find_map(|(path, direction)| match direction {
        Value::String(plugin) => Some(plugin),
        _ if is_wildcard_path(path) => Some("wildcard"),
        _ => None,
    })
}

pub(crate) fn has_plugin(spec: Doc<'_>, plugin: &str) -> bool {
    matches!(spec.get("key"), Some(Value::Document(key)) if plugin_of(key) == Some(plugin))
}

pub(crate) fn decimal_is_zero(number: Decimal128) -> bool {
    number.is_zero()
}

/// Returns the integer part of a decimal. Returns the nearest long for a number out of range, and
/// the largest long for NaN.
pub(crate) fn decimal_to_i64(number: Decimal128) -> i64 {
    let negative = number.is_negative() && !number.is_nan();
    number.to_i64_truncated().unwrap_or(if negative { i64::MIN } else { i64::MAX })
}

/// Returns a 67 CannotCreateIndex.
pub(crate) fn cannot(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::CannotCreateIndex, message)
}

/// Returns a 14 TypeMismatch for a field of a specification.
pub(crate) fn must_be(field: &str, expected: &str, value: Value<'_>) -> Error {
    Error::type_mismatch(format!(
        "The field '{field}' must be {expected}, but got {}",
        value.kind().alias()
    ))
}
