//! `find_one_and_update`, `find_one_and_replace` and `find_one_and_delete`.

use super::find::document;
use crate::Collection;
use crate::command::Command;
use crate::error::{Error, Result};
use crate::options::{ReturnDocument, UpdateModifications};
use crate::setters::{options, standard_options};
use bson::{Bson, Document};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Borrow;
use std::marker::PhantomData;

impl<T: Send + Sync> Collection<T> {
    /// Changes the first matching document and returns it.
    pub fn find_one_and_update(
        &self,
        filter: Document,
        update: impl Into<UpdateModifications>,
    ) -> FindOneAndUpdate<T> {
        FindOneAndUpdate::new(self, filter, Ok(update.into().into()))
    }

    /// Replaces the first matching document and returns the old or the new one.
    pub fn find_one_and_replace(
        &self,
        filter: Document,
        replacement: impl Borrow<T>,
    ) -> FindOneAndReplace<T>
    where
        T: Serialize,
    {
        let replacement = crate::prepare::replacement(replacement.borrow());
        FindOneAndUpdate::new(self, filter, replacement)
    }

    /// Deletes the first matching document and returns it.
    pub fn find_one_and_delete(&self, filter: Document) -> FindOneAndDelete<T> {
        let mut command = self.command("findAndModify");
        command.set("query", filter).set("remove", true);
        FindOneAndDelete { command, documents: PhantomData }
    }
}

/// Replaces a document; see [`Collection::find_one_and_replace`].
pub type FindOneAndReplace<T> = FindOneAndUpdate<T>;

/// Changes a document; see [`Collection::find_one_and_update`].
#[must_use = "an action does nothing before `run`"]
pub struct FindOneAndUpdate<T> {
    command: Command,
    update: Result<Bson>,
    documents: PhantomData<fn() -> T>,
}

impl<T> FindOneAndUpdate<T> {
    fn new(collection: &Collection<T>, filter: Document, update: Result<Bson>) -> Self {
        let mut command = collection.command("findAndModify");
        command.set("query", filter);
        FindOneAndUpdate { command, update, documents: PhantomData }
    }

    options! {
        /// The array elements that `$[name]` selects.
        array_filters: Vec<Document> => "arrayFilters",
        /// The fields to return.
        projection: Document => "fields",
        /// The order that decides which matching document is the first.
        sort: Document => "sort",
        /// True to insert a document if none matches.
        upsert: bool => "upsert",
    }

    standard_options!(
        bypass_document_validation,
        collation,
        comment,
        hint,
        let_vars,
        max_time,
        session,
        write_concern
    );

    /// Sets whether the document is returned as it was before (the default) or after the change.
    pub fn return_document(mut self, which: ReturnDocument) -> Self {
        self.command.set("new", which == ReturnDocument::After);
        self
    }

    /// Changes the document.
    ///
    /// # Errors
    /// The replacement cannot be serialized to BSON; the errors of the command; the document does
    /// not fit `T`.
    pub fn run(mut self) -> Result<Option<T>>
    where
        T: DeserializeOwned,
    {
        self.command.set("update", self.update?);
        run(self.command)
    }
}

/// Deletes a document; see [`Collection::find_one_and_delete`].
#[must_use = "an action does nothing before `run`"]
pub struct FindOneAndDelete<T> {
    command: Command,
    documents: PhantomData<fn() -> T>,
}

impl<T> FindOneAndDelete<T> {
    options! {
        /// The fields to return.
        projection: Document => "fields",
        /// The order that decides which matching document is the first.
        sort: Document => "sort",
    }

    standard_options!(collation, comment, hint, let_vars, max_time, session, write_concern);

    /// Deletes the document.
    ///
    /// # Errors
    /// The errors of the command; the document does not fit `T`.
    pub fn run(self) -> Result<Option<T>>
    where
        T: DeserializeOwned,
    {
        run(self.command)
    }
}

fn run<T: DeserializeOwned>(command: Command) -> Result<Option<T>> {
    let reply = command.run()?;
    Error::from_write_reply(&reply)?;
    match reply.get("value").map_err(|error| Error::invalid_response(error.to_string()))? {
        Some(value) => document(value),
        None => Ok(None),
    }
}
