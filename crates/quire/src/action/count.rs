//! `count_documents` and `estimated_document_count`.

use crate::command::Command;
use crate::error::Result;
use crate::reply::{Fields, needed};
use crate::setters::standard_options;
use crate::{Collection, Cursor};
use bson::{Document, doc};

impl<T: Send + Sync> Collection<T> {
    /// Returns the number of matching documents.
    pub fn count_documents(&self, filter: Document) -> CountDocuments {
        let mut command = self.command("aggregate");
        command.set("cursor", Document::new());
        CountDocuments { command, filter, skip: None, limit: None }
    }

    /// Returns the number of documents in the collection from its counters: exact and fast.
    pub fn estimated_document_count(&self) -> EstimatedDocumentCount {
        EstimatedDocumentCount { command: self.command("count") }
    }
}

/// Counts documents; see [`Collection::count_documents`].
#[must_use = "an action does nothing before `run`"]
pub struct CountDocuments {
    command: Command,
    filter: Document,
    skip: Option<u64>,
    limit: Option<u64>,
}

impl CountDocuments {
    standard_options!(collation, comment, hint, max_time, read_concern, session);

    /// Stops counting at this number.
    pub fn limit(mut self, limit: u64) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Skips this number of documents at the beginning.
    pub fn skip(mut self, skip: u64) -> Self {
        self.skip = Some(skip);
        self
    }

    /// Counts the documents.
    ///
    /// # Errors
    /// The errors of the command.
    pub fn run(mut self) -> Result<u64> {
        let mut pipeline = vec![doc! { "$match": self.filter }];
        if let Some(skip) = self.skip {
            pipeline.push(doc! { "$skip": crate::command::count(skip) });
        }
        if let Some(limit) = self.limit {
            pipeline.push(doc! { "$limit": crate::command::count(limit) });
        }
        pipeline.push(doc! { "$group": { "_id": 1, "n": { "$sum": 1 } } });
        self.command.set("pipeline", pipeline);
        let mut cursor: Cursor<Document> = Cursor::open(self.command, None, None)?;
        match cursor.advance()? {
            true => Ok(needed(cursor.current().integer("n"), "n")? as u64),
            false => Ok(0),
        }
    }
}

/// Reads the counters; see [`Collection::estimated_document_count`].
#[must_use = "an action does nothing before `run`"]
pub struct EstimatedDocumentCount {
    command: Command,
}

impl EstimatedDocumentCount {
    standard_options!(comment, max_time, read_concern, session);

    /// Reads the counters.
    ///
    /// # Errors
    /// The errors of the command.
    pub fn run(self) -> Result<u64> {
        Ok(needed(self.command.run()?.integer("n"), "n")? as u64)
    }
}
