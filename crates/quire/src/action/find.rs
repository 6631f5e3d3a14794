//! `find` and `find_one`.

use crate::command::{Command, count};
use crate::error::{Error, Result};
use crate::options::{CursorType, millis};
use crate::setters::{options, standard_options};
use crate::{Collection, Cursor};
use bson::Document;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;
use std::time::Duration;

impl<T: Send + Sync> Collection<T> {
    /// Finds the matching documents.
    pub fn find(&self, filter: Document) -> Find<T> {
        let mut command = self.command("find");
        command.set("filter", filter);
        Find { command, batch_size: None, await_ms: None, documents: PhantomData }
    }

    /// Finds the first matching document.
    pub fn find_one(&self, filter: Document) -> FindOne<T> {
        let mut command = self.command("find");
        command.set("filter", filter).set("limit", 1).set("singleBatch", true);
        FindOne { command, documents: PhantomData }
    }
}

/// Finds documents; see [`Collection::find`].
#[must_use = "an action does nothing before `run`"]
pub struct Find<T> {
    command: Command,
    batch_size: Option<u32>,
    await_ms: Option<i64>,
    documents: PhantomData<fn() -> T>,
}

impl<T> Find<T> {
    options! {
        /// True to spill to disk beyond the memory limit (the default).
        allow_disk_use: bool => "allowDiskUse",
        /// The largest number of documents to return; 0 for all.
        limit: i64 => "limit",
        /// The exclusive upper bound of index keys.
        max: Document => "max",
        /// The inclusive lower bound of index keys.
        min: Document => "min",
        /// True if the cursor is not closed for being idle.
        no_cursor_timeout: bool => "noCursorTimeout",
        /// The fields to return.
        projection: Document => "projection",
        /// True to return only the keys of the index.
        return_key: bool => "returnKey",
        /// True to add the record id.
        show_record_id: bool => "showRecordId",
        /// The number of documents to skip.
        skip: u64 => "skip" as count,
        /// The order of the documents.
        sort: Document => "sort",
    }

    standard_options!(collation, comment, hint, let_vars, max_time, read_concern, session);

    /// Sets the number of documents in a batch.
    pub fn batch_size(mut self, size: u32) -> Self {
        self.command.set("batchSize", size);
        self.batch_size = Some(size);
        self
    }

    /// Sets whether the cursor stays open at the end of a capped collection.
    pub fn cursor_type(mut self, kind: CursorType) -> Self {
        self.command.set("tailable", kind != CursorType::NonTailable);
        self.command.set("awaitData", kind == CursorType::TailableAwait);
        if kind != CursorType::NonTailable {
            self.await_ms = self.await_ms.or(Some(-1));
        }
        self
    }

    /// Sets how long a tailable cursor waits for a new document.
    pub fn max_await_time(mut self, time: Duration) -> Self {
        self.await_ms = Some(millis(time));
        self
    }

    /// Runs the query.
    ///
    /// # Errors
    /// The errors of the command.
    pub fn run(self) -> Result<Cursor<T>> {
        Cursor::open(self.command, self.batch_size, self.await_ms)
    }
}

/// Finds one document; see [`Collection::find_one`].
#[must_use = "an action does nothing before `run`"]
pub struct FindOne<T> {
    command: Command,
    documents: PhantomData<fn() -> T>,
}

impl<T> FindOne<T> {
    options! {
        /// The exclusive upper bound of index keys.
        max: Document => "max",
        /// The inclusive lower bound of index keys.
        min: Document => "min",
        /// The fields to return.
        projection: Document => "projection",
        /// True to return only the keys of the index.
        return_key: bool => "returnKey",
        /// True to add the record id.
        show_record_id: bool => "showRecordId",
        /// The number of documents to skip.
        skip: u64 => "skip" as count,
        /// The order that decides which document is the first.
        sort: Document => "sort",
    }

    standard_options!(collation, comment, hint, let_vars, max_time, read_concern, session);

    /// Runs the query.
    ///
    /// # Errors
    /// The errors of the command; the document does not fit `T`.
    pub fn run(self) -> Result<Option<T>>
    where
        T: DeserializeOwned,
    {
        let mut cursor: Cursor<T> = Cursor::open(self.command, None, None)?;
        match cursor.advance()? {
            true => cursor.deserialize_current().map(Some),
            false => Ok(None),
        }
    }
}

/// Returns a document of a reply as `T`.
pub(super) fn document<T: DeserializeOwned>(value: bson::RawBsonRef<'_>) -> Result<Option<T>> {
    match value {
        bson::RawBsonRef::Document(found) => {
            bson::deserialize_from_slice(found.as_bytes()).map(Some).map_err(Error::deserialization)
        }
        _ => Ok(None),
    }
}
