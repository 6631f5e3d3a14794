//! A run of a scheduled job. In one transaction it does its writes and moves to the next due time.

use super::super::definition::{Action, Definition, Pipeline, counter};
use super::super::schedule::{Schedule, number};
use super::{Run, dead_letter, variables, with_fields};
use crate::frame::job_kind::WholeStep;
use quire_collections::Job;
use quire_document::{Doc, DocBuf, Value, doc};
use quire_error::{Error, ErrorClass, ErrorCode, Result};

/// The most documents that a run merges in one transaction.
pub(super) const CHUNK_DOCS: usize = 1000;
/// A due time that is later than this is missed.
const MISSED_MS: i64 = 60_000;

/// What is due.
pub(super) struct Due {
    /// The due time; the start of the run if a command asked for it.
    pub at_ms: i64,
    /// When the first step of the first attempt began.
    pub started_ms: i64,
    pub runs: i64,
    /// The due time after this run; `None` if there is none.
    pub next_ms: Option<i64>,
}

/// Runs what is due.
///
/// # Errors
/// Those of the run, unless this was the last attempt.
pub(super) fn step(run: &Run<'_>, schedule: &Schedule, job: &mut Job) -> Result<WholeStep> {
    let now_ms = run.cx.service.wall_ms();
    let position = job.position.clone();
    let next = date(position.get("next")).unwrap_or(now_ms);
    let asked = position.as_doc().contains("asked");
    let began = || run.cx.service.jobs.began(&job.id, now_ms);
    if !asked && now_ms < next && !position.as_doc().contains("due") {
        // The clock was set back.
        job.due_ms = next;
        return Ok(WholeStep::Goes);
    }
    let started_ms = date(position.get("started")).unwrap_or_else(began);
    let at_ms = date(position.get("due")).unwrap_or(if asked { started_ms } else { next });
    let next_ms = if now_ms < next { Some(next) } else { schedule.next_after(now_ms) };
    let runs = counter(position.as_doc(), "runs");
    let due = Due { at_ms, started_ms, runs, next_ms };
    let is_missed = !asked && now_ms.saturating_sub(next) > MISSED_MS;
    if is_missed && run.definition.plan.skips_missed && !position.as_doc().contains("due") {
        let skipped = doc! { "next": (next_ms.map_or(Value::Null, Value::Date)) };
        let next = following(job, &due, with_fields(&position, &skipped), 0);
        return commit(run, job, &[], &next);
    }
    match attempt(run, &due, job) {
        Err(error) if run.is_last_attempt() && !is_interruption(&error) => {
            give_up(run, &due, job, &error)
        }
        other => other,
    }
}

fn attempt(run: &Run<'_>, due: &Due, job: &mut Job) -> Result<WholeStep> {
    let let_vars = variables(run.definition, due.at_ms, due.runs, None);
    match &run.definition.plan.action {
        Action::Writes(writes) => {
            let commands: Vec<_> = writes.iter().map(|write| with_let(write, &let_vars)).collect();
            let committed = run.transact(job, |transaction| {
                transaction.call_all(&commands)?;
                Ok(ended(run, due, job, None))
            })?;
            Ok(after(job, committed))
        }
        Action::Pipeline(pipeline) if pipeline.replaces() => {
            // `$out` replaces its collection at once, and the same run again has the same result.
            let mut owned = run.connect()?;
            let stages = pipeline.stages.iter().chain([&pipeline.last]);
            run.call(&mut owned, aggregate(pipeline, stages, &let_vars, None))?;
            let next = ended(run, due, job, None);
            commit(run, job, &[], &next)
        }
        Action::Pipeline(_) if job.position.as_doc().contains("spilled") => {
            run.merge_spilled(due, job)
        }
        Action::Pipeline(pipeline) => {
            let mut is_large = false;
            let committed = run.transact(job, |transaction| {
                let stages = pipeline.stages.iter();
                let command = aggregate(pipeline, stages, &let_vars, Some(CHUNK_DOCS + 1));
                let reply = transaction.call(command)?;
                let (docs, more) = batch(&reply, "firstBatch");
                is_large = more != 0 || docs.len() > CHUNK_DOCS;
                if is_large {
                    return Err(Error::new(ErrorCode::TransactionTooLarge, "to be divided"));
                }
                check_count(run.definition, docs.len())?;
                let count = docs.len();
                transaction.merge(docs, &pipeline.last, &let_vars)?;
                Ok(ended(run, due, job, Some(count)))
            });
            match committed {
                Err(error) if is_large && error.code() == ErrorCode::TransactionTooLarge => {
                    run.spill(pipeline, &let_vars, due, job)
                }
                other => Ok(after(job, other?)),
            }
        }
    }
}

/// Runs the commands in one transaction that also stores the next row.
fn commit(run: &Run<'_>, job: &mut Job, commands: &[DocBuf], next: &Job) -> Result<WholeStep> {
    let committed = run.transact(job, |transaction| {
        transaction.call_all(commands)?;
        Ok(next.clone())
    })?;
    Ok(after(job, committed))
}

/// Ends a run whose attempts have all failed: says so, and moves to the next due time.
fn give_up(run: &Run<'_>, due: &Due, job: &mut Job, error: &Error) -> Result<WholeStep> {
    let letter = dead_letter(run, error, ("due", Value::Date(due.at_ms)));
    let insert = run.definition.plan.dead_letters.as_deref();
    let insert = insert.map(|name| doc! { "insert": name, "documents": [&letter] });
    let mut next = ended(run, due, job, None);
    let last = with_fields(&last_of(&next), &doc! { "error": (error.message()) });
    next.position = with_fields(&next.position, &doc! { "last": &last });
    run.cx.service.log_job_gave_up(&job.id, error);
    let ended = commit(run, job, insert.as_slice(), &next)?;
    run.drop_results()?;
    Ok(ended)
}

fn last_of(job: &Job) -> DocBuf {
    let last = job.position.get("last").and_then(|last| last.as_document());
    last.map_or_else(DocBuf::new, Doc::to_owned)
}

/// Returns the row after a run has ended.
pub(super) fn ended(run: &Run<'_>, due: &Due, job: &Job, documents: Option<usize>) -> Job {
    let now_ms = run.cx.service.wall_ms();
    let documents = documents.map(|count| i64::try_from(count).unwrap_or(i64::MAX));
    let last = DocBuf::build(|last| {
        last.append("due", Value::Date(due.at_ms));
        last.append("started", Value::Date(due.started_ms)).append("ended", Value::Date(now_ms));
        last.append_some("documents", documents.map(Value::Int64));
    });
    let position = DocBuf::build(|position| {
        if let Some(next) = due.next_ms {
            position.append("next", Value::Date(next));
        }
        position.append("runs", due.runs.saturating_add(1)).append("last", &last);
    });
    following(job, due, position, documents.unwrap_or(0))
}

/// Returns the row with a new position, due at the next due time.
pub(super) fn following(job: &Job, due: &Due, position: DocBuf, done: i64) -> Job {
    let due_ms = due.next_ms.unwrap_or(i64::MAX);
    let (steps, done) = (job.steps + 1, job.done.saturating_add(done));
    Job { position, due_ms, steps, done, ..job.clone() }
}

/// Takes over the row that was committed.
pub(super) fn after(job: &mut Job, committed: Option<Job>) -> WholeStep {
    match committed {
        Some(next) => {
            *job = next;
            WholeStep::Goes
        }
        // Somebody has changed the job: it is read anew.
        None => WholeStep::Again,
    }
}

/// Returns the `aggregate` of a pipeline with these stages.
pub(super) fn aggregate<'s>(
    pipeline: &Pipeline,
    stages: impl Iterator<Item = &'s DocBuf>,
    let_vars: &DocBuf,
    batch: Option<usize>,
) -> DocBuf {
    DocBuf::build(|command| {
        match &pipeline.collection {
            Some(collection) => command.append("aggregate", collection.as_str()),
            None => command.append("aggregate", 1),
        };
        let mut list = command.array("pipeline");
        for stage in stages {
            list.push(stage);
        }
        list.finish();
        let mut cursor = command.document("cursor");
        if let Some(batch) = batch {
            cursor.append("batchSize", i32::try_from(batch).unwrap_or(i32::MAX));
        }
        cursor.finish();
        command.append("let", let_vars);
    })
}

/// Returns the documents of a reply, and the number of its cursor.
pub(super) fn batch(reply: &DocBuf, name: &str) -> (Vec<DocBuf>, i64) {
    let cursor = reply.get("cursor").and_then(|cursor| cursor.as_document());
    let Some(cursor) = cursor else { return (Vec::new(), 0) };
    let docs = cursor.get(name).and_then(|docs| docs.as_array());
    let docs = docs.into_iter().flat_map(|docs| docs.iter()).filter_map(|doc| doc.as_document());
    (docs.map(Doc::to_owned).collect(), number(cursor.get("id")).unwrap_or(0))
}

/// Adds the variables of the run to a command that takes some.
pub(super) fn with_let(write: &DocBuf, let_vars: &DocBuf) -> DocBuf {
    if write.as_doc().contains("insert") {
        return write.clone();
    }
    let own = write.get("let").and_then(|own| own.as_document()).unwrap_or(Doc::empty());
    DocBuf::build(|command| {
        let others = write.as_doc().fields().filter(|(name, _)| *name != "let");
        others.for_each(|(name, value)| {
            command.append(name, value);
        });
        command.document("let").append_all(own).append_all(let_vars.as_doc());
    })
}

/// Fails if a run would write more documents than its definition allows.
pub(super) fn check_count(definition: &Definition, count: usize) -> Result<()> {
    match definition.plan.documents_max {
        Some(most) if count as u64 > most => {
            let text = format!("the run has more than {most} documents");
            Err(Error::new(ErrorCode::ExceededMemoryLimit, text))
        }
        _ => Ok(()),
    }
}

/// Returns true for an error that says nothing about the run.
pub(super) fn is_interruption(error: &Error) -> bool {
    let is_late = error.code() == ErrorCode::MaxTimeMSExpired;
    let is_blocked = error.code() == ErrorCode::UserWritesBlocked;
    is_blocked || error.code().is_a(ErrorClass::Interruption) && !is_late
}

fn date(value: Option<Value<'_>>) -> Option<i64> {
    match value {
        Some(Value::Date(date)) => Some(date),
        _ => None,
    }
}
