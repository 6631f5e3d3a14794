//! TTL indexes and clustered collections that expire: deletes expired documents.

use std::sync::Arc;

use quire_catalog::key::Arena;
use quire_catalog::{Collection, Index, IndexState, Namespace};
use quire_document::{Doc, Value};
use quire_error::{Error, Result};
use quire_storage::{CommitOptions, Direction, Interrupt};

use crate::{ChunkSize, IndexCursor, IndexEntry, IndexRange, Store, from_interruption};

/// The number of documents in one commit.
const CHUNK: usize = 500;

/// The result of one pass over all TTL indexes.
#[derive(Debug, Default)]
pub struct Expired {
    /// The number of deleted documents.
    pub deleted: u64,
    /// The indexes whose pass ended with an error; documents deleted before the error stay deleted.
    pub failures: Vec<ExpireFailure>,
}

/// A TTL index whose documents could not all be deleted.
#[derive(Debug)]
pub struct ExpireFailure {
    /// The collection of the index.
    pub namespace: Namespace,
    /// The name of the index.
    pub index: String,
    /// The error that ended its pass.
    pub error: Error,
}

/// Deletes every document that has expired by `now_ms` according to a TTL index. One pass of the
/// background job, so a document is deleted between one and two passes after its time. An error
/// ends the pass of its own index only.
///
/// # Errors
/// The reason why `interrupt` ended the pass.
pub fn expire_documents(
    store: &Arc<Store>,
    now_ms: i64,
    interrupt: &Arc<Interrupt>,
) -> Result<Expired> {
    let mut expired = Expired::default();
    let catalog = store.catalog();
    for collection in catalog.collections() {
        let clustered = collection.options.expire_after_seconds();
        let of_collection =
            clustered.and_then(|seconds| Some((collection.clustered_index()?, seconds)));
        let ready = collection.indexes.iter().filter(|index| index.state == IndexState::Ready);
        let of_indexes = ready.filter_map(|index| Some((index, index.expire_after_seconds?)));
        for (index, seconds) in of_collection.into_iter().chain(of_indexes) {
            let cutoff = now_ms.saturating_sub(seconds.saturating_mul(1000));
            let deleted = &mut expired.deleted;
            let ended = expire_by(store, collection, index, cutoff, deleted, interrupt);
            interrupt.check().map_err(from_interruption)?;
            if let Err(error) = ended {
                let (namespace, index) = (collection.namespace.clone(), index.name.clone());
                expired.failures.push(ExpireFailure { namespace, index, error });
            }
        }
    }
    Ok(expired)
}

fn expire_by(
    store: &Arc<Store>,
    collection: &Collection,
    index: &Index,
    cutoff_ms: i64,
    deleted: &mut u64,
    interrupt: &Arc<Interrupt>,
) -> Result<()> {
    let (oldest, cutoff) = ([Value::Date(i64::MIN)], [Value::Date(cutoff_ms)]);
    let descending = index.keys.is_descending(0);
    let range = if descending {
        IndexRange::new(index, &cutoff, true, &oldest, true)
    } else {
        IndexRange::new(index, &oldest, true, &cutoff, true)
    };
    let mut cursor = IndexCursor::new(index, range, Direction::Forward);
    let (mut size, mut more) = (ChunkSize::new(CHUNK), true);
    let mut entries: Vec<IndexEntry> = Vec::new();
    while more {
        interrupt.check().map_err(from_interruption)?;
        entries.clear();
        let view = store.read_view()?;
        let unchanged = view.catalog().lookup(&collection.namespace);
        if unchanged.is_none_or(|now| now.index_by_id(index.id).is_none()) {
            break;
        }
        more = cursor.next_page(&view.view(), CHUNK, &mut entries)?;
        drop(view);
        let mut rest = entries.as_slice();
        while !rest.is_empty() {
            let (done, count) =
                delete_expired(store, collection, index, cutoff_ms, rest, &mut size, interrupt)?;
            *deleted += count;
            rest = rest.get(done..).unwrap_or(&[]);
        }
    }
    Ok(())
}

/// Deletes the documents of the first entries, at most `size` rows. Returns the number of processed
/// entries and of deleted documents.
fn delete_expired(
    store: &Arc<Store>,
    collection: &Collection,
    index: &Index,
    cutoff_ms: i64,
    entries: &[IndexEntry],
    size: &mut ChunkSize,
    interrupt: &Arc<Interrupt>,
) -> Result<(usize, u64)> {
    let mut is_again = false;
    let (done, _) = store.write(&CommitOptions::buffered(), interrupt, |writer| {
        if std::mem::replace(&mut is_again, true) {
            size.lost();
        }
        let now = writer.collection(&collection.namespace);
        let Some(now) = now.filter(|now| now.id == collection.id) else {
            return Ok((entries.len(), 0));
        };
        let mut deleted = 0;
        let chunk = entries.get(..size.rows()).unwrap_or(entries);
        for entry in chunk {
            let Some(doc) = writer.view().get(&now, entry.record)? else { continue };
            if has_expired(index, doc.as_doc(), cutoff_ms)? {
                writer.delete(&now, entry.record, doc.as_doc())?;
                deleted += 1;
            }
        }
        Ok((chunk.len(), deleted))
    })?;
    size.won();
    Ok(done)
}

/// Returns true if the document is in the index and the earliest date in the field is not after the
/// cutoff.
fn has_expired(index: &Index, doc: Doc<'_>, cutoff_ms: i64) -> Result<bool> {
    let arena = Arena::new();
    let generated = index.keys.generate(doc, &arena)?;
    let expired =
        |value: &Option<Value<'_>>| matches!(value, Some(Value::Date(at)) if *at <= cutoff_ms);
    Ok(generated.keys().any(|key| key.first().is_some_and(expired)))
}
