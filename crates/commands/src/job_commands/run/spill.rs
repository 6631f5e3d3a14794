//! Results of a run that are too many for one transaction. They are stored in a collection of the
//! server first. Then each transaction merges some of them and stores how far the run has come, so that
//! after a crash it goes on where it was.

use super::super::definition::Action;
use super::super::definition::{Pipeline, counter};
use super::super::table;
use super::scheduled::{CHUNK_DOCS, Due, after, aggregate, batch, check_count, ended, following};
use super::{Run, variables, with_fields};
use crate::frame::job_kind::WholeStep;
use quire_catalog::Namespace;
use quire_collections::{Job, JobId, Store, prepare_insert};
use quire_document::{DocBuf, Value, doc};
use quire_error::{Error, Result};
use quire_session::{Autocommit, Unit};
use quire_storage::{CommitOptions, Durability};
use std::sync::Arc;

/// The bytes of the documents that one transaction merges, unless a single one is larger.
const CHUNK_BYTES: usize = 8 << 20;

/// The beginning of the names of these collections, in the database `config`.
const RESULTS: &str = "jobResults.";

/// Returns the collection of the results of a job.
fn results_of(uuid: &[u8; 16]) -> Result<Namespace> {
    let digits: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    Namespace::new("config", &format!("{RESULTS}{digits}"))
}

/// Drops the stored results of a job, if there are some.
///
/// # Errors
/// The errors of the commit.
pub fn drop_results(store: &Arc<Store>, uuid: &[u8; 16]) -> Result<()> {
    let namespace = results_of(uuid)?;
    match store.catalog().lookup(&namespace) {
        Some(_) => store.drop_collection(&namespace, &CommitOptions::buffered()).map(drop),
        None => Ok(()),
    }
}

/// Drops the results that no run merges: a crash came before the commit that notes them, or after the
/// drop of their job. No job may run.
///
/// # Errors
/// The errors of reading and of the commits.
pub fn drop_left_results(store: &Arc<Store>) -> Result<()> {
    let mut kept = Vec::new();
    for doc in table::all(store)? {
        if let Some(Value::Binary(uuid)) = doc.get("uuid")
            && let Ok(uuid) = uuid.bytes.try_into()
            && is_merging(store, &doc)?
        {
            kept.push(results_of(&uuid)?);
        }
    }
    let catalog = store.catalog();
    let left = catalog.collections().filter(|collection| {
        let namespace = &collection.namespace;
        namespace.db() == "config"
            && namespace.collection().starts_with(RESULTS)
            && !kept.contains(namespace)
    });
    for collection in left {
        store.drop_collection(&collection.namespace, &CommitOptions::buffered())?;
    }
    Ok(())
}

/// Returns true if a job, active or paused, has results that are to be merged.
fn is_merging(store: &Store, definition: &DocBuf) -> Result<bool> {
    let paused = definition.get("position").and_then(|position| position.as_document());
    let key = definition.get("_id").and_then(|id| id.as_str()).unwrap_or_default();
    let row = store.job(&JobId::new(table::KIND, key))?;
    let active = row.as_ref().map(|row| row.position.as_doc());
    Ok([paused, active].into_iter().flatten().any(|position| position.contains("spilled")))
}

impl Run<'_> {
    /// Stores the results of a pipeline, and notes that they are to be merged.
    pub fn spill(
        &self,
        pipeline: &Pipeline,
        let_vars: &DocBuf,
        due: &Due,
        job: &mut Job,
    ) -> Result<WholeStep> {
        // Results that an interrupted run has left are those of another moment.
        self.drop_results()?;
        let mut owned = self.connect()?;
        let command = aggregate(pipeline, pipeline.stages.iter(), let_vars, Some(CHUNK_DOCS));
        let collection = pipeline.collection.as_deref().unwrap_or("$cmd.aggregate");
        let mut reply = self.call(&mut owned, command)?;
        let (mut count, mut name) = (0, "firstBatch");
        loop {
            let (docs, cursor) = batch(&reply, name);
            self.keep_results(count, &docs)?;
            count += docs.len();
            check_count(self.definition, count)?;
            if cursor == 0 {
                break;
            }
            let more = doc! { "getMore": cursor, "collection": collection,
            "batchSize": (CHUNK_DOCS as i32) };
            (reply, name) = (self.call(&mut owned, more)?, "nextBatch");
        }
        let spilled = doc! { "due": Value::Date(due.at_ms), "started": Value::Date(due.started_ms),
        "spilled": (count as i64), "merged": 0_i64 };
        let position = with_fields(&job.position, &spilled);
        let next = Job { due_ms: 0, ..following(job, due, position, 0) };
        let committed = self.transact(job, |_| Ok(next.clone()))?;
        if committed.is_none() {
            // The job was changed meanwhile: nothing refers to these results.
            self.drop_results()?;
        }
        Ok(after(job, committed))
    }

    /// Merges the next results. When all are merged it drops them and ends the run, in this order: after
    /// a crash in between the run ends again, and no results are left.
    pub fn merge_spilled(&self, due: &Due, job: &mut Job) -> Result<WholeStep> {
        let Action::Pipeline(pipeline) = &self.definition.plan.action else {
            return Err(Error::internal("results of a job without a pipeline"));
        };
        let (total, merged) =
            (counter(job.position.as_doc(), "spilled"), counter(job.position.as_doc(), "merged"));
        if merged >= total {
            self.drop_results()?;
            let next = ended(self, due, job, usize::try_from(total).ok());
            let committed = self.transact(job, |_| Ok(next.clone()))?;
            return Ok(after(job, committed));
        }
        let let_vars = variables(self.definition, due.at_ms, due.runs, None);
        let docs = self.results(merged, total)?;
        let position = with_fields(&job.position, &doc! { "merged": (merged + docs.len() as i64) });
        let next = Job { due_ms: 0, ..following(job, due, position, 0) };
        let committed = self.transact(job, |transaction| {
            transaction.merge(docs.clone(), &pipeline.last, &let_vars)?;
            Ok(next.clone())
        })?;
        Ok(after(job, committed))
    }

    fn results_namespace(&self) -> Result<Namespace> {
        results_of(&self.definition.uuid)
    }

    /// Drops the stored results of the job, if there are some.
    pub fn drop_results(&self) -> Result<()> {
        drop_results(&self.cx.service.store, &self.definition.uuid)
    }

    fn keep_results(&self, first: usize, docs: &[DocBuf]) -> Result<()> {
        let (service, namespace) = (self.cx.service, self.results_namespace()?);
        let unit = Autocommit::of_server(&service.store, Durability::Buffered);
        let (mut unit, interrupt) = (Unit::Autocommit(unit), self.cx.interrupt);
        let _writing = service.write_gate.enter(interrupt)?;
        unit.own_collection(&namespace, interrupt)?;
        unit.write_durably(interrupt, |writer| {
            let Some(collection) = writer.collection(&namespace) else {
                return Err(Error::internal("the results of a job were dropped").into());
            };
            let (store, mut buffer) = (Arc::clone(writer.store()), Vec::new());
            for (at, result) in (first..).zip(docs) {
                let stored = doc! { "_id": (at as i64), "result": result };
                let prepared = prepare_insert(&store, stored.as_doc(), &mut buffer)?;
                writer.insert(&collection, prepared)?;
            }
            Ok(())
        })
    }

    /// Returns the results from the number `first` on, as many as one transaction may merge.
    fn results(&self, first: i64, total: i64) -> Result<Vec<DocBuf>> {
        let lost = || Error::internal("the results of a job are missing");
        let view = self.cx.service.store.read_view()?;
        let view = view.view();
        let collection = view.collection(&self.results_namespace()?).map(Arc::clone);
        let collection = collection.ok_or_else(lost)?;
        let (mut docs, mut bytes) = (Vec::new(), 0);
        for at in first..total.min(first + CHUNK_DOCS as i64) {
            let found = view.get_by_id(&collection, Value::Int64(at))?.ok_or_else(lost)?;
            let result = found.doc.as_doc().get("result").and_then(|doc| doc.as_document());
            let result = result.ok_or_else(lost)?.to_owned();
            bytes += result.as_bytes().len();
            docs.push(result);
            if bytes >= CHUNK_BYTES {
                break;
            }
        }
        Ok(docs)
    }
}
