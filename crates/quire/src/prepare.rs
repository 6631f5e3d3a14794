//! Converts documents of the caller's type for a command.

use crate::error::{Error, Result};
use bson::oid::ObjectId;
use bson::{Bson, RawBsonRef, RawDocumentBuf, cstr};
use serde::Serialize;

/// A document's bytes and its `_id`.
pub(crate) type Prepared = (RawDocumentBuf, Bson);

/// Serializes a document; adds an `_id` as its first field if it has none.
pub(crate) fn prepare<T: Serialize>(document: &T) -> Result<Prepared> {
    let document = bson::serialize_to_raw_document_buf(document).map_err(Error::serialization)?;
    let given = document.get("_id").map_err(Error::serialization)?;
    if let Some(id) = given {
        let id = Bson::try_from(id).map_err(Error::serialization)?;
        return Ok((document, id));
    }
    let id = ObjectId::new();
    let mut with_id = RawDocumentBuf::new();
    with_id.append(cstr!("_id"), RawBsonRef::ObjectId(id));
    for element in document.iter() {
        let (name, value) = element.map_err(Error::serialization)?;
        with_id.append(name, value);
    }
    Ok((with_id, id.into()))
}

/// Serializes a replacement to BSON.
pub(crate) fn replacement<T: Serialize>(document: &T) -> Result<Bson> {
    bson::serialize_to_document(document).map(Bson::Document).map_err(Error::serialization)
}
