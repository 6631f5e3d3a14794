//! Reads the fields of a reply, and its errors.

use crate::error::{
    CommandError, Error, ErrorKind, IndexedWriteError, Result, WriteConcernError, WriteError,
    WriteFailure,
};
use bson::{Bson, Document, RawArray, RawBsonRef, RawDocument, RawDocumentBuf};
use std::collections::HashSet;

/// The fields of a reply by name.
pub(crate) trait Fields {
    /// Returns a number of any numeric type.
    fn integer(&self, name: &str) -> Option<i64>;
    /// Returns a text; empty if it is missing.
    fn text(&self, name: &str) -> String;
    /// Returns `code`; 1 (InternalError) if it is missing.
    fn code(&self) -> i32;
    /// Returns a document, if it is there.
    fn document(&self, name: &str) -> Result<Option<Document>>;
    /// Returns an array, if it is there.
    fn array(&self, name: &str) -> Option<&RawArray>;
    /// Returns any value, if it is there.
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

/// Returns the reply as a document; an error if the command failed.
pub(crate) fn checked(reply: Vec<u8>) -> Result<RawDocumentBuf> {
    let reply = RawDocumentBuf::from_bytes(reply)
        .map_err(|error| Error::invalid_response(error.to_string()))?;
    match reply.integer("ok") {
        Some(1) => Ok(reply),
        _ => Err(Error::from_reply(&reply)),
    }
}

/// Returns a field that every reply of its kind has.
pub(crate) fn needed<T>(found: Option<T>, name: &str) -> Result<T> {
    found.ok_or_else(|| Error::invalid_response(format!("it has no {name}")))
}

impl Error {
    /// Returns the error of a reply with `ok: 0`.
    pub(crate) fn from_reply(reply: &RawDocument) -> Error {
        let kind = ErrorKind::Command(CommandError {
            code: reply.code(),
            code_name: reply.text("codeName"),
            message: reply.text("errmsg"),
        });
        Error::with_labels(kind, labels(reply))
    }

    /// Returns the error of a reply to a write of one statement, if it has one.
    pub(crate) fn from_write_reply(reply: &RawDocument) -> Result<(), Error> {
        let failure = match write_errors(reply, 0)?.into_iter().next() {
            Some(error) => WriteFailure::WriteError(WriteError {
                code: error.code,
                message: error.message,
                details: error.details,
            }),
            None => match write_concern_error(reply)? {
                Some(error) => WriteFailure::WriteConcernError(error),
                None => return Ok(()),
            },
        };
        Err(Error::with_labels(ErrorKind::Write(failure), labels(reply)))
    }
}

impl WriteError {
    /// Returns the error in a row of a `bulkWrite`.
    pub(crate) fn from_row(row: &RawDocument) -> Result<WriteError> {
        let details = row.document("errInfo")?;
        Ok(WriteError { code: row.code(), message: row.text("errmsg"), details })
    }
}

/// Returns the `errorLabels` of a reply.
pub(crate) fn labels(reply: &RawDocument) -> HashSet<String> {
    let Ok(Some(bson::RawBsonRef::Array(labels))) = reply.get("errorLabels") else {
        return HashSet::new();
    };
    labels.into_iter().flatten().filter_map(|label| label.as_str().map(str::to_owned)).collect()
}

/// Returns the `writeErrors` of a reply to a batch whose first document has the position `base`.
pub(crate) fn write_errors(reply: &RawDocument, base: usize) -> Result<Vec<IndexedWriteError>> {
    let mut found = Vec::new();
    let Some(errors) = reply.array("writeErrors") else { return Ok(found) };
    for error in errors {
        let Ok(bson::RawBsonRef::Document(error)) = error else {
            return Err(Error::invalid_response("an element of writeErrors is not a document"));
        };
        found.push(IndexedWriteError {
            index: base + usize::try_from(error.integer("index").unwrap_or(0)).unwrap_or(0),
            code: error.code(),
            message: error.text("errmsg"),
            details: error.document("errInfo")?,
        });
    }
    Ok(found)
}

/// Returns the `writeConcernError` of a reply.
pub(crate) fn write_concern_error(reply: &RawDocument) -> Result<Option<WriteConcernError>> {
    let Ok(Some(bson::RawBsonRef::Document(error))) = reply.get("writeConcernError") else {
        return Ok(None);
    };
    Ok(Some(WriteConcernError {
        code: error.code(),
        code_name: error.text("codeName"),
        message: error.text("errmsg"),
        details: error.document("errInfo")?,
    }))
}
