//! Where collections and documents come from.

use quire_document::{ArrayBuf, Doc, DocBuf};

/// A collection of a source.
#[derive(Clone, Debug, Default)]
pub struct SourceCollection {
    /// The name within its database.
    pub name: String,
    /// The number of documents, if the source knows it.
    pub documents: Option<u64>,
    /// The options as `listCollections` shows them: validator, capped and others.
    pub options: DocBuf,
    /// The specifications of its indexes, as `listIndexes` shows them.
    pub indexes: Vec<DocBuf>,
    /// The use of its indexes, if the source knows it.
    pub uses: Vec<IndexUse>,
}

/// The use of an index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexUse {
    /// The name of the index.
    pub name: String,
    /// The operations that used it; `None` if the source does not know.
    pub uses: Option<u64>,
    /// The time during which they were counted, in seconds.
    pub seconds: f64,
    /// Its size in bytes, if the source knows it.
    pub bytes: Option<u64>,
}

impl SourceCollection {
    /// Returns what is known about the use of an index.
    pub fn use_of(&self, index: &str) -> Option<&IndexUse> {
        self.uses.iter().find(|found| found.name == index)
    }

    /// Returns the fields that identify a document alone: `_id`, and the keys of unique indexes of
    /// one field that hold for all documents.
    pub fn unique_fields(&self) -> Vec<String> {
        let mut fields = vec!["_id".to_owned()];
        for index in &self.indexes {
            let is_true = |name| index.get(name).and_then(|value| value.as_bool()) == Some(true);
            let partial = index.get("partialFilterExpression").is_some();
            let key = index.get("key").and_then(|key| key.as_document());
            let Some(key) = key.filter(|key| is_true("unique") && !partial && key.count() == 1)
            else {
                continue;
            };
            fields.extend(key.first().map(|field| field.key().to_owned()));
        }
        fields
    }
}

/// How much of a collection is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Every document is read.
    All,
    /// At most this many documents, drawn uniformly at random by the source.
    Sample(u64),
}

/// A place with collections: a server, or files.
pub trait Source {
    /// The error of a source.
    type Error;

    /// Returns the collections of the database, without views and without the server's own.
    ///
    /// # Errors
    /// Those of the source.
    fn collections(&mut self) -> Result<Vec<SourceCollection>, Self::Error>;

    /// Calls `each` with the documents of a collection.
    ///
    /// # Errors
    /// Those of the source.
    fn read(
        &mut self,
        collection: &str,
        extent: Extent,
        each: &mut dyn FnMut(Doc<'_>),
    ) -> Result<(), Self::Error>;

    /// Returns for each of the lookups how many of its values are there.
    ///
    /// # Errors
    /// Those of the source.
    fn look_up(&mut self, collection: &str, lookups: &[Lookup]) -> Result<Vec<u64>, Self::Error>;

    /// Calls `each` with the documents in which the field of the lookup has one of its values.
    ///
    /// # Errors
    /// Those of the source.
    fn fetch(
        &mut self,
        collection: &str,
        lookup: &Lookup,
        each: &mut dyn FnMut(Doc<'_>),
    ) -> Result<(), Self::Error>;
}

/// A question to a collection: how many of these values does a field have in some document?
#[derive(Clone, Debug)]
pub struct Lookup {
    /// The field, whose values are unique.
    pub field: String,
    /// The values to look for, each once.
    pub values: ArrayBuf,
}
