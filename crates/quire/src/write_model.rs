//! The writes of a `bulk_write`: what each does, and in which collection.

use crate::Collection;
use crate::error::{Error, Result};
use crate::options::{Hint, Namespace, UpdateModifications};
use crate::prepare;
use bson::{Bson, Document, doc};
use serde::Serialize;
use std::borrow::Borrow;

/// One write of a [`Client::bulk_write`](crate::Client::bulk_write). Made by a collection:
/// [`Collection::insert_one_model`] and its siblings.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteModel {
    pub(crate) namespace: Namespace,
    pub(crate) kind: Kind,
    /// The operation without its collection: `insert`, `update` or `delete` is added when it is
    /// sent.
    pub(crate) operation: Document,
}

/// What a write does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// It inserts the document of this `_id`.
    Insert(Bson),
    /// It changes documents.
    Update,
    /// It removes documents.
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
    /// Inserts a document; it gets an `_id` if it has none.
    ///
    /// # Errors
    /// It does not become BSON.
    pub fn insert_one_model(&self, document: impl Borrow<T>) -> Result<WriteModel>
    where
        T: Serialize,
    {
        let (document, id) = prepare::prepare(document.borrow())?;
        let document = Document::try_from(document).map_err(Error::serialization)?;
        Ok(self.model(Kind::Insert(id), doc! { "document": document }))
    }

    /// Changes the first document that matches.
    pub fn update_one_model(
        &self,
        filter: Document,
        update: impl Into<UpdateModifications>,
    ) -> WriteModel {
        self.update_model(filter, update.into().into(), false)
    }

    /// Changes every document that matches.
    pub fn update_many_model(
        &self,
        filter: Document,
        update: impl Into<UpdateModifications>,
    ) -> WriteModel {
        self.update_model(filter, update.into().into(), true)
    }

    /// Puts another document in the place of the first that matches.
    ///
    /// # Errors
    /// It does not become BSON.
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

    /// Removes the first document that matches.
    pub fn delete_one_model(&self, filter: Document) -> WriteModel {
        self.model(Kind::Delete, doc! { "filter": filter, "multi": false })
    }

    /// Removes every document that matches.
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

/// Options of single writes. One that a write does not take is refused when it is run.
impl WriteModel {
    /// Which elements of arrays `$[name]` means.
    pub fn array_filters(self, value: Vec<Document>) -> Self {
        self.with("arrayFilters", value)
    }

    /// How strings compare.
    pub fn collation(self, value: Document) -> Self {
        self.with("collation", value)
    }

    /// The index to use.
    pub fn hint(self, value: Hint) -> Self {
        self.with("hint", value)
    }

    /// Which of several matches is the first.
    pub fn sort(self, value: Document) -> Self {
        self.with("sort", value)
    }

    /// Inserts a document if none matches.
    pub fn upsert(self, value: bool) -> Self {
        self.with("upsert", value)
    }

    fn with(mut self, name: &str, value: impl Into<Bson>) -> Self {
        self.operation.insert(name, value);
        self
    }
}
