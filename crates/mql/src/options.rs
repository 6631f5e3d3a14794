//! The fields of an operand that is a document, with the errors for fields that are unknown,
//! repeated or of a wrong type.

use quire_document::decimal::Rounding;
use quire_document::{Decimal128, Doc, Value};
use quire_error::{Error, ErrorCode, Result};

/// The name of the operand's owner in messages, for example `$merge` or `$densify.range`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options<'n>(pub &'n str);

impl<'n> Options<'n> {
    /// Returns the fields of `spec` in order, with the error 40413 IDLDuplicateField for a repeated
    /// one. The caller must refuse unknown names as they come, because repeated names are found
    /// with a linear search.
    pub fn fields<'v>(
        self,
        spec: Doc<'v>,
    ) -> impl Iterator<Item = Result<(&'v str, Value<'v>)>> + use<'n, 'v> {
        let mut seen: Vec<&str> = Vec::new();
        spec.fields().map(move |(name, value)| {
            if seen.contains(&name) {
                let text = format!("BSON field '{}.{name}' is a duplicate field", self.0);
                return Err(Error::new(ErrorCode::IDLDuplicateField, text));
            }
            seen.push(name);
            Ok((name, value))
        })
    }

    /// Returns the error for an unknown field.
    pub fn unknown(self, name: &str) -> Error {
        let text = format!("BSON field '{}.{name}' is an unknown field.", self.0);
        Error::new(ErrorCode::IDLUnknownField, text)
    }

    /// Returns the error for a missing required field.
    pub fn missing(self, name: &str) -> Error {
        let text = format!("BSON field '{}.{name}' is missing but a required field", self.0);
        Error::new(ErrorCode::IDLFailedToParse, text)
    }

    /// Returns an integer that is at least `least`.
    ///
    /// # Errors
    /// 14 TypeMismatch for a value that is not a number, 2 BadValue for a number that is too small.
    pub fn integer_from(self, least: i64, name: &str, value: Value<'_>) -> Result<i64> {
        let Some(number) = whole(value) else {
            let (owner, found) = (self.0, value.type_name());
            return Err(Error::type_mismatch(format!(
                "BSON field '{owner}.{name}' is the wrong type '{found}', expected types '[long, int, decimal, double]'"
            )));
        };
        if number < least {
            let text =
                format!("BSON field '{name}' value must be >= {least}, actual value '{number}'");
            return Err(Error::bad_value(text));
        }
        Ok(number)
    }

    /// Returns the error for a field that does not have the type `expected`.
    pub fn wrong_type(self, name: &str, value: Value<'_>, expected: &str) -> Error {
        let (owner, found) = (self.0, value.type_name());
        Error::type_mismatch(format!(
            "BSON field '{owner}.{name}' is the wrong type '{found}', expected type '{expected}'"
        ))
    }
}

/// Converts a number to an integer: truncates a double, rounds a decimal half to even, returns the
/// nearest long for a number out of range, and 0 for NaN. Returns `None` for other types.
pub fn whole(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Int32(number) => Some(number.into()),
        Value::Int64(number) => Some(number),
        Value::Double(number) if number.is_nan() => Some(0),
        Value::Double(number) => Some(number as i64),
        Value::Decimal(number) => Some(decimal_to_whole(number)),
        _ => None,
    }
}

/// Rounds a decimal half to even to an integer. A number out of range becomes the nearest long.
fn decimal_to_whole(decimal: Decimal128) -> i64 {
    match decimal.to_i64_rounded(Rounding::HalfEven) {
        Some(number) => number,
        None => decimal.to_f64() as i64,
    }
}
