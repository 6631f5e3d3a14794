//! Records that met a key of another's while a unique index was being built. Nobody is refused for
//! that: the other may go before the build ends, or the build fail for another reason. They are
//! noted, and looked at again before the index is published (docs/format.md, "Index entries").

use bytes::Bytes;
use quire_catalog::{Index, IndexId, IndexState};
use quire_error::Result;
use quire_storage::{Page, ScanRequest, Snapshot, Space, Txn, prefix_end};

use crate::RecordId;
use crate::entry::index_range;
use crate::failure::{Attempt, from_storage};
use crate::layout::damaged;

/// The class of no value: what begins with it stands before all entries of its index.
const BEFORE_ENTRIES: u8 = 0x00;

/// What every commit that notes a clash writes, and the one that publishes the index: so neither
/// overlooks the other.
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

/// Notes that another record has a key of this one.
pub(crate) fn note(txn: &mut Txn, index: IndexId, record: RecordId) -> Attempt<()> {
    txn.put(Space::Idx, guard_key(index).into(), Bytes::new())?;
    Ok(txn.put_entry(Space::Idx, note_key(index, record), Bytes::new())?)
}

/// Removes the note of a record, which has all its entries now.
pub(crate) fn settle(txn: &mut Txn, index: IndexId, record: RecordId) -> Attempt<()> {
    Ok(txn.delete_entry(Space::Idx, note_key(index, record))?)
}

/// Returns the first records that are noted.
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

/// For the commit that publishes an index without notes.
pub(crate) fn close(txn: &mut Txn, index: IndexId) -> Result<()> {
    txn.delete(Space::Idx, guard_key(index).into()).map_err(from_storage)
}

/// Where the entries of an index stand, without the notes of its build.
pub(crate) fn entry_range(index: &Index) -> (Vec<u8>, Vec<u8>) {
    let (start, end) = index_range(index.id);
    match index.state {
        IndexState::WriteOnly => (prefix_end(&guard_key(index.id)), end),
        IndexState::Ready => (start, end),
    }
}
