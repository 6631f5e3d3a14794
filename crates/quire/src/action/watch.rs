//! `watch` of a collection, a database and a client.

use crate::change_stream::event::{ChangeStreamEvent, ResumeToken};
use crate::change_stream::{ChangeStream, Opening};
use crate::command::Command;
use crate::error::{Error, Result};
use crate::options::{FullDocumentBeforeChangeType, FullDocumentType, millis};
use crate::setters::standard_options;
use crate::{Client, Collection, Database};
use bson::{Document, Timestamp};
use std::marker::PhantomData;
use std::time::Duration;

impl<T: Send + Sync> Collection<T> {
    /// Watches the collection. It need not exist yet. The database must have a change log; see
    /// [`OpenOptions::change_log`](crate::OpenOptions::change_log).
    ///
    /// ```
    /// use quire::bson::{Document, doc};
    /// use quire::change_stream::event::OperationType;
    /// # fn main() -> quire::error::Result<()> {
    /// let client = quire::OpenOptions::new().change_log(true).in_memory()?;
    /// let orders = client.database("shop").collection::<Document>("orders");
    /// let mut changes = orders.watch().run()?;
    /// orders.insert_one(doc! { "_id": 1, "total": 20 }).run()?;
    /// let event = changes.next().transpose()?.unwrap();
    /// assert_eq!(event.operation_type, OperationType::Insert);
    /// assert_eq!(event.full_document, Some(doc! { "_id": 1, "total": 20 }));
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch(&self) -> Watch<T> {
        Watch::new(self.command("aggregate"), Document::new())
    }
}

impl Database {
    /// Watches all collections of the database; see [`Collection::watch`].
    pub fn watch(&self) -> Watch {
        Watch::new(self.command("aggregate", 1), Document::new())
    }
}

impl Client {
    /// Watches all databases but `admin`, `config` and `local`; see [`Collection::watch`].
    pub fn watch(&self) -> Watch {
        let command = Command::new(&self.embedded, "admin", "aggregate", 1);
        Watch::new(command, bson::doc! { "allChangesForCluster": true })
    }
}

/// Opens a change stream; see [`Collection::watch`].
#[must_use = "an action does nothing before `run`"]
pub struct Watch<T = Document> {
    command: Command,
    stage: Document,
    pipeline: Vec<Document>,
    batch_size: Option<u32>,
    await_ms: Option<i64>,
    documents: PhantomData<fn() -> T>,
}

impl<T> Watch<T> {
    fn new(mut command: Command, stage: Document) -> Watch<T> {
        // The pipeline stands second in the command; it is set when the stream is opened.
        command.set("pipeline", Vec::<Document>::new()).set("cursor", Document::new());
        let (pipeline, documents) = (Vec::new(), PhantomData);
        Watch { command, stage, pipeline, batch_size: None, await_ms: None, documents }
    }

    standard_options!(collation, comment, read_concern, session);

    /// Sets the stages through which each event passes, such as `$match` and `$project`.
    pub fn pipeline(mut self, pipeline: impl IntoIterator<Item = Document>) -> Self {
        self.pipeline = pipeline.into_iter().collect();
        self
    }

    /// Sets whether an update's event has the document. Default: only what was changed.
    pub fn full_document(mut self, full: FullDocumentType) -> Self {
        self.stage.insert("fullDocument", full);
        self
    }

    /// Sets whether events have the document before the change. The collection must keep it
    /// (`changeStreamPreAndPostImages`).
    pub fn full_document_before_change(mut self, before: FullDocumentBeforeChangeType) -> Self {
        self.stage.insert("fullDocumentBeforeChange", before);
        self
    }

    /// Begins after an event.
    pub fn resume_after(mut self, token: impl Into<Option<ResumeToken>>) -> Self {
        if let Some(token) = token.into() {
            self.stage.insert("resumeAfter", token.0);
        }
        self
    }

    /// Begins after an event; also after one that has ended a stream.
    pub fn start_after(mut self, token: impl Into<Option<ResumeToken>>) -> Self {
        if let Some(token) = token.into() {
            self.stage.insert("startAfter", token.0);
        }
        self
    }

    /// Begins with the events of a time, or the first later ones.
    pub fn start_at_operation_time(mut self, time: Timestamp) -> Self {
        self.stage.insert("startAtOperationTime", time);
        self
    }

    /// True to show also events such as `create` and `createIndexes`, and more fields of the others.
    pub fn show_expanded_events(mut self, show: bool) -> Self {
        self.stage.insert("showExpandedEvents", show);
        self
    }

    /// Sets how long a fetch waits for an event. Default: a second.
    pub fn max_await_time(mut self, time: Duration) -> Self {
        self.await_ms = Some(millis(time));
        self
    }

    /// Sets the number of events in a batch.
    pub fn batch_size(mut self, size: u32) -> Self {
        self.command.set_cursor("batchSize", size);
        self.batch_size = Some(size);
        self
    }

    /// Opens the stream.
    ///
    /// # Errors
    /// 40573 if the database has no change log; 286 ChangeStreamHistoryLost if the log does not reach
    /// back to the beginning any more; other errors of the command.
    pub fn run(self) -> Result<ChangeStream<ChangeStreamEvent<T>>> {
        let Watch { command, stage, pipeline, batch_size, await_ms, .. } = self;
        if !command.embedded.logs_changes() {
            return Err(Error::no_change_log());
        }
        ChangeStream::open(Opening { command, stage, pipeline, batch_size, await_ms })
    }
}
