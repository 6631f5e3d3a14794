//! `capped`, `size` and `max` of `create`: a collection with an upper bound, which keeps its newest
//! documents in the order of insertion.

use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};

use crate::clustered::truth;
pub use crate::clustered::whole;

/// The largest size in bytes. MongoDB: 2^50 (`BadValue`).
pub const CAPPED_BYTES_MAX: u64 = 1 << 50;
/// The `max` that is shown for a collection whose `max` sets no limit.
const UNLIMITED: u32 = i32::MAX as u32;

/// The bounds of a capped collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capped {
    /// The largest sum of the documents' lengths in bytes. One document alone may be larger.
    pub bytes_max: u64,
    /// The option `max` as it is shown; `None` if it was not given.
    max: Option<u32>,
}

/// The change of the bounds by `collMod`. What is absent stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CappedChange {
    /// The new `size`, from `cappedSize`.
    pub bytes_max: Option<u64>,
    /// The new `max`, from `cappedMax`.
    pub max: Option<u32>,
}

impl CappedChange {
    /// Returns true if nothing changes.
    pub fn is_empty(&self) -> bool {
        self.bytes_max.is_none() && self.max.is_none()
    }
}

impl Capped {
    /// Returns the bounds of a collection without a limit of the number of documents.
    pub fn of_bytes(bytes_max: u64) -> Self {
        Capped { bytes_max, max: None }
    }

    /// Reads the three options of `create`; `None` if the collection is not capped.
    ///
    /// # Errors
    /// `InvalidOptions` without a size, and for `size` or `max` without `capped`; `TypeMismatch`;
    /// `BadValue` for a number out of range.
    pub fn parse(fields: Doc<'_>) -> Result<Option<Self>> {
        let given = |name: &str| fields.get(name).filter(|value| !value.is_nullish());
        let capped = match given("capped") {
            Some(value) => truth(value).ok_or_else(|| {
                wrong_type("create.capped", value, "[bool, long, int, decimal, double]")
            })?,
            None => false,
        };
        let (size, max) = (given("size"), given("max"));
        let size = size.map(|value| parse_size("create.size", value)).transpose()?;
        let max = max.map(|value| parse_max("create.max", value)).transpose()?;
        let invalid = |text: String| Err(Error::new(ErrorCode::InvalidOptions, text));
        match (capped, size) {
            (true, Some(bytes_max)) => Ok(Some(Capped { bytes_max, max })),
            (true, None) => {
                invalid("the 'size' field is required when 'capped' is true".to_owned())
            }
            (false, None) if max.is_none() => Ok(None),
            (false, size) => {
                let name = if size.is_some() { "size" } else { "max" };
                invalid(format!("the field 'create.{name}' requires the 'capped' field to be true"))
            }
        }
    }

    /// Reads the options of a stored collection.
    pub(crate) fn of_stored(options: Doc<'_>) -> Option<Self> {
        let number = |name: &str| options.get(name)?.exact_i64();
        let bytes_max = u64::try_from(number("size")?).ok()?;
        let max = number("max").and_then(|max| u32::try_from(max).ok());
        options.contains("capped").then_some(Capped { bytes_max, max })
    }

    /// Appends the options as `listCollections` shows them.
    pub(crate) fn append(&self, writer: &mut DocWriter<'_>) {
        writer.append("capped", true);
        append_number(writer, "size", self.bytes_max as i64);
        if let Some(max) = self.max {
            append_number(writer, "max", i64::from(max));
        }
    }

    /// Returns the same bounds after a change.
    #[must_use]
    pub fn changed(&self, change: CappedChange) -> Self {
        let bytes_max = change.bytes_max.unwrap_or(self.bytes_max);
        Capped { bytes_max, max: change.max.or(self.max) }
    }

    /// Returns the largest number of documents, if there is one.
    pub fn docs_max(&self) -> Option<u64> {
        self.max.filter(|max| *max < UNLIMITED).map(u64::from)
    }

    /// Returns `max` as `collStats` shows it: 0 if it was not given.
    pub fn shown_max(&self) -> i64 {
        self.max.map_or(0, i64::from)
    }
}

/// Returns a size in bytes. Truncates a double and rounds a decimal half to even.
///
/// # Errors
/// `TypeMismatch` for a value that is not a number; `BadValue` below 1 and above
/// [`CAPPED_BYTES_MAX`].
pub fn parse_size(path: &str, value: Value<'_>) -> Result<u64> {
    let number = number(path, value)?;
    match u64::try_from(number) {
        Ok(0) | Err(_) => Err(out_of_range(path, number, "greater than or equal to 1")),
        Ok(bytes) if bytes > CAPPED_BYTES_MAX => {
            let limit = format!("less than or equal to {CAPPED_BYTES_MAX}");
            Err(out_of_range(path, number, &limit))
        }
        Ok(bytes) => Ok(bytes),
    }
}

/// Returns a number of documents; the largest 32-bit number, which sets no limit, for one that is
/// not positive.
///
/// # Errors
/// `TypeMismatch` for a value that is not a number; `BadValue` above 32 bits.
pub fn parse_max(path: &str, value: Value<'_>) -> Result<u32> {
    match number(path, value)? {
        i64::MIN..=0 => Ok(UNLIMITED),
        number => match u32::try_from(number) {
            Ok(max) if max <= UNLIMITED => Ok(max),
            _ => Err(out_of_range(path, number, "less than 2147483648")),
        },
    }
}

fn number(path: &str, value: Value<'_>) -> Result<i64> {
    match value.is_number() {
        true => Ok(whole(value)),
        false => Err(wrong_type(path, value, "[long, int, decimal, double]")),
    }
}

/// Appends a number as MongoDB does: an int if it fits, else a long.
fn append_number(writer: &mut DocWriter<'_>, name: &str, number: i64) {
    match i32::try_from(number) {
        Ok(small) => writer.append(name, small),
        Err(_) => writer.append(name, number),
    };
}

fn out_of_range(path: &str, number: i64, limit: &str) -> Error {
    Error::bad_value(format!("BSON field '{path}' value must be {limit}, actual value '{number}'"))
}

fn wrong_type(path: &str, value: Value<'_>, expected: &str) -> Error {
    let found = value.type_name();
    Error::type_mismatch(format!(
        "BSON field '{path}' is the wrong type '{found}', expected types '{expected}'"
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use quire_document::{DocBuf, doc};

    use super::*;

    #[test]
    fn stored_options_give_the_same_bounds() {
        for (fields, docs_max) in [
            (doc! { "capped": true, "size": 4096 }, None),
            (doc! { "capped": 1, "size": 4096.9, "max": 7 }, Some(7)),
            (doc! { "capped": true, "size": 1i64 << 50, "max": -5 }, None),
        ] {
            let parsed = Capped::parse(fields.as_doc()).unwrap().unwrap();
            let stored = DocBuf::build(|writer| parsed.append(writer));
            assert_eq!(Capped::of_stored(stored.as_doc()), Some(parsed), "{fields:?}");
            assert_eq!(parsed.docs_max(), docs_max, "{fields:?}");
        }
        assert_eq!(Capped::of_stored(doc! { "collation": 1 }.as_doc()), None);
    }

    #[test]
    fn the_three_options_belong_together() {
        let code = |fields: DocBuf| Capped::parse(fields.as_doc()).unwrap_err().code();
        assert_eq!(code(doc! { "capped": true }), ErrorCode::InvalidOptions);
        assert_eq!(code(doc! { "size": 1 }), ErrorCode::InvalidOptions);
        assert_eq!(code(doc! { "capped": false, "max": 1 }), ErrorCode::InvalidOptions);
        assert_eq!(code(doc! { "capped": true, "size": 0 }), ErrorCode::BadValue);
        assert_eq!(code(doc! { "capped": true, "size": f64::INFINITY }), ErrorCode::BadValue);
        assert_eq!(
            code(doc! { "capped": true, "size": 1, "max": 1i64 << 31 }),
            ErrorCode::BadValue
        );
        assert_eq!(code(doc! { "capped": "yes", "size": 1 }), ErrorCode::TypeMismatch);
        assert_eq!(Capped::parse(doc! { "capped": 0.0 }.as_doc()).unwrap(), None);
    }
}
