//! The fields of an operand that is a document: the errors of fields that it has not, has twice, or
//! has of another type.

use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode, Result};

/// The operand of `owner`, which is how messages call it: `$merge`, or `$densify.range`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options<'n>(pub &'n str);

impl<'n> Options<'n> {
    /// Returns the fields of `spec` in order; 40413 IDLDuplicateField in place of one whose name was
    /// there before. A caller refuses unknown names as they come, so that there are few.
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

    /// The error of a field that is no option.
    pub fn unknown(self, name: &str) -> Error {
        let text = format!("BSON field '{}.{name}' is an unknown field.", self.0);
        Error::new(ErrorCode::IDLUnknownField, text)
    }

    /// The error of a required field that is not there.
    pub fn missing(self, name: &str) -> Error {
        let text = format!("BSON field '{}.{name}' is missing but a required field", self.0);
        Error::new(ErrorCode::IDLFailedToParse, text)
    }

    /// The error of a field with a value of another type than `expected`.
    pub fn wrong_type(self, name: &str, value: Value<'_>, expected: &str) -> Error {
        let (owner, found) = (self.0, value.type_name());
        Error::type_mismatch(format!(
            "BSON field '{owner}.{name}' is the wrong type '{found}', expected type '{expected}'"
        ))
    }
}
