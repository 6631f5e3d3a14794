//! `aggregate` of a collection and of a database.

use crate::command::Command;
use crate::error::Result;
use crate::setters::{options, standard_options};
use crate::{Collection, Cursor, Database};
use bson::Document;
use std::marker::PhantomData;

impl<T: Send + Sync> Collection<T> {
    /// Runs a pipeline over the documents of the collection.
    pub fn aggregate(&self, pipeline: impl IntoIterator<Item = Document>) -> Aggregate {
        Aggregate::new(self.command("aggregate"), pipeline)
    }
}

impl Database {
    /// Runs a pipeline without a collection.
    pub fn aggregate(&self, pipeline: impl IntoIterator<Item = Document>) -> Aggregate {
        Aggregate::new(self.command("aggregate", 1), pipeline)
    }
}

/// Runs a pipeline; see [`Collection::aggregate`].
#[must_use = "an action does nothing before `run`"]
pub struct Aggregate<T = Document> {
    command: Command,
    batch_size: Option<u32>,
    documents: PhantomData<fn() -> T>,
}

impl Aggregate {
    fn new(mut command: Command, pipeline: impl IntoIterator<Item = Document>) -> Aggregate {
        command.set("pipeline", pipeline.into_iter().collect::<Vec<_>>());
        command.set("cursor", Document::new());
        Aggregate { command, batch_size: None, documents: PhantomData }
    }
}

impl<T> Aggregate<T> {
    options! {
        /// True to spill to disk beyond the memory limit (the default).
        allow_disk_use: bool => "allowDiskUse",
    }

    standard_options!(
        bypass_document_validation,
        collation,
        comment,
        hint,
        let_vars,
        max_time,
        read_concern,
        session,
        write_concern
    );

    /// Sets the number of documents in a batch.
    pub fn batch_size(mut self, size: u32) -> Self {
        self.command.set_cursor("batchSize", size);
        self.batch_size = Some(size);
        self
    }

    /// Returns the action with results of another type.
    pub fn with_type<U>(self) -> Aggregate<U> {
        let Aggregate { command, batch_size, .. } = self;
        Aggregate { command, batch_size, documents: PhantomData }
    }

    /// Runs the action.
    ///
    /// # Errors
    /// The errors of the command.
    pub fn run(self) -> Result<Cursor<T>> {
        Cursor::open(self.command, self.batch_size, None)
    }
}
