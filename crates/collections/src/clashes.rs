//! Records whose key another record also had while a unique index was being built. The write is not
//! refused: the other record may be deleted before the build ends, or the build may fail for
//! another reason. The records are noted and checked again before the index is published
//! (docs/format.md, "Index entries").

use bytes::Bytes;
use quire_catalog::{Index, IndexId, IndexState};
use quire_error::Result;
use quire_storage::{Page, ScanRequest, Snapshot, Space, Txn, prefix_end};

use crate::RecordId;
use crate::entry::index_range;
use crate::failure::{Attempt, from_storage};
use crate::layout::damaged;

/// A type class below that of all values: keys with this byte sort before all entries of their
/// index.
const BEFORE_ENTRIES: u8 = 0x00;

/// Returns the key that both the commit that notes a clash and the commit that publishes the index
/// write. So the two conflict, and neither misses the other.
fn guard_key(index: IndexId) -> Vec<u8> {
    let mut key = index.to_bytes().to_vec();
    key.push(BEFORE_ENTRIES);
    key
}

fn note_key(index: IndexId, record: RecordId) -> Bytes {
    let mut key = guard_key(index);
    key.extend_from_slice(&record.0.to_be_bytes());
    key.into()
}

/// Notes a record whose key another record has.
pub(crate) fn note(txn: &mut Txn, index: IndexId, record: RecordId) -> Attempt<()> {
    txn.put(Space::Idx, guard_key(index).into(), Bytes::new())?;
    Ok(txn.put_entry(Space::Idx, note_key(index, record), Bytes::new())?)
}

/// Removes the note of a record that now has all its entries.
pub(crate) fn settle(txn: &mut Txn, index: IndexId, record: RecordId) -> Attempt<()> {
    Ok(txn.delete_entry(Space::Idx, note_key(index, record))?)
}

/// Returns the first noted records.
pub(crate) fn noted(
    snapshot: &dyn Snapshot,
    index: IndexId,
    rows_max: usize,
) -> Result<Vec<RecordId>> {
    let guard = guard_key(index);
    let (start, end) = (note_key(index, RecordId(0)), prefix_end(&guard));
    let mut page = Page::default();
    let request = ScanRequest::new(Space::Idx, &start, &end).keys_only().rows_max(rows_max);
    snapshot.scan(&request, &mut page).map_err(from_storage)?;
    let record = |key: &Bytes| match key.get(guard.len()..).map(<[u8; 8]>::try_from) {
        Some(Ok(record)) => Ok(RecordId(u64::from_be_bytes(record))),
        _ => Err(damaged("a note of an index build")),
    };
    page.rows.iter().map(|(key, _)| record(key)).collect()
}

/// Prepares the commit that publishes an index without notes.
pub(crate) fn close(txn: &mut Txn, index: IndexId) -> Result<()> {
    txn.delete(Space::Idx, guard_key(index).into()).map_err(from_storage)
}

/// Returns the range of the entries of an index, without the notes of its build.
pub(crate) fn entry_range(index: &Index) -> (Vec<u8>, Vec<u8>) {
    let (start, end) = index_range(index.id);
    match index.state {
        IndexState::WriteOnly => (prefix_end(&guard_key(index.id)), end),
        IndexState::Ready => (start, end),
    }
}
