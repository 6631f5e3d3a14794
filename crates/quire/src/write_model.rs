//! The writes of a `bulk_write`: the operation and the collection of each.

use crate::Collection;
use crate::error::{Error, Result};
use crate::options::{Hint, Namespace, UpdateModifications};
use crate::prepare;
use bson::{Bson, Document, doc};
use serde::Serialize;
use std::borrow::Borrow;

/// One write of a [`Client::bulk_write`](crate::Client::bulk_write). A collection creates it:
/// [`Collection::insert_one_model`] and similar methods.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteModel {
    pub(crate) namespace: Namespace,
    pub(crate) kind: Kind,
    /// The operation without its collection: `insert`, `update` or `delete` is added when it is
    /// sent.
    pub(crate) operation: Document,
}

/// The kind of a write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// An insert of the document with this `_id`.
    Insert(Bson),
    /// A change of documents.
    Update,
    /// A deletion of documents.
    Delete,
}

impl Kind {
    /// Returns the operation's first field.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Insert(_) => "insert",
            Kind::Update => "update",
            Kind::Delete => "delete",
        }
    }
}

impl<T: Send + Sync> Collection<T> {
    /// Inserts a document; a document without an `_id` gets one.
    ///
    /// # Errors
    /// The document cannot be serialized to BSON.
    pub fn insert_one_model(&self, document: impl Borrow<T>) -> Result<WriteModel>
    where
        T: Serialize,
    {
        let (document, id) = prepare::prepare(document.borrow())?;
        let document = Document::try_from(document).map_err(Error::serialization)?;
        Ok(self.model(Kind::Insert(id), doc! { "document": document }))
    }

    /// Changes the first matching document.
    pub fn update_one_model(
        &self,
        filter: Document,
        update: impl Into<UpdateModifications>,
    ) -> WriteModel {
        self.update_model(filter, update.into().into(), false)
    }

    /// Changes every matching document.
    pub fn update_many_model(
        &self,
        filter: Document,
        update: impl Into<UpdateModifications>,
    ) -> WriteModel {
        self.update_model(filter, update.into().into(), true)
    }

    /// Replaces the first matching document.
    ///
    /// # Errors
    /// The document cannot be serialized to BSON.
    pub fn replace_one_model(
        &self,
        filter: Document,
        replacement: impl Borrow<T>,
    ) -> Result<WriteModel>
    where
        T: Serialize,
    {
        let replacement = prepare::replacement(replacement.borrow())?;
        Ok(self.update_model(filter, replacement, false))
    }

    /// Deletes the first matching document.
    pub fn delete_one_model(&self, filter: Document) -> WriteModel {
        self.model(Kind::Delete, doc! { "filter": filter, "multi": false })
    }

    /// Deletes every matching document.
    pub fn delete_many_model(&self, filter: Document) -> WriteModel {
        self.model(Kind::Delete, doc! { "filter": filter, "multi": true })
    }

    fn update_model(&self, filter: Document, update: Bson, multi: bool) -> WriteModel {
        let operation = doc! { "filter": filter, "updateMods": update, "multi": multi };
        self.model(Kind::Update, operation)
    }

    fn model(&self, kind: Kind, operation: Document) -> WriteModel {
        WriteModel { namespace: self.namespace(), kind, operation }
    }
}

/// Options of single writes. `run` refuses an option that a write does not support.
impl WriteModel {
    /// Sets the array elements that `$[name]` selects.
    pub fn array_filters(self, value: Vec<Document>) -> Self {
        self.with("arrayFilters", value)
    }

    /// Sets the collation of string comparisons.
    pub fn collation(self, value: Document) -> Self {
        self.with("collation", value)
    }

    /// Sets the index to use.
    pub fn hint(self, value: Hint) -> Self {
        self.with("hint", value)
    }

    /// Sets the order that decides which matching document is the first.
    pub fn sort(self, value: Document) -> Self {
        self.with("sort", value)
    }

    /// Sets whether a document is inserted if none matches.
    pub fn upsert(self, value: bool) -> Self {
        self.with("upsert", value)
    }

    fn with(mut self, name: &str, value: impl Into<Bson>) -> Self {
        self.operation.insert(name, value);
        self
    }
}
