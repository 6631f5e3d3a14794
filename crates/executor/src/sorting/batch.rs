//! Rows with the bytes by which they sort, in memory that they share: a sort of a million rows makes and
//! frees some thousand pieces of memory, not two for each row.

use bytes::Bytes;
use quire_collections::RecordId;

use crate::row::{Extra, Row};

/// Bytes of keys and documents at which a batch is full.
const BYTES_MAX: usize = 64 << 10;
/// Bytes that a batch may have beyond that: those of a usual document.
const EXCESS_BYTES: usize = 4 << 10;
/// Bytes of a batch that a thread makes: what documents become may be far larger than they are.
pub(crate) const BATCH_BYTES_MAX: usize = 32 << 20;
/// Rows at which a batch is full.
const ROWS_MAX: usize = 2048;
/// Bytes that a row takes besides its key and its document: its place here, and its place in the order.
const ROW_BYTES: usize = size_of::<Place>() + size_of::<u128>();

/// Rows in the order in which they came, each with its key.
#[derive(Default)]
pub(crate) struct KeyedBatch {
    /// The keys, one behind the other.
    keys: Vec<u8>,
    /// The documents, one behind the other, while rows are added.
    open: Vec<u8>,
    /// The documents once the batch has ended.
    docs: Bytes,
    places: Vec<Place>,
    /// What else is known about rows: as many as rows, or none if nothing is known about any.
    extras: Vec<Option<Box<Extra>>>,
    /// The number of bytes with which all keys begin.
    shared: usize,
    size: usize,
    has_ended: bool,
}

/// Where a row's key and document end; they begin where those of the row before end. No document takes
/// no bytes.
#[derive(Clone, Copy)]
struct Place {
    record: RecordId,
    key_end: u32,
    doc_end: u32,
}

impl KeyedBatch {
    /// Ends this batch, which is full, and returns the next one, with memory for about as much.
    pub fn next_batch(&mut self) -> Self {
        let bytes = if self.open.is_empty() { 0 } else { BYTES_MAX + EXCESS_BYTES };
        let (keys, places) = (Vec::with_capacity(self.keys.len()), self.places.len());
        self.end();
        KeyedBatch {
            keys,
            open: Vec::with_capacity(bytes),
            places: Vec::with_capacity(places),
            ..KeyedBatch::default()
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// True if the next row has to go to another batch.
    pub fn is_full(&self) -> bool {
        self.has_ended
            || self.open.len() + self.keys.len() >= BYTES_MAX
            || self.places.len() >= ROWS_MAX
    }

    /// Bytes that it holds.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Appends a row. Its key is no beginning of another row's key.
    pub fn push(&mut self, key: &[u8], record: RecordId, doc: &[u8], extra: Option<Box<Extra>>) {
        self.shared = match self.places.first() {
            None => key.len(),
            Some(_) => shared_bytes(self.key(0), key).min(self.shared),
        };
        self.keys.extend_from_slice(key);
        self.open.extend_from_slice(doc);
        self.size += ROW_BYTES + key.len() + doc.len();
        if extra.is_some() || !self.extras.is_empty() {
            self.size += size_of::<usize>() + extra.as_ref().map_or(0, |extra| extra.size());
            self.extras.resize_with(self.places.len(), || None);
            self.extras.push(extra);
        }
        let (key_end, doc_end) = (self.keys.len() as u32, self.open.len() as u32);
        self.places.push(Place { record, key_end, doc_end });
    }

    /// Ends it: rows can be taken now.
    pub fn end(&mut self) {
        if !self.has_ended {
            self.has_ended = true;
            self.docs = Bytes::from(std::mem::take(&mut self.open));
        }
    }

    /// Frees the keys, which only the order needs.
    pub fn drop_keys(&mut self) {
        self.keys = Vec::new();
    }

    /// The number of bytes with which all of its keys begin.
    pub fn shared_bytes(&self) -> usize {
        self.shared
    }

    /// The key of a row.
    #[inline]
    pub fn key(&self, row: usize) -> &[u8] {
        let end = |row: usize| self.places.get(row).map_or(0, |place| place.key_end as usize);
        let start = row.checked_sub(1).map_or(0, end);
        self.keys.get(start..end(row)).unwrap_or_default()
    }

    /// The bytes of a row's document; none if only an index key is known.
    #[inline]
    pub fn doc(&self, row: usize) -> &[u8] {
        let (start, end) = self.doc_range(row);
        self.docs.get(start..end).unwrap_or_default()
    }

    fn doc_range(&self, row: usize) -> (usize, usize) {
        let end = |row: usize| self.places.get(row).map_or(0, |place| place.doc_end as usize);
        (row.checked_sub(1).map_or(0, end), end(row))
    }

    /// The record of a row.
    pub fn record(&self, row: usize) -> RecordId {
        self.places.get(row).map_or(RecordId(0), |place| place.record)
    }

    /// True if nothing is known about any row but its document.
    pub fn has_documents(&self) -> bool {
        let mut start = 0;
        let has_document =
            |place: &Place| std::mem::replace(&mut start, place.doc_end) < place.doc_end;
        self.extras.is_empty() && self.places.iter().all(has_document)
    }

    /// Takes what else is known about a row.
    pub fn take_extra(&mut self, row: usize) -> Option<Box<Extra>> {
        self.extras.get_mut(row).and_then(Option::take)
    }

    /// Takes a row out. Its document shares the memory of the batch.
    pub fn take(&mut self, row: usize) -> Row {
        let (start, end) = self.doc_range(row);
        let doc = (start < end).then(|| self.docs.slice(start..end));
        Row { record: self.record(row), doc, extra: self.take_extra(row) }
    }
}

/// The number of bytes with which both begin.
pub(super) fn shared_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
