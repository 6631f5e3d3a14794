//! What calls answer.

use bson::{Bson, Document};
use serde::Deserialize;
use std::collections::HashMap;

/// What an `insert_one` did.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct InsertOneResult {
    /// The document's `_id`, given or made.
    pub inserted_id: Bson,
}

/// What an `insert_many` did.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct InsertManyResult {
    /// The `_id` of each document, by its place.
    pub inserted_ids: HashMap<usize, Bson>,
}

/// What an update or a replacement did.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct UpdateResult {
    /// Documents that matched.
    pub matched_count: u64,
    /// Documents that are different now.
    pub modified_count: u64,
    /// The `_id` of the document that an upsert inserted.
    pub upserted_id: Option<Bson>,
}

/// What a delete did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeleteResult {
    /// Documents that are gone.
    pub deleted_count: u64,
}

/// How much a `bulk_write` did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SummaryBulkWriteResult {
    /// Documents that were inserted.
    pub inserted_count: u64,
    /// Documents that upserts inserted.
    pub upserted_count: u64,
    /// Documents that updates matched.
    pub matched_count: u64,
    /// Of these, documents that are different now.
    pub modified_count: u64,
    /// Documents that are gone.
    pub deleted_count: u64,
}

/// What each write of a `bulk_write` did, by its place.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct VerboseBulkWriteResult {
    /// How much all of them did.
    pub summary: SummaryBulkWriteResult,
    /// The results of the inserts, by their places in the request.
    pub insert_results: HashMap<usize, InsertOneResult>,
    /// The updates and replacements.
    pub update_results: HashMap<usize, UpdateResult>,
    /// The results of the deletes, by their places in the request.
    pub delete_results: HashMap<usize, DeleteResult>,
}

/// What a `create_index` did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CreateIndexResult {
    /// The index's name.
    pub index_name: String,
}

/// What a `create_indexes` did.
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
    /// Its UUID, and whether it is read-only.
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
