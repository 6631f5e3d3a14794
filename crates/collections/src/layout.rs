//! Keys and values of `Space::Doc` (docs/format.md, "Documents").

use std::fmt;

use bytes::{Buf, Bytes};
use quire_catalog::CollectionId;
use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::VisitedRow;

/// The number of a document in its collection. It rises in the order of insertion, and is never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId(pub u64);

impl RecordId {
    /// The largest record id.
    pub const MAX: Self = RecordId(u64::MAX);

    /// The bits that number the points of a bucket, which has at most 1,000.
    const POINT_BITS: u32 = 10;
    /// The bit that tells the id of a point in a bucket from that of a record.
    const POINT: u64 = 1 << 63;

    /// Returns the id that stands for the point `at` of a bucket. No record has it, and no other point of the collection.
    pub(crate) fn in_bucket(number: u64, at: usize) -> Self {
        RecordId(Self::POINT | number << Self::POINT_BITS | at as u64)
    }

    /// Returns the number of the bucket of a point; `None` for the id of a record.
    pub(crate) fn bucket(self) -> Option<u64> {
        (self.0 & Self::POINT != 0).then_some((self.0 & !Self::POINT) >> Self::POINT_BITS)
    }

    /// Returns true if it stands for a point in a bucket of a time-series collection, which is no record.
    pub fn is_in_bucket(self) -> bool {
        self.bucket().is_some()
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The first byte of a stored document: its bytes follow as BSON.
const CODEC_BSON: u8 = 1;
/// The length of what precedes a document in its stored value.
const CODEC_BYTES: usize = 1;

/// The length of a document's key in bytes.
pub(crate) const DOC_KEY_BYTES: usize = 12;

/// Returns the key of a document.
pub(crate) fn doc_key(collection: CollectionId, id: RecordId) -> [u8; DOC_KEY_BYTES] {
    let mut key = [0; DOC_KEY_BYTES];
    key[..4].copy_from_slice(&collection.to_bytes());
    key[4..].copy_from_slice(&id.0.to_be_bytes());
    key
}

/// Returns the record id in a document's key.
pub(crate) fn record_id_of(key: &[u8]) -> Result<RecordId> {
    match key.get(4..).and_then(|rest| <[u8; 8]>::try_from(rest).ok()) {
        Some(bytes) => Ok(RecordId(u64::from_be_bytes(bytes))),
        None => Err(damaged("a document's key")),
    }
}

/// Returns the record id in a stored low-water mark.
pub(crate) fn low_water_of(value: &[u8]) -> Result<RecordId> {
    let bytes = value.try_into().map_err(|_| damaged("a low-water mark"))?;
    Ok(RecordId(u64::from_be_bytes(bytes)))
}

/// Returns the end of the documents of a collection: the first key after them.
pub(crate) fn collection_end(collection: CollectionId) -> Vec<u8> {
    quire_storage::prefix_end(&collection.to_bytes())
}

/// Returns the stored value of a document, in two parts.
pub(crate) fn doc_value(doc: Doc<'_>) -> [&[u8]; 2] {
    [&[CODEC_BSON], doc.as_bytes()]
}

/// A document as the engine returned it. It is cheap to clone, and keeps the engine's page alive.
#[derive(Clone)]
pub struct StoredDoc(Bytes);

impl StoredDoc {
    /// Removes the codec byte.
    pub(crate) fn decode(mut value: Bytes) -> Result<Self> {
        decode_in_place(&value)?;
        value.advance(CODEC_BYTES);
        Ok(StoredDoc(value))
    }

    /// Returns the document with these bytes.
    pub(crate) fn of_bson(bytes: Bytes) -> Self {
        StoredDoc(bytes)
    }

    /// Returns a copy of a document that is not stored yet.
    pub(crate) fn from_doc(doc: Doc<'_>) -> Self {
        StoredDoc(Bytes::copy_from_slice(doc.as_bytes()))
    }

    /// Returns a view of the document.
    #[inline]
    pub fn as_doc(&self) -> Doc<'_> {
        Doc::from_valid_bytes(&self.0)
    }

    /// Returns a field of the document.
    pub fn get(&self, name: &str) -> Option<Value<'_>> {
        self.as_doc().get(name)
    }

    /// Returns the bytes of the document.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the reference-counted bytes.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl fmt::Debug for StoredDoc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_doc().fmt(f)
    }
}

/// Returns the document in a stored value.
#[inline]
fn decode_in_place(value: &[u8]) -> Result<&[u8]> {
    let doc = match value.split_first() {
        Some((&CODEC_BSON, doc)) if doc.len() > 4 => doc,
        _ => return Err(damaged("a document's first byte")),
    };
    let declared = doc.first_chunk().map(|len| u32::from_le_bytes(*len));
    if declared != u32::try_from(doc.len()).ok() {
        return Err(damaged("a document's length"));
    }
    Ok(doc)
}

/// A document of a scan, where the engine has it.
#[derive(Debug, Clone, Copy)]
pub struct VisitedDoc<'r> {
    /// The record id, which orders the documents of a collection.
    pub id: RecordId,
    /// The document in the engine's memory.
    pub doc: Doc<'r>,
    row: VisitedRow<'r>,
}

impl<'r> VisitedDoc<'r> {
    pub(crate) fn decode(row: VisitedRow<'r>) -> Result<Self> {
        let doc = Doc::from_valid_bytes(decode_in_place(row.value)?);
        Ok(Self { id: record_id_of(row.key)?, doc, row })
    }

    /// Returns the bytes of the document without a copy. They keep a block of the engine in memory.
    pub fn to_bytes(&self) -> Bytes {
        self.row.to_bytes(CODEC_BYTES)
    }
}

/// A document and its record id.
#[derive(Debug, Clone)]
pub struct Record {
    /// The record id, which orders the documents of a collection.
    pub id: RecordId,
    /// The document as it is stored.
    pub doc: StoredDoc,
}

pub(crate) fn damaged(what: &str) -> Error {
    Error::new(ErrorCode::DataCorruptionDetected, format!("stored data is damaged: {what}"))
}
