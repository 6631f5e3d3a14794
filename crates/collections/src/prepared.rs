//! Indexes with `prepareUnique`. Their entries are those of an ordinary index, so that existing
//! duplicates can stay; a write that would add a duplicate is refused.

use std::sync::Arc;

use bytes::Bytes;
use quire_catalog::{Collection, Index};
use quire_document::{ArrayBuf, DocBuf, Value, ValueBuf, doc};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::{
    Direction, Interrupt, Page, ScanRequest, Snapshot, Space, StorageError, Txn, prefix_end,
};

use crate::entry::split_entry;
use crate::failure::from_storage;
use crate::{IndexCursor, IndexRange, RecordId, Store, View, from_interruption};

/// The number of entries that the search for duplicates reads at once.
const PAGE_ROWS: usize = 1000;
/// The bytes of record ids and `_id`s after which no more duplicates are listed, so that the error
/// fits into a document.
const VIOLATION_BYTES_MAX: usize = 8 << 20;

/// Returns true if a record other than `id` has the key `claim` (index id and values). Two
/// transactions that add the same key conflict, because both write `claim` itself; no entry has
/// that key, because entries of an ordinary index end with a record id.
pub(crate) fn is_taken(
    txn: &mut Txn,
    claim: &[u8],
    id: RecordId,
) -> std::result::Result<bool, StorageError> {
    txn.delete(Space::Idx, Bytes::copy_from_slice(claim))?;
    let end = prefix_end(claim);
    let mut page = Page::default();
    // Two rows are enough, because one of them may be the record's own entry.
    let request = ScanRequest::new(Space::Idx, claim, &end).keys_only().rows_max(2);
    txn.scan(&request, &mut page)?;
    let own = id.0.to_be_bytes();
    Ok(page.rows.iter().any(|(key, _)| key.get(claim.len()..) != Some(&own)))
}

/// The duplicates of an index, as `collMod` reports them.
#[derive(Debug, Default)]
pub(crate) struct Violations {
    groups: Vec<DocBuf>,
    bytes: usize,
}

impl Violations {
    /// Returns 359 CannotConvertIndexToUnique with the `_id`s of each group, if there is one.
    pub(crate) fn into_result(self) -> Result<()> {
        if self.groups.is_empty() {
            return Ok(());
        }
        let text = "Cannot convert the index to unique. Please resolve conflicting documents \
                    before running collMod again.";
        let groups: ArrayBuf = self.groups.iter().collect();
        let details = doc! { "violations": &groups };
        Err(Error::new(ErrorCode::CannotConvertIndexToUnique, text)
            .with_details(details.into_bytes()))
    }

    fn add(&mut self, ids: &[ValueBuf]) {
        let ids = ArrayBuf::build(|array| {
            for id in ids {
                array.push(id.as_value());
            }
        });
        let group = doc! { "ids": &ids };
        self.bytes += group.as_bytes().len();
        self.groups.push(group);
    }

    fn is_full(&self) -> bool {
        self.bytes >= VIOLATION_BYTES_MAX
    }
}

impl Store {
    /// Returns the keys that several documents have in an index with `prepareUnique`. Each page is
    /// read from a snapshot of its own: no write can add a duplicate meanwhile, and a group of
    /// duplicates is read again as a whole before it counts.
    pub(crate) fn violations(
        self: &Arc<Self>,
        collection: &Collection,
        index: &Index,
        interrupt: &Interrupt,
    ) -> Result<Violations> {
        let mut found = Violations::default();
        let mut cursor = IndexCursor::new(index, IndexRange::whole(index), Direction::Forward);
        let (mut last, mut told): (Option<Bytes>, Option<Bytes>) = (None, None);
        let mut more = true;
        while more && !found.is_full() {
            interrupt.check().map_err(from_interruption)?;
            let (view, mut entries) = (self.read_view()?, Vec::new());
            more = cursor.next_page(&view.view(), PAGE_ROWS, &mut entries)?;
            for entry in entries {
                let repeats = last.as_ref() == Some(&entry.values);
                if repeats && told.as_ref() != Some(&entry.values) {
                    let ids = ids_of_key(&view.view(), collection, index, &entry.values)?;
                    if ids.len() > 1 {
                        found.add(&ids);
                    }
                    told = Some(entry.values.clone());
                }
                last = Some(entry.values);
            }
        }
        Ok(found)
    }
}

/// Returns the `_id`s of the documents that have a key now, at most [`PAGE_ROWS`].
fn ids_of_key(
    view: &View<'_>,
    collection: &Collection,
    index: &Index,
    values: &[u8],
) -> Result<Vec<ValueBuf>> {
    let mut key = index.id.to_bytes().to_vec();
    key.extend_from_slice(values);
    let (end, mut page) = (prefix_end(&key), Page::default());
    let request = ScanRequest::new(Space::Idx, &key, &end).rows_max(PAGE_ROWS);
    view.snapshot().scan(&request, &mut page).map_err(from_storage)?;
    let mut ids = Vec::new();
    for (key, value) in &page.rows {
        let (_, record, _) = split_entry(false, key, value)?;
        if let Some(doc) = view.get(collection, record)? {
            ids.push(ValueBuf::new(doc.get("_id").unwrap_or(Value::Null)));
        }
    }
    Ok(ids)
}
