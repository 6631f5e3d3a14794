//! The sizes that `collStats` and `dbStats` report, and the space that `compact` would free.

use quire_catalog::Collection;
use quire_error::Result;
use quire_storage::{Counts, Space};

use crate::Store;
use crate::entry::index_range;
use crate::failure::from_storage;
use crate::layout::collection_end;

/// The sizes of a collection.
#[derive(Debug, Clone, Default)]
pub struct CollectionSizes {
    /// The number of documents and the sum of their lengths, exact.
    pub counts: Counts,
    /// An estimate of the bytes that the documents take on disk.
    pub storage_bytes: u64,
    /// The sizes of the indexes, in the catalog's order.
    pub indexes: Vec<IndexSize>,
}

/// The size of an index.
#[derive(Debug, Clone)]
pub struct IndexSize {
    /// The name of the index.
    pub name: String,
    /// An estimate of the bytes that it takes on disk.
    pub bytes: u64,
}

/// Returns the sizes of a collection and its indexes.
pub fn collection_sizes(store: &Store, collection: &Collection) -> Result<CollectionSizes> {
    let engine = store.engine();
    let start = collection.id.to_bytes();
    let documents = engine
        .approximate_size(Space::Doc, &start, &collection_end(collection.id))
        .map_err(from_storage)?;
    let mut storage_bytes = documents.bytes;
    if let Some(buckets) = collection.buckets {
        let (start, end) = index_range(buckets);
        let size = engine.approximate_size(Space::Idx, &start, &end).map_err(from_storage)?;
        storage_bytes += size.bytes;
    }
    let mut indexes = Vec::with_capacity(collection.indexes.len());
    for index in &collection.indexes {
        let (start, end) = index_range(index.id);
        let size = engine.approximate_size(Space::Idx, &start, &end).map_err(from_storage)?;
        indexes.push(IndexSize { name: index.name.clone(), bytes: size.bytes });
    }
    Ok(CollectionSizes { counts: store.counts(collection), storage_bytes, indexes })
}

/// Estimates the bytes on disk that a compaction of a collection and its indexes would free. Data
/// that have not been flushed do not count.
pub fn reclaimable_bytes(store: &Store, collection: &Collection) -> Result<u64> {
    let engine = store.engine();
    let documents = store.counts(collection).documents;
    let (start, end) = (collection.id.to_bytes(), collection_end(collection.id));
    let of_documents = engine.reclaimable_bytes(Space::Doc, &start, &end, Some(documents));
    let mut bytes = of_documents.map_err(from_storage)?;
    for index in &collection.indexes {
        let (start, end) = index_range(index.id);
        // Each document has one entry in the `_id` index; in another index it can have any number.
        let live = index.is_id().then_some(documents);
        let of_index = engine.reclaimable_bytes(Space::Idx, &start, &end, live);
        bytes += of_index.map_err(from_storage)?;
    }
    Ok(bytes)
}
