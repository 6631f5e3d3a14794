//! Reading the fields of a reply.

use crate::error::{Error, Result};
use bson::{Bson, Document, RawArray, RawBsonRef, RawDocument, RawDocumentBuf};

/// A reply's fields by name, in the types that replies give them.
pub(crate) trait Fields {
    /// A number, however it is typed.
    fn integer(&self, name: &str) -> Option<i64>;
    /// A text; empty if it is missing.
    fn text(&self, name: &str) -> String;
    /// `code`; 1 (InternalError) if it is missing.
    fn code(&self) -> i32;
    /// A document, if it is there.
    fn document(&self, name: &str) -> Result<Option<Document>>;
    /// An array, if it is there.
    fn array(&self, name: &str) -> Option<&RawArray>;
    /// Any value, if it is there.
    fn value(&self, name: &str) -> Result<Option<Bson>>;
}

impl Fields for RawDocument {
    fn integer(&self, name: &str) -> Option<i64> {
        match self.get(name).ok()?? {
            RawBsonRef::Int32(number) => Some(number.into()),
            RawBsonRef::Int64(number) => Some(number),
            RawBsonRef::Double(number) => Some(number as i64),
            _ => None,
        }
    }

    fn text(&self, name: &str) -> String {
        self.get_str(name).unwrap_or_default().to_owned()
    }

    fn code(&self) -> i32 {
        self.integer("code").and_then(|code| i32::try_from(code).ok()).unwrap_or(1)
    }

    fn document(&self, name: &str) -> Result<Option<Document>> {
        match self.get(name) {
            Ok(Some(RawBsonRef::Document(found))) => {
                Document::try_from(found).map(Some).map_err(Error::deserialization)
            }
            _ => Ok(None),
        }
    }

    fn array(&self, name: &str) -> Option<&RawArray> {
        self.get(name).ok()??.as_array()
    }

    fn value(&self, name: &str) -> Result<Option<Bson>> {
        match self.get(name).map_err(|error| Error::invalid_response(error.to_string()))? {
            Some(value) => Bson::try_from(value).map(Some).map_err(Error::deserialization),
            None => Ok(None),
        }
    }
}

/// The reply as a document; an error if it says that the command failed.
pub(crate) fn checked(reply: Vec<u8>) -> Result<RawDocumentBuf> {
    let reply = RawDocumentBuf::from_bytes(reply)
        .map_err(|error| Error::invalid_response(error.to_string()))?;
    match reply.integer("ok") {
        Some(1) => Ok(reply),
        _ => Err(Error::from_reply(&reply)),
    }
}

/// A field that every reply of its kind has.
pub(crate) fn needed<T>(found: Option<T>, name: &str) -> Result<T> {
    found.ok_or_else(|| Error::invalid_response(format!("it has no {name}")))
}
