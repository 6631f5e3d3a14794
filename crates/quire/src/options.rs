//! The values of options.

use bson::{Bson, Document, doc};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The names of a database and of a collection in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Namespace {
    /// The name of the database.
    pub db: String,
    /// The name of the collection.
    pub coll: String,
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.db, self.coll)
    }
}

/// How durable a write must be before the call returns. The default is majority: on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteConcern {
    /// The members that must have the write.
    pub w: Option<Acknowledgment>,
    /// How long to wait for the members.
    pub w_timeout: Option<Duration>,
    /// True if the write must be on disk.
    pub journal: Option<bool>,
}

/// The members that must have a write.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Acknowledgment {
    /// A number of members. 1: the write survives the end of the process, and is on disk within 100
    /// ms.
    Nodes(u32),
    /// A majority, and on disk.
    Majority,
}

impl WriteConcern {
    /// Returns the default: the write is on disk before the call returns.
    pub fn majority() -> WriteConcern {
        WriteConcern { w: Some(Acknowledgment::Majority), ..WriteConcern::default() }
    }

    /// Returns a write concern for which the operating system has the write before the call
    /// returns; it is on disk within 100 ms.
    pub fn nodes(nodes: u32) -> WriteConcern {
        WriteConcern { w: Some(Acknowledgment::Nodes(nodes)), ..WriteConcern::default() }
    }

    /// Sets whether the write must be on disk.
    #[must_use]
    pub fn with_journal(mut self, journal: bool) -> WriteConcern {
        self.journal = Some(journal);
        self
    }
}

impl From<WriteConcern> for Bson {
    fn from(concern: WriteConcern) -> Bson {
        let mut doc = Document::new();
        match concern.w {
            Some(Acknowledgment::Nodes(nodes)) => drop(doc.insert("w", nodes)),
            Some(Acknowledgment::Majority) => drop(doc.insert("w", "majority")),
            None => {}
        }
        if let Some(timeout) = concern.w_timeout {
            doc.insert("wtimeout", millis(timeout));
        }
        if let Some(journal) = concern.journal {
            doc.insert("j", journal);
        }
        doc.into()
    }
}

/// Which writes a read must see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadConcern {
    /// `local`, `majority`, `linearizable`, `available` or `snapshot`.
    pub level: String,
}

impl ReadConcern {
    /// Returns a read concern for all committed writes.
    pub fn local() -> ReadConcern {
        ReadConcern { level: "local".into() }
    }

    /// Returns a read concern for durable writes.
    pub fn majority() -> ReadConcern {
        ReadConcern { level: "majority".into() }
    }

    /// Returns a read concern for one time for the whole result.
    pub fn snapshot() -> ReadConcern {
        ReadConcern { level: "snapshot".into() }
    }
}

impl From<ReadConcern> for Bson {
    fn from(concern: ReadConcern) -> Bson {
        doc! { "level": concern.level }.into()
    }
}

/// The index that a plan must use.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Hint {
    /// By its keys.
    Keys(Document),
    /// By its name.
    Name(String),
}

impl From<Hint> for Bson {
    fn from(hint: Hint) -> Bson {
        match hint {
            Hint::Keys(keys) => keys.into(),
            Hint::Name(name) => name.into(),
        }
    }
}

/// The change of an update: operators, or a pipeline.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum UpdateModifications {
    /// Update operators: `{$set: {...}}`.
    Document(Document),
    /// Stages that compute the new document from the old one.
    Pipeline(Vec<Document>),
}

impl From<Document> for UpdateModifications {
    fn from(update: Document) -> Self {
        UpdateModifications::Document(update)
    }
}

impl From<Vec<Document>> for UpdateModifications {
    fn from(pipeline: Vec<Document>) -> Self {
        UpdateModifications::Pipeline(pipeline)
    }
}

impl From<UpdateModifications> for Bson {
    fn from(update: UpdateModifications) -> Bson {
        match update {
            UpdateModifications::Document(update) => update.into(),
            UpdateModifications::Pipeline(pipeline) => pipeline.into(),
        }
    }
}

/// Which document a find-and-modify returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReturnDocument {
    /// The document after the change.
    After,
    /// The document before the change.
    #[default]
    Before,
}

/// Whether a cursor stays open at the end of a capped collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CursorType {
    /// The cursor ends after its last document.
    #[default]
    NonTailable,
    /// The cursor stays open and can return later documents.
    Tailable,
    /// The cursor stays open and waits for later documents.
    TailableAwait,
}

/// Whether the event of an update has the document.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FullDocumentType {
    /// The document as it is when the event is read; null if it is gone.
    UpdateLookup,
    /// The document after the update, if it is kept.
    WhenAvailable,
    /// The document after the update; the stream fails if it is not kept.
    Required,
    /// A word without a variant.
    Other(String),
}

impl From<FullDocumentType> for Bson {
    fn from(full: FullDocumentType) -> Bson {
        match full {
            FullDocumentType::UpdateLookup => "updateLookup".into(),
            FullDocumentType::WhenAvailable => "whenAvailable".into(),
            FullDocumentType::Required => "required".into(),
            FullDocumentType::Other(word) => word.into(),
        }
    }
}

/// Whether events have the document before the change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FullDocumentBeforeChangeType {
    /// If it is kept.
    WhenAvailable,
    /// Always; the stream fails if it is not kept.
    Required,
    /// Events do not have it.
    Off,
    /// A word without a variant.
    Other(String),
}

impl From<FullDocumentBeforeChangeType> for Bson {
    fn from(before: FullDocumentBeforeChangeType) -> Bson {
        match before {
            FullDocumentBeforeChangeType::WhenAvailable => "whenAvailable".into(),
            FullDocumentBeforeChangeType::Required => "required".into(),
            FullDocumentBeforeChangeType::Off => "off".into(),
            FullDocumentBeforeChangeType::Other(word) => word.into(),
        }
    }
}

/// An index: its keys and its options.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct IndexModel {
    /// The fields with their kinds or directions.
    #[serde(rename = "key")]
    pub keys: Document,
    /// All other options, with their names in `createIndexes`.
    #[serde(flatten)]
    pub options: Option<IndexOptions>,
}

impl IndexModel {
    /// Returns an empty builder.
    pub fn builder() -> IndexModelBuilder {
        IndexModelBuilder::default()
    }

    /// Returns the name of the index: the given one, or one made from the keys.
    pub(crate) fn name(&self) -> String {
        if let Some(name) = self.options.as_ref().and_then(|options| options.name.clone()) {
            return name;
        }
        let parts = self.keys.iter().map(|(field, kind)| match kind {
            Bson::String(kind) => format!("{field}_{kind}"),
            Bson::Double(direction) => format!("{field}_{}", *direction as i64),
            kind => format!("{field}_{kind}"),
        });
        parts.collect::<Vec<_>>().join("_")
    }
}

/// A builder of an [`IndexModel`].
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct IndexModelBuilder {
    model: IndexModel,
}

impl IndexModelBuilder {
    /// Sets the fields with their kinds or directions.
    pub fn keys(mut self, keys: Document) -> Self {
        self.model.keys = keys;
        self
    }

    /// Sets all options except the key pattern.
    pub fn options(mut self, options: impl Into<Option<IndexOptions>>) -> Self {
        self.model.options = options.into();
        self
    }

    /// Returns the model with the values that were set.
    pub fn build(self) -> IndexModel {
        self.model
    }
}

/// Writes [`IndexOptions`] and its builder from one list of fields.
macro_rules! index_options {
    ($($(#[$doc:meta])* $name:ident: $kind:ty,)*) => {
        /// The options of an index. Options without a field are in `other`.
        #[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
        #[serde(rename_all = "camelCase")]
        #[non_exhaustive]
        pub struct IndexOptions {
            $(
                $(#[$doc])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $name: Option<$kind>,
            )*
            /// `v` and any other options.
            #[serde(flatten)]
            pub other: Document,
        }

        impl IndexOptionsBuilder {
            $(
                $(#[$doc])*
                pub fn $name(mut self, value: impl Into<Option<$kind>>) -> Self {
                    self.options.$name = value.into();
                    self
                }
            )*
        }
    };
}

index_options! {
    /// The name of the index.
    name: String,
    /// True to refuse a second document with the same key.
    unique: bool,
    /// True to leave out documents without the field.
    sparse: bool,
    /// Seconds after the date in the field at which a document expires.
    expire_after_seconds: i64,
    /// Only matching documents are in the index.
    partial_filter_expression: Document,
    /// True if the planner must not use it.
    hidden: bool,
    /// The collation of its strings.
    collation: Document,
    /// The fields of a wildcard index.
    wildcard_projection: Document,
}

impl IndexOptions {
    /// Returns an empty builder.
    pub fn builder() -> IndexOptionsBuilder {
        IndexOptionsBuilder::default()
    }
}

/// Builds an [`IndexOptions`] value step by step.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct IndexOptionsBuilder {
    options: IndexOptions,
}

impl IndexOptionsBuilder {
    /// Sets options without a method of their own.
    pub fn other(mut self, other: Document) -> Self {
        self.options.other = other;
        self
    }

    /// Returns the options that were set.
    pub fn build(self) -> IndexOptions {
        self.options
    }
}

/// Returns a duration in whole milliseconds.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
