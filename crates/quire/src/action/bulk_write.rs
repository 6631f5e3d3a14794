//! `bulk_write`: many writes to any collections, in as few commands as possible.

use crate::command::Command;
use crate::embedded::Documents;
use crate::error::{BulkWriteError, Error, Result, WriteError};
use crate::options::Namespace;
use crate::reply::{Fields, labels, needed, write_concern_error};
use crate::results::{
    DeleteResult, InsertOneResult, SummaryBulkWriteResult, UpdateResult, VerboseBulkWriteResult,
};
use crate::setters::standard_options;
use crate::write_model::{Kind, WriteModel};
use crate::{Client, Cursor};
use bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};
use quire_document::limits::{MESSAGE_BYTES_MAX, WRITE_BATCH_MAX};

impl Client {
    /// Runs many writes to any collections of any databases.
    pub fn bulk_write(&self, models: impl IntoIterator<Item = WriteModel>) -> BulkWrite {
        let command = Command::new(&self.embedded, "admin", "bulkWrite", 1);
        BulkWrite { command, models: models.into_iter().collect(), ordered: true }
    }
}

/// Runs many writes; see [`Client::bulk_write`].
#[must_use = "an action does nothing before `run`"]
pub struct BulkWrite {
    command: Command,
    models: Vec<WriteModel>,
    ordered: bool,
}

impl BulkWrite {
    standard_options!(bypass_document_validation, comment, let_vars, session, write_concern);

    /// Sets whether the first error ends the command (the default) or the other writes are tried.
    pub fn ordered(mut self, value: bool) -> Self {
        self.ordered = value;
        self
    }

    /// Also returns the result of each write, and not only counts.
    pub fn verbose_results(self) -> VerboseBulkWrite {
        VerboseBulkWrite { action: self }
    }

    /// Runs the writes in batches of the size of a command.
    ///
    /// # Errors
    /// [`ErrorKind::BulkWrite`](crate::error::ErrorKind::BulkWrite) lists the failed writes and the
    /// partial result. Before any write: there are no writes, or a write has an option that it does
    /// not support.
    pub fn run(self) -> Result<SummaryBulkWriteResult> {
        Ok(self.execute(false)?.summary)
    }

    fn execute(mut self, verbose: bool) -> Result<VerboseBulkWriteResult> {
        if self.models.is_empty() {
            return Err(Error::invalid_argument("bulk_write needs at least one write"));
        }
        self.command.set("ordered", self.ordered).set("errorsOnly", !verbose);
        let mut done = VerboseBulkWriteResult::default();
        let mut failed = BulkWriteError::default();
        let (mut begun, mut labelled) = (0, Default::default());
        while begun < self.models.len() && (failed.write_errors.is_empty() || !self.ordered) {
            let batch = Batch::of(&self.models[begun..])?;
            let mut command = self.command.clone();
            command.set("nsInfo", batch.namespaces);
            let sent = Documents { name: "ops", documents: &batch.operations };
            let reply = command.clone().run_with(Some(sent))?;
            count(&mut done.summary, &reply)?;
            failed.write_concern_errors.extend(write_concern_error(&reply)?);
            labelled = labels(&reply);
            let models = &self.models[begun..begun + batch.operations.len()];
            let mut rows: Cursor<Document> = Cursor::of_reply(&command, reply)?;
            while rows.advance()? {
                note(rows.current(), begun, models, &mut done, &mut failed)?;
            }
            begun += batch.operations.len();
        }
        if failed.write_errors.is_empty() && failed.write_concern_errors.is_empty() {
            return Ok(done);
        }
        failed.partial_result = Some(done);
        Err(Error::bulk_write(failed, labelled))
    }
}

/// Runs many writes and returns the result of each; see [`BulkWrite::verbose_results`].
#[must_use = "an action does nothing before `run`"]
pub struct VerboseBulkWrite {
    action: BulkWrite,
}

impl VerboseBulkWrite {
    /// Runs the writes in batches of the size of a command.
    ///
    /// # Errors
    /// Those of [`BulkWrite::run`].
    pub fn run(self) -> Result<VerboseBulkWriteResult> {
        self.action.execute(true)
    }
}

/// The writes that fit into one command.
struct Batch {
    namespaces: Vec<Document>,
    operations: Vec<RawDocumentBuf>,
}

impl Batch {
    fn of(models: &[WriteModel]) -> Result<Batch> {
        let mut namespaces: Vec<&Namespace> = Vec::new();
        let (mut operations, mut bytes) = (Vec::new(), 0);
        for model in models.iter().take(WRITE_BATCH_MAX) {
            let known = namespaces.iter().position(|known| **known == model.namespace);
            let place = known.unwrap_or(namespaces.len());
            let mut operation = Document::new();
            operation.insert(model.kind.name(), i32::try_from(place).unwrap_or(i32::MAX));
            operation.extend(model.operation.clone());
            let operation = RawDocumentBuf::try_from(&operation).map_err(Error::serialization)?;
            bytes += operation.as_bytes().len() + model.namespace.to_string().len();
            if bytes > MESSAGE_BYTES_MAX && !operations.is_empty() {
                break;
            }
            if known.is_none() {
                namespaces.push(&model.namespace);
            }
            operations.push(operation);
        }
        let namespaces = namespaces.iter().map(|name| doc! { "ns": name.to_string() }).collect();
        Ok(Batch { namespaces, operations })
    }
}

/// Adds the counts of a reply.
fn count(counts: &mut SummaryBulkWriteResult, reply: &RawDocument) -> Result<()> {
    for (count, name) in [
        (&mut counts.inserted_count, "nInserted"),
        (&mut counts.upserted_count, "nUpserted"),
        (&mut counts.matched_count, "nMatched"),
        (&mut counts.modified_count, "nModified"),
        (&mut counts.deleted_count, "nDeleted"),
    ] {
        *count += needed(reply.integer(name), name)? as u64;
    }
    Ok(())
}

/// Notes the result of a row for its write; the first write of the command has the position
/// `begun`.
fn note(
    row: &RawDocument,
    begun: usize,
    models: &[WriteModel],
    done: &mut VerboseBulkWriteResult,
    failed: &mut BulkWriteError,
) -> Result<()> {
    let place = needed(row.integer("idx").and_then(|at| usize::try_from(at).ok()), "idx")?;
    let model = needed(models.get(place), "write of that place")?;
    let (at, n) = (begun + place, row.integer("n").unwrap_or(0) as u64);
    if row.integer("ok") != Some(1) {
        failed.write_errors.insert(at, WriteError::from_row(row)?);
        return Ok(());
    }
    match &model.kind {
        Kind::Insert(id) => {
            let inserted = InsertOneResult { inserted_id: id.clone() };
            done.insert_results.insert(at, inserted);
        }
        Kind::Update => {
            let upserted_id: Option<Bson> = match row.document("upserted")? {
                Some(mut upserted) => upserted.remove("_id"),
                None => None,
            };
            let matched_count = if upserted_id.is_some() { 0 } else { n };
            let modified_count = row.integer("nModified").unwrap_or(0) as u64;
            let updated = UpdateResult { matched_count, modified_count, upserted_id };
            done.update_results.insert(at, updated);
        }
        Kind::Delete => drop(done.delete_results.insert(at, DeleteResult { deleted_count: n })),
    }
    Ok(())
}
