//! What `collStats` and `dbStats` count.

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
    /// Documents and the sum of their lengths, exact.
    pub counts: Counts,
    /// Bytes that the documents take as stored, an estimate.
    pub storage_bytes: u64,
    /// Each index, in the catalog's order.
    pub indexes: Vec<IndexSize>,
}

/// The size of an index.
#[derive(Debug, Clone)]
pub struct IndexSize {
    /// The name of the index.
    pub name: String,
    /// Bytes as stored, an estimate.
    pub bytes: u64,
}

/// The sizes of a collection and its indexes.
pub fn collection_sizes(store: &Store, collection: &Collection) -> Result<CollectionSizes> {
    let engine = store.engine();
    let start = collection.id.to_bytes();
    let documents = engine
        .approximate_size(Space::Doc, &start, &collection_end(collection.id))
        .map_err(from_storage)?;
    let mut indexes = Vec::with_capacity(collection.indexes.len());
    for index in &collection.indexes {
        let (start, end) = index_range(index.id);
        let size = engine.approximate_size(Space::Idx, &start, &end).map_err(from_storage)?;
        indexes.push(IndexSize { name: index.name.clone(), bytes: size.bytes });
    }
    Ok(CollectionSizes {
        counts: store.counts(collection),
        storage_bytes: documents.bytes,
        indexes,
    })
}
