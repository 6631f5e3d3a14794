//! Statements that change the catalog. Each is one commit (an index build is several), which
//! publishes the new catalog.

mod buckets;
mod capped_copy;
mod create;
mod create_indexes;
mod drop;
mod drop_indexes;
mod facts;
mod in_transaction;
mod index_build;
mod index_gather;
mod index_load;
mod key_sort;
mod make_unique;
mod modify_collection;
mod modify_index;
mod pattern_names;
mod patterns;
mod rename;
mod replace;
mod sizes;
mod statement;
mod successors;
mod views;

pub(crate) use buckets::number_buckets;
pub use create_indexes::{BuiltIndexes, CreateIndexes};
pub use drop_indexes::{DropIndexes, DroppedIndexes};
pub use make_unique::MakeUnique;
pub use modify_collection::{Expiry, ModifyCollection};
pub use modify_index::{IndexBefore, IndexChoice, ModifyIndex};
pub use patterns::PATTERNS;
pub(crate) use patterns::{CLIENT_BUILD_MS, PATTERN_BUILD, build_job};
pub use rename::Rename;
pub use sizes::{CollectionSizes, IndexSize, collection_sizes, reclaimable_bytes};
pub use successors::RebuiltIndexes;
pub use views::ModifyView;

use std::sync::Arc;

use bytes::Bytes;
use quire_catalog::patterns::{Pattern, PatternKind};
use quire_catalog::{
    Collection, CollectionId, Index, collection_key, dropped_key, encode_collection, multikey_key,
};
use quire_document::{Binary, Value, doc};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::Space;

use crate::Writer;
use crate::entry::index_range;
use crate::failure::from_storage;
use crate::layout::collection_end;
use crate::meta::put_meta;
use crate::rules::patterns::{rows_of_children, rows_of_pattern};

/// Returns the next number for a collection or an index.
pub(crate) fn take_id(next: &mut u32) -> Result<u32> {
    let id = *next;
    *next = id.checked_add(1).ok_or_else(|| {
        Error::new(ErrorCode::OperationFailed, "all 2^32 collection and index numbers are used up")
    })?;
    Ok(id)
}

/// Writes a collection's record with the next epoch.
fn put_collection(writer: &mut Writer, collection: &Collection) -> Result<()> {
    put_meta(writer.txn_mut(), &collection_key(collection.id), encode_collection(collection))
}

/// Returns a copy with the next epoch, to be changed.
fn next_epoch(collection: &Collection) -> Collection {
    let mut next = collection.clone();
    next.epoch += 1;
    next
}

/// Deletes all data of a collection in the engine with this commit.
fn drop_data(writer: &mut Writer, collection: &Collection) -> Result<()> {
    let id = collection.id;
    delete_meta(writer, &collection_key(id))?;
    delete_meta(writer, &quire_catalog::low_water_key(id))?;
    writer.txn_mut().forget_counts(id.0);
    match writer.keeps_dropped(collection) {
        true => keep_documents(writer, collection)?,
        false => drop_documents(writer, id),
    }
    if !collection.patterns.is_empty() {
        drop_groups_of(writer, collection);
    }
    if let Some(buckets) = collection.buckets {
        let (start, end) = index_range(buckets);
        writer.txn_mut().drop_range(Space::Idx, start.into(), end.into());
    }
    collection.indexes.iter().try_for_each(|index| drop_index_data(writer, index))
}

/// Drops the groups of roll-ups that the collection declares or that read it.
fn drop_groups_of(writer: &mut Writer, collection: &Collection) {
    drop_rows(writer, rows_of_children(collection.id));
    for pattern in &collection.patterns.declared {
        drop_groups(writer, collection, pattern);
    }
}

/// Drops the groups of one pattern of `owner`.
fn drop_groups(writer: &mut Writer, owner: &Collection, pattern: &Pattern) {
    let PatternKind::Rollup(rollup) = &pattern.kind else { return };
    let from = writer.catalog().collection(owner.namespace.db(), &rollup.from).cloned();
    if let Some(from) = from {
        drop_rows(writer, rows_of_pattern(from.id, owner.id, pattern));
    }
}

fn drop_rows(writer: &mut Writer, (start, end): (Vec<u8>, Vec<u8>)) {
    writer.txn_mut().drop_range(Space::Meta, start.into(), end.into());
}

/// Leaves the documents of a dropped collection to the change log, which may refer to them.
fn keep_documents(writer: &mut Writer, collection: &Collection) -> Result<()> {
    let record = doc! { "ns": collection.namespace.as_str(), "uuid": uuid_value(collection) };
    put_meta(writer.txn_mut(), &dropped_key(collection.id), record)
}

fn uuid_value(collection: &Collection) -> Value<'_> {
    Value::Binary(Binary { subtype: 4, bytes: &collection.uuid.0 })
}

fn drop_documents(writer: &mut Writer, id: CollectionId) {
    let start = Bytes::copy_from_slice(&id.to_bytes());
    writer.txn_mut().drop_range(Space::Doc, start, collection_end(id).into());
}

fn drop_index_data(writer: &mut Writer, index: &Arc<Index>) -> Result<()> {
    delete_meta(writer, &multikey_key(index.id))?;
    let (start, end) = index_range(index.id);
    writer.txn_mut().drop_range(Space::Idx, start.into(), end.into());
    Ok(())
}

fn delete_meta(writer: &mut Writer, key: &[u8]) -> Result<()> {
    writer.txn_mut().delete(Space::Meta, Bytes::copy_from_slice(key)).map_err(from_storage)
}
