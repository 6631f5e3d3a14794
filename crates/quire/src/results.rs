//! The results of calls.

use bson::{Bson, Document};
use serde::Deserialize;
use std::collections::HashMap;

/// The result of an `insert_one`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct InsertOneResult {
    /// The document's `_id`, given or generated.
    pub inserted_id: Bson,
}

/// The result of an `insert_many`.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct InsertManyResult {
    /// The `_id` of each document, by position.
    pub inserted_ids: HashMap<usize, Bson>,
}

/// The result of an update or a replacement.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct UpdateResult {
    /// Documents that matched.
    pub matched_count: u64,
    /// Documents that were changed.
    pub modified_count: u64,
    /// The `_id` of the document that an upsert inserted.
    pub upserted_id: Option<Bson>,
}

/// The result of a delete.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeleteResult {
    /// Documents that were deleted.
    pub deleted_count: u64,
}

/// The counts of a `bulk_write`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SummaryBulkWriteResult {
    /// Documents that were inserted.
    pub inserted_count: u64,
    /// Documents that upserts inserted.
    pub upserted_count: u64,
    /// Documents that updates matched.
    pub matched_count: u64,
    /// Documents that updates changed.
    pub modified_count: u64,
    /// Documents that were deleted.
    pub deleted_count: u64,
}

/// The results of the writes of a `bulk_write`, by position.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct VerboseBulkWriteResult {
    /// The counts of all writes.
    pub summary: SummaryBulkWriteResult,
    /// The results of the inserts, by their positions in the request.
    pub insert_results: HashMap<usize, InsertOneResult>,
    /// The results of updates and replacements, by their positions in the request.
    pub update_results: HashMap<usize, UpdateResult>,
    /// The results of the deletes, by their positions in the request.
    pub delete_results: HashMap<usize, DeleteResult>,
}

/// The result of a `create_index`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CreateIndexResult {
    /// The index's name.
    pub index_name: String,
}

/// The result of a `create_indexes`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CreateIndexesResult {
    /// The indexes' names.
    pub index_names: Vec<String>,
}

/// A collection as `list_collections` shows it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct CollectionSpecification {
    /// The name of the collection.
    pub name: String,
    /// `collection`, `view` or `timeseries`.
    #[serde(rename = "type")]
    pub collection_type: String,
    /// The options that it was created with.
    #[serde(default)]
    pub options: Document,
    /// Its UUID, and true if it is read-only.
    #[serde(default)]
    pub info: Document,
    /// Its index on `_id`.
    #[serde(rename = "idIndex", default)]
    pub id_index: Option<Document>,
}

/// A database as `list_databases` shows it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct DatabaseSpecification {
    /// The name of the database.
    pub name: String,
    /// Bytes on disk.
    #[serde(rename = "sizeOnDisk")]
    pub size_on_disk: u64,
    /// True if it has no documents.
    pub empty: bool,
}
