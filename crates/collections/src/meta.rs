//! The records of `Space::Meta`: the BSON documents of the catalog and of settings.

use bytes::Bytes;
use quire_document::{Doc, DocBuf};
use quire_error::Result;
use quire_storage::{Space, Txn};

use crate::failure::from_storage;
use crate::layout::damaged;

/// Writes a record.
///
/// # Errors
/// Those of [`Txn::put`].
pub(crate) fn put_meta(txn: &mut Txn, key: &[u8], record: DocBuf) -> Result<()> {
    let key = Bytes::copy_from_slice(key);
    txn.put(Space::Meta, key, record.into_bytes().into()).map_err(from_storage)
}

/// Reads the value of a record.
///
/// # Errors
/// `DataCorruptionDetected` if it is not a document.
pub(crate) fn meta_doc(bytes: &[u8]) -> Result<Doc<'_>> {
    let limits = quire_document::limits::Limits::WIRE;
    quire_document::validate(bytes, &limits).map_err(|_| damaged("a catalog record"))
}
