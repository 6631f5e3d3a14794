//! `insert_one` and `insert_many`.

use crate::Collection;
use crate::command::Command;
use crate::embedded::Documents;
use crate::error::{Error, InsertManyError, Result};
use crate::prepare::{Prepared, prepare};
use crate::reply::{labels, write_concern_error, write_errors};
use crate::results::{InsertManyResult, InsertOneResult};
use crate::setters::{options, standard_options};
use bson::{Bson, RawDocumentBuf};
use quire_document::limits::{MESSAGE_BYTES_MAX, WRITE_BATCH_MAX};
use serde::Serialize;
use std::borrow::Borrow;
use std::collections::HashMap;

impl<T: Serialize + Send + Sync> Collection<T> {
    /// Inserts a document; a document without an `_id` gets one.
    pub fn insert_one(&self, document: impl Borrow<T>) -> InsertOne {
        InsertOne { command: self.command("insert"), document: prepare(document.borrow()) }
    }

    /// Inserts documents; documents without an `_id` get one.
    pub fn insert_many(&self, documents: impl IntoIterator<Item = impl Borrow<T>>) -> InsertMany {
        let documents = documents.into_iter().map(|document| prepare(document.borrow()));
        InsertMany { command: self.command("insert"), documents: documents.collect() }
    }
}

/// Inserts a document; see [`Collection::insert_one`].
#[must_use = "an action does nothing before `run`"]
pub struct InsertOne {
    command: Command,
    document: Result<Prepared>,
}

impl InsertOne {
    standard_options!(bypass_document_validation, comment, session, write_concern);

    /// Inserts the document.
    ///
    /// # Errors
    /// The document cannot be serialized to BSON; the errors of the command.
    pub fn run(self) -> Result<InsertOneResult> {
        let (document, inserted_id) = self.document?;
        let documents = Documents { name: "documents", documents: &[document] };
        let reply = self.command.run_with(Some(documents))?;
        Error::from_write_reply(&reply)?;
        Ok(InsertOneResult { inserted_id })
    }
}

/// Inserts documents; see [`Collection::insert_many`].
#[must_use = "an action does nothing before `run`"]
pub struct InsertMany {
    command: Command,
    documents: Result<Vec<Prepared>>,
}

impl InsertMany {
    options! {
        /// True if the first error ends the insert (the default), false to try the other documents.
        ordered: bool => "ordered",
    }

    standard_options!(bypass_document_validation, comment, session, write_concern);

    /// Inserts the documents in batches of the size of a command.
    ///
    /// # Errors
    /// [`ErrorKind::InsertMany`](crate::error::ErrorKind::InsertMany) lists the documents that were
    /// not inserted. Before any insert: a document cannot be serialized to BSON, or there are no
    /// documents.
    pub fn run(self) -> Result<InsertManyResult> {
        let (documents, ids): (Vec<_>, Vec<_>) = self.documents?.into_iter().unzip();
        if documents.is_empty() {
            return Err(Error::invalid_argument("insert_many needs at least one document"));
        }
        let ordered = self.command.get("ordered").and_then(Bson::as_bool).unwrap_or(true);
        let (mut failed, mut labelled, mut concern) = (Vec::new(), Default::default(), None);
        let mut tried = 0;
        while tried < documents.len() && (failed.is_empty() || !ordered) {
            let batch = batch(&documents[tried..]);
            let sent = Documents { name: "documents", documents: batch };
            let reply = self.command.clone().run_with(Some(sent))?;
            failed.extend(write_errors(&reply, tried)?);
            concern = write_concern_error(&reply)?.or(concern);
            labelled = labels(&reply);
            tried += batch.len();
        }
        if ordered && let Some(first) = failed.first() {
            tried = first.index;
        }
        let mut inserted_ids: HashMap<_, _> = ids.into_iter().take(tried).enumerate().collect();
        failed.iter().for_each(|error| drop(inserted_ids.remove(&error.index)));
        if failed.is_empty() && concern.is_none() {
            return Ok(InsertManyResult { inserted_ids });
        }
        let write_errors = Some(failed).filter(|failed| !failed.is_empty());
        let error = InsertManyError { write_errors, write_concern_error: concern, inserted_ids };
        Err(Error::insert_many(error, labelled))
    }
}

/// Returns the first documents, at least one, that fit into one command.
fn batch(documents: &[RawDocumentBuf]) -> &[RawDocumentBuf] {
    let mut bytes = 0;
    let fits = |document: &&RawDocumentBuf| {
        bytes += document.as_bytes().len();
        bytes < MESSAGE_BYTES_MAX
    };
    let fitting = documents.iter().take(WRITE_BATCH_MAX).take_while(fits).count();
    &documents[..fitting.max(1)]
}
