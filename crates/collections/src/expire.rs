//! TTL indexes: deleting documents whose time has come.

use std::sync::Arc;

use quire_catalog::{Collection, Index, IndexState};
use quire_document::{Doc, Value};
use quire_error::Result;
use quire_storage::{CommitOptions, Direction, Interrupt};

use crate::{IndexCursor, IndexEntry, IndexRange, KeyGenerator, Store, from_interruption};

/// Documents in one commit.
const CHUNK: usize = 500;

/// Deletes every document that a TTL index says has expired by `now_ms`; answers how many. One
/// pass of the background job: a document goes between one and two passes after its time.
pub fn expire_documents(
    store: &Arc<Store>,
    now_ms: i64,
    interrupt: &Arc<Interrupt>,
) -> Result<u64> {
    let mut deleted = 0;
    let catalog = store.catalog();
    for collection in catalog.collections() {
        for index in &collection.indexes {
            if let Some(seconds) = index.expire_after_seconds
                && index.state == IndexState::Ready
            {
                let cutoff = now_ms.saturating_sub(seconds.saturating_mul(1000));
                deleted += expire_by(store, collection, index, cutoff, interrupt)?;
            }
        }
    }
    Ok(deleted)
}

fn expire_by(
    store: &Arc<Store>,
    collection: &Collection,
    index: &Index,
    cutoff_ms: i64,
    interrupt: &Arc<Interrupt>,
) -> Result<u64> {
    let (oldest, cutoff) = ([Value::Date(i64::MIN)], [Value::Date(cutoff_ms)]);
    let descending = index.fields.first().is_some_and(|field| field.descending);
    let range = if descending {
        IndexRange::new(index, &cutoff, true, &oldest, true)
    } else {
        IndexRange::new(index, &oldest, true, &cutoff, true)
    };
    let mut cursor = IndexCursor::new(index, range, Direction::Forward);
    let (mut deleted, mut more) = (0, true);
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
        if !entries.is_empty() {
            deleted += delete_expired(store, collection, index, cutoff_ms, &entries, interrupt)?;
        }
    }
    Ok(deleted)
}

fn delete_expired(
    store: &Arc<Store>,
    collection: &Collection,
    index: &Index,
    cutoff_ms: i64,
    entries: &[IndexEntry],
    interrupt: &Arc<Interrupt>,
) -> Result<u64> {
    let (deleted, _) = store.write(&CommitOptions::buffered(), interrupt, |writer| {
        let now = writer.catalog().lookup(&collection.namespace).cloned();
        let Some(now) = now.filter(|now| now.id == collection.id) else { return Ok(0) };
        let mut deleted = 0;
        for entry in entries {
            let Some(doc) = writer.view().get(&now, entry.record)? else { continue };
            if has_expired(index, doc.as_doc(), cutoff_ms)? {
                writer.delete(&now, entry.record, doc.as_doc())?;
                deleted += 1;
            }
        }
        Ok(deleted)
    })?;
    Ok(deleted)
}

/// Whether the earliest date in the field lies at or before the cutoff, in a document that is
/// in the index.
fn has_expired(index: &Index, doc: Doc<'_>, cutoff_ms: i64) -> Result<bool> {
    let generated = KeyGenerator::generate(index, doc)?;
    let expired =
        |value: &Option<Value<'_>>| matches!(value, Some(Value::Date(at)) if *at <= cutoff_ms);
    Ok(generated.keys().any(|key| key.first().is_some_and(expired)))
}
