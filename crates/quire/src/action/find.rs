//! `find` and `find_one`.

use crate::command::{Command, count, options, standard_options};
use crate::error::{Error, Result};
use crate::options::{CursorType, millis};
use crate::{Collection, Cursor};
use bson::Document;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;
use std::time::Duration;

impl<T: Send + Sync> Collection<T> {
    /// Returns the documents that match.
    pub fn find(&self, filter: Document) -> Find<T> {
        let mut command = self.command("find");
        command.set("filter", filter);
        Find { command, batch_size: None, await_ms: None, documents: PhantomData }
    }

    /// Returns the first document that matches.
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
        /// Spills to disk what does not fit into memory (the default).
        allow_disk_use: bool => "allowDiskUse",
        /// Returns at most this number of documents; 0 is all.
        limit: i64 => "limit",
        /// Index keys below this one.
        max: Document => "max",
        /// Index keys from this one on.
        min: Document => "min",
        /// The cursor is not closed for being idle.
        no_cursor_timeout: bool => "noCursorTimeout",
        /// Which fields to give.
        projection: Document => "projection",
        /// Only the keys of the index.
        return_key: bool => "returnKey",
        /// Adds the record's id.
        show_record_id: bool => "showRecordId",
        /// Leaves out this number of documents at the beginning.
        skip: u64 => "skip" as count,
        /// The order of the documents.
        sort: Document => "sort",
    }

    standard_options!(collation, comment, hint, let_vars, max_time, read_concern, session);

    /// Documents in a batch.
    pub fn batch_size(mut self, size: u32) -> Self {
        self.command.set("batchSize", size);
        self.batch_size = Some(size);
        self
    }

    /// Returns true if the cursor stays open at the end of a capped collection.
    pub fn cursor_type(mut self, kind: CursorType) -> Self {
        self.command.set("tailable", kind != CursorType::NonTailable);
        self.command.set("awaitData", kind == CursorType::TailableAwait);
        if kind != CursorType::NonTailable {
            self.await_ms = self.await_ms.or(Some(-1));
        }
        self
    }

    /// How long a waiting cursor waits for a later document.
    pub fn max_await_time(mut self, time: Duration) -> Self {
        self.await_ms = Some(millis(time));
        self
    }

    /// Finds them.
    ///
    /// # Errors
    /// What the command answers.
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
        /// Index keys below this one.
        max: Document => "max",
        /// Index keys from this one on.
        min: Document => "min",
        /// Which fields to give.
        projection: Document => "projection",
        /// Only the keys of the index.
        return_key: bool => "returnKey",
        /// Adds the record's id.
        show_record_id: bool => "showRecordId",
        /// Leaves out this number of documents at the beginning.
        skip: u64 => "skip" as count,
        /// Which one is the first.
        sort: Document => "sort",
    }

    standard_options!(collation, comment, hint, let_vars, max_time, read_concern, session);

    /// Finds it.
    ///
    /// # Errors
    /// What the command answers; the document does not fit `T`.
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
