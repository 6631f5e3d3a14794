//! The events of a change stream, with the official driver's names.

use bson::{DateTime, Document, Timestamp, Uuid};
use serde::{Deserialize, Serialize};

/// A place in the order of events. It is opaque, can be stored as a document, and stays valid when the
/// database is opened again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResumeToken(pub(crate) Document);

/// An event of a change stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ChangeStreamEvent<T> {
    /// The place of the event.
    #[serde(rename = "_id")]
    pub id: ResumeToken,
    /// The kind of the change.
    pub operation_type: OperationType,
    /// Where it happened.
    pub ns: Option<ChangeNamespace>,
    /// What kind of a collection it is; with `show_expanded_events`.
    pub ns_type: Option<ChangeNamespaceType>,
    /// The new name after a rename.
    pub to: Option<ChangeNamespace>,
    /// The identity of the document.
    pub document_key: Option<Document>,
    /// What an update changed.
    pub update_description: Option<UpdateDescription>,
    /// The document: after an insert or a replacement always, after an update as `full_document` says.
    pub full_document: Option<T>,
    /// The document before the change, as `full_document_before_change` says.
    pub full_document_before_change: Option<T>,
    /// The time of the commit.
    pub cluster_time: Option<Timestamp>,
    /// The time of the wall clock at the commit.
    pub wall_time: Option<DateTime>,
    /// The number of the transaction in its session.
    pub txn_number: Option<i64>,
    /// The session of the transaction.
    pub lsid: Option<Document>,
    /// The collection's identity; with `show_expanded_events`.
    #[serde(rename = "collectionUUID")]
    pub collection_uuid: Option<Uuid>,
    /// The arguments of a change of the catalog; with `show_expanded_events`.
    pub operation_description: Option<Document>,
    /// The options before a `collMod`; with `show_expanded_events`.
    pub state_before_change: Option<Document>,
    /// Which part of an event that was cut in parts it is.
    pub split_event: Option<SplitEvent>,
}

/// The kind of a change.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[non_exhaustive]
pub enum OperationType {
    /// A document was inserted.
    Insert,
    /// Fields of a document were changed.
    Update,
    /// A document was replaced.
    Replace,
    /// A document was deleted.
    Delete,
    /// A collection was dropped.
    Drop,
    /// A collection was renamed.
    Rename,
    /// A database was dropped.
    DropDatabase,
    /// What is watched does not exist any more: the last event of its stream.
    Invalidate,
    /// Another change, such as `create` or `createIndexes`.
    Other(String),
}

/// The names of the kinds that have a variant.
const KINDS: [(&str, OperationType); 8] = [
    ("insert", OperationType::Insert),
    ("update", OperationType::Update),
    ("replace", OperationType::Replace),
    ("delete", OperationType::Delete),
    ("drop", OperationType::Drop),
    ("rename", OperationType::Rename),
    ("dropDatabase", OperationType::DropDatabase),
    ("invalidate", OperationType::Invalidate),
];

impl From<String> for OperationType {
    fn from(name: String) -> OperationType {
        let known = KINDS.iter().find(|(known, _)| *known == name);
        known.map_or_else(|| OperationType::Other(name.clone()), |(_, kind)| kind.clone())
    }
}

impl From<OperationType> for String {
    fn from(kind: OperationType) -> String {
        match (KINDS.iter().find(|(_, known)| *known == kind), kind) {
            (Some((name, _)), _) => (*name).to_owned(),
            (None, OperationType::Other(name)) => name,
            (None, _) => unreachable!("every other kind has a name"),
        }
    }
}

/// The names of a database and, unless it is about the database, of a collection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChangeNamespace {
    /// The name of the database.
    pub db: String,
    /// The name of the collection.
    pub coll: Option<String>,
}

/// What kind of a collection it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ChangeNamespaceType {
    /// An ordinary or capped collection.
    Collection,
    /// A view of a collection.
    View,
    /// A time-series collection.
    Timeseries,
    /// A kind without a name here.
    #[serde(untagged)]
    Other(String),
}

/// What an update changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UpdateDescription {
    /// The new values by path.
    pub updated_fields: Document,
    /// The paths that are gone.
    pub removed_fields: Vec<String>,
    /// The arrays that became shorter.
    pub truncated_arrays: Option<Vec<TruncatedArray>>,
    /// The parts of paths that can be read in two ways; with `show_expanded_events`.
    pub disambiguated_paths: Option<Document>,
}

/// An array that became shorter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TruncatedArray {
    /// The path of the array.
    pub field: String,
    /// The number of its elements after the update.
    pub new_size: i32,
}

/// The place of a part among the parts of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SplitEvent {
    /// The number of the part, from 1.
    pub fragment: i32,
    /// The number of parts.
    pub of: i32,
}
