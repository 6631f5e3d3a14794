//! Creating and dropping collections, dropping databases.

use crate::command::{Command, count};
use crate::error::{Error, ErrorKind, Result};
use crate::setters::{options, standard_options};
use crate::{Collection, Database};
use bson::Document;
use std::time::Duration;

impl Database {
    /// Creates a collection. An insert into a missing collection creates it too; this sets options.
    pub fn create_collection(&self, name: impl AsRef<str>) -> CreateCollection {
        CreateCollection { command: self.command("create", name.as_ref()) }
    }

    /// Drops the database with all its collections.
    pub fn drop(&self) -> DropDatabase {
        DropDatabase { command: self.command("dropDatabase", 1) }
    }
}

impl<T: Send + Sync> Collection<T> {
    /// Drops the collection with its indexes. Succeeds if it does not exist.
    pub fn drop(&self) -> DropCollection {
        DropCollection { command: self.command("drop") }
    }
}

/// Creates a collection; see [`Database::create_collection`].
#[must_use = "an action does nothing before `run`"]
pub struct CreateCollection {
    command: Command,
}

impl CreateCollection {
    options! {
        /// True for a bounded size: the oldest documents are removed.
        capped: bool => "capped",
        /// Stores documents in the order of their `_id`.
        clustered_index: Document => "clusteredIndex",
        /// The age at which documents of a clustered or time-series collection are deleted.
        expire_after_seconds: Duration => "expireAfterSeconds" as seconds,
        /// The largest number of documents, if it is capped.
        max: u64 => "max" as count,
        /// The view's pipeline.
        pipeline: Vec<Document> => "pipeline",
        /// The largest size in bytes, if it is capped.
        size: u64 => "size" as count,
        /// Creates a time-series collection.
        timeseries: Document => "timeseries",
        /// `error` or `warn`.
        validation_action: impl Into<String> => "validationAction" as Into::<String>::into,
        /// `off`, `strict` or `moderate`.
        validation_level: impl Into<String> => "validationLevel" as Into::<String>::into,
        /// The filter that documents must match.
        validator: Document => "validator",
        /// Creates a view of this collection.
        view_on: impl Into<String> => "viewOn" as Into::<String>::into,
    }

    standard_options!(collation, comment, session, write_concern);

    /// Creates the collection.
    ///
    /// # Errors
    /// The errors of the command: code 48 if it exists with other options.
    pub fn run(self) -> Result<()> {
        Error::from_write_reply(&self.command.run()?)
    }
}

fn seconds(duration: Duration) -> i64 {
    count(duration.as_secs())
}

/// Drops a collection; see [`Collection::drop`].
#[must_use = "an action does nothing before `run`"]
pub struct DropCollection {
    command: Command,
}

impl DropCollection {
    standard_options!(session, write_concern);

    /// Drops the collection.
    ///
    /// # Errors
    /// The errors of the command, except for a missing collection.
    pub fn run(self) -> Result<()> {
        const NAMESPACE_NOT_FOUND: i32 = 26;
        match self.command.run() {
            Ok(reply) => Error::from_write_reply(&reply),
            Err(error) => match &*error.kind {
                ErrorKind::Command(answer) if answer.code == NAMESPACE_NOT_FOUND => Ok(()),
                _ => Err(error),
            },
        }
    }
}

/// Drops a database; see [`Database::drop`].
#[must_use = "an action does nothing before `run`"]
pub struct DropDatabase {
    command: Command,
}

impl DropDatabase {
    standard_options!(session, write_concern);

    /// Drops the database.
    ///
    /// # Errors
    /// The errors of the command.
    pub fn run(self) -> Result<()> {
        Error::from_write_reply(&self.command.run()?)
    }
}
