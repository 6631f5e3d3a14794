//! `$readPreference`, which every command takes. A set of one member has one answer to all of them, so
//! only the form is checked.

use crate::frame::args::{Arg, fields};
use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode, Result};

/// The modes by name.
const MODES: &[&str] =
    &["primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"];

/// The smallest `maxStalenessSeconds`.
const STALENESS_SECS_MIN: i64 = 90;

/// Checks the value of `$readPreference`.
///
/// # Errors
/// 2 BadValue, 14 TypeMismatch; 72 InvalidOptions for tags of the primary and for `hedge`; 160
/// MaxStalenessOutOfRange.
pub fn check(arg: &Arg<'_>) -> Result<()> {
    let (mut mode, mut has_tags, mut staleness) = (None, false, 0);
    for field in fields("$readPreference", document(arg)?) {
        match field.name() {
            "mode" => mode = Some(field.string()?),
            "tags" => has_tags = has_tag(&field)?,
            "maxStalenessSeconds" if !field.is_null() => staleness = max_staleness(&field)?,
            _ => {}
        }
    }
    let Some(mode) = mode else {
        let text = "BSON field '$readPreference.mode' is missing but a required field";
        return Err(Error::location(40414, text));
    };
    if !MODES.contains(&mode) {
        let text = format!(
            "Enumeration value '{mode}' for field '$readPreference.mode' is not a valid value."
        );
        return Err(Error::bad_value(text));
    }
    let invalid = |text: &str| Err(Error::new(ErrorCode::InvalidOptions, text));
    match mode == "primary" {
        true if has_tags => invalid("Only empty tags are allowed with primary read preference"),
        true if staleness > 0 => {
            Err(Error::bad_value("mode \"primary\" does not support maxStalenessSeconds"))
        }
        _ => Ok(()),
    }
}

fn document<'a>(arg: &Arg<'a>) -> Result<Doc<'a>> {
    match arg.value() {
        Value::Document(doc) => Ok(doc),
        other => {
            let found = other.type_name();
            let text =
                format!("\"$readPreference\" had the wrong type. Expected object, found {found}");
            Err(Error::type_mismatch(text))
        }
    }
}

/// Returns true if a tag set has tags.
fn has_tag(field: &Arg<'_>) -> Result<bool> {
    let mut has_tags = false;
    for (at, set) in field.array()?.iter().enumerate() {
        match set {
            Value::Document(set) => has_tags |= !set.is_empty(),
            other => return Err(field.wrong_element(at, other, "object")),
        }
    }
    Ok(has_tags)
}

fn max_staleness(field: &Arg<'_>) -> Result<i64> {
    let Some(seconds) = field.value().to_f64() else { return Err(field.wrong_type("number")) };
    if seconds < 0.0 {
        return Err(Error::bad_value("maxStalenessSeconds must be a non-negative integer"));
    }
    let seconds = seconds as i64;
    if seconds > 0 && seconds < STALENESS_SECS_MIN {
        let text = format!(
            "maxStalenessSeconds value must be at least {STALENESS_SECS_MIN} seconds, found {seconds}"
        );
        return Err(Error::new(ErrorCode::MaxStalenessOutOfRange, text));
    }
    Ok(seconds)
}
