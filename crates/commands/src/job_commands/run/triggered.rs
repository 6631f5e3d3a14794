//! A job on changes. A step reads the next events with the owner's rights, does what the job does for
//! each of them in order, and stores the token of the last one, all in one transaction.

use super::super::definition::{Action, Changes, Ignored, counter};
use super::scheduled::{after, aggregate, batch, check_count, is_interruption, with_let};
use super::transaction::{JobTransaction, is_of_job, is_session_of};
use super::{Run, dead_letter, variables, with_fields};
use crate::frame::job_kind::{Awaited, WholeStep};
use quire_catalog::Namespace;
use quire_collections::Job;
use quire_document::{Binary, Doc, DocBuf, Timestamp, Value, doc};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::Watched;

/// The longest time for which a token without events is not stored.
const KEEP_MS: i64 = 60_000;

/// Events, and the token of the place behind them.
struct Batch {
    events: Vec<DocBuf>,
    token: DocBuf,
    /// True if the stream has ended, and goes on behind the token.
    ended: bool,
}

/// Handles the next events.
///
/// # Errors
/// Those of the job's writes, unless this was the last attempt.
pub(super) fn step(run: &Run<'_>, changes: &Changes, job: &mut Job) -> Result<WholeStep> {
    let service = run.cx.service;
    // A commit can be durable before it is visible. One that the step does not see must wake the job.
    let past = service.engine.version().min(service.engine.durable_version());
    let awaited = Awaited { past, watched: run.watched(changes) };
    if !service.store.logs_changes() {
        return run.stop(job, "the server has no change log");
    }
    let size = if run.cx.failures > 0 { 1 } else { changes.batch };
    let read = match read(run, changes, job, size) {
        Err(error) if error.code() == ErrorCode::ChangeStreamHistoryLost => {
            return lost(run, changes, job);
        }
        read => read?,
    };
    let counted: Vec<&DocBuf> =
        read.events.iter().filter(|event| run.counts(changes, event)).collect();
    if counted.is_empty() {
        let now_ms = service.wall_ms();
        let kept = counter_date(&job.position, "kept").unwrap_or(0);
        let rests = read.events.is_empty() && !read.ended;
        if rests && now_ms.saturating_sub(kept).abs() < KEEP_MS {
            service.jobs.note_read(job, read.token);
            return Ok(WholeStep::Waits(awaited));
        }
        let next = moved(run, job, &read.token, 0, None);
        let committed = run.transact(job, |_| Ok(next.clone()))?;
        let is_kept = committed.is_some();
        let ended = after(job, committed);
        return Ok(if is_kept && rests { WholeStep::Waits(awaited) } else { ended });
    }
    let runs = counter(job.position.as_doc(), "runs");
    let next = moved(run, job, &read.token, counted.len(), counted.last().copied());
    let committed = run.transact(job, |transaction| {
        for (at, event) in (runs..).zip(&counted) {
            handle(run, transaction, event, at)?;
        }
        Ok(next.clone())
    });
    match committed {
        Err(error) if run.is_last_attempt() && !is_interruption(&error) => {
            give_up(run, job, (counted[0], &error), &read)
        }
        other => Ok(after(job, other?)),
    }
}

impl Run<'_> {
    /// Returns the commits that can be events.
    fn watched(&self, changes: &Changes) -> Watched {
        let Some(name) = &changes.collection else { return Watched::Everything };
        let name = Namespace::new(&self.definition.db, name).ok();
        let catalog = self.cx.service.store.catalog();
        let found = name.and_then(|name| catalog.lookup(&name).map(|found| found.id.0));
        found.map_or(Watched::Catalog, Watched::Collection)
    }

    /// Returns true if an event makes the job run.
    fn counts(&self, changes: &Changes, event: &DocBuf) -> bool {
        if matches!(event.get("operationType"), Some(Value::String("invalidate"))) {
            return false;
        }
        let session = event.get("lsid").and_then(|lsid| lsid.as_document()?.get("id"));
        let Some(Value::Binary(Binary { bytes, .. })) = session else { return true };
        match changes.ignores {
            Ignored::None => true,
            Ignored::Own => !is_session_of(bytes, self.definition),
            Ignored::AllJobs => !is_of_job(bytes),
        }
    }
}

/// Reads the next events, at most `size`.
fn read(run: &Run<'_>, changes: &Changes, job: &Job, size: u32) -> Result<Batch> {
    // Behind the stored token there can be a part without events.
    let read = run.cx.service.jobs.read_of(job);
    let stage = DocBuf::build(|stage| {
        let mut options = stage.document("$changeStream");
        options.append_all(changes.options.as_doc());
        let token = read.as_ref().map(|read| Value::Document(read.as_doc()));
        match (token.or_else(|| job.position.get("token")), job.position.get("from")) {
            (Some(token), _) => options.append("startAfter", token),
            (None, from) => options.append_some("startAtOperationTime", from),
        };
    });
    let command = DocBuf::build(|command| {
        match &changes.collection {
            Some(collection) => command.append("aggregate", collection.as_str()),
            None => command.append("aggregate", 1),
        };
        let mut stages = command.array("pipeline");
        stages.push(&stage);
        for stage in changes.lanes.stage(run.lane).iter().chain(&changes.stages) {
            stages.push(stage);
        }
        stages.finish();
        command.document("cursor").append("batchSize", i32::try_from(size).unwrap_or(i32::MAX));
    });
    let mut owned = run.connect()?;
    let reply = run.call(&mut owned, command)?;
    let (events, cursor) = batch(&reply, "firstBatch");
    if cursor != 0 {
        let name = changes.collection.as_deref().unwrap_or("$cmd.aggregate");
        run.call(&mut owned, doc! { "killCursors": name, "cursors": [cursor] })?;
    }
    let shown = reply.get("cursor").and_then(|cursor| cursor.as_document());
    let token = shown.and_then(|cursor| cursor.get("postBatchResumeToken")?.as_document());
    let last = events.last().and_then(|event| event.get("_id")?.as_document());
    // After the last event of a stream that has ended there is no other token.
    let token = token.or(last).map(Doc::to_owned);
    let token = token.ok_or_else(|| Error::internal("a change stream without a token"))?;
    Ok(Batch { events, token, ended: cursor == 0 })
}

/// Does what the job does for one event.
fn handle(
    run: &Run<'_>,
    transaction: &mut JobTransaction<'_>,
    event: &DocBuf,
    runs: i64,
) -> Result<()> {
    let due_ms = counter_date(event, "wallTime").unwrap_or(0);
    let let_vars = variables(run.definition, due_ms, runs, Some(event.as_doc()));
    match &run.definition.plan.action {
        Action::Writes(writes) => writes
            .iter()
            .try_for_each(|write| transaction.call(with_let(write, &let_vars)).map(drop)),
        Action::Pipeline(pipeline) if pipeline.replaces() => {
            let text = "a job on changes cannot end with $out";
            Err(Error::new(ErrorCode::OperationNotSupportedInTransaction, text))
        }
        Action::Pipeline(pipeline) => {
            let command =
                aggregate(pipeline, pipeline.stages.iter(), &let_vars, Some(i32::MAX as usize));
            let (docs, more) = batch(&transaction.call(command)?, "firstBatch");
            if more != 0 {
                let text = "the documents for one event are more than 16 MB";
                return Err(Error::new(ErrorCode::TransactionTooLarge, text));
            }
            check_count(run.definition, docs.len())?;
            transaction.merge(docs, &pipeline.last, &let_vars)
        }
    }
}

/// Returns the row behind a token, after `events` events.
fn moved(run: &Run<'_>, job: &Job, token: &DocBuf, events: usize, last: Option<&DocBuf>) -> Job {
    let now_ms = run.cx.service.wall_ms();
    let events = i64::try_from(events).unwrap_or(i64::MAX);
    let mut changed = doc! { "token": token, "from": Value::Null, "kept": Value::Date(now_ms),
    "runs": (counter(job.position.as_doc(), "runs").saturating_add(events)) };
    if let Some(last) = last {
        let wall = counter_date(last, "wallTime").unwrap_or(now_ms);
        let delay = now_ms.saturating_sub(wall).max(0);
        let time = match last.get("clusterTime") {
            Some(Value::Timestamp(time)) => time,
            _ => Timestamp::default(),
        };
        changed.append(
            "last",
            &doc! { "ended": Value::Date(now_ms), "clusterTime": time,
            "delayMS": delay },
        );
    }
    let position = with_fields(&job.position, &changed);
    let done = job.done.saturating_add(events);
    Job { position, due_ms: 0, steps: job.steps + 1, done, ..job.clone() }
}

/// Ends the attempts for one event: it becomes a dead letter, or the job stops if it has no collection
/// for them.
fn give_up(
    run: &Run<'_>,
    job: &mut Job,
    (event, error): (&DocBuf, &Error),
    read: &Batch,
) -> Result<WholeStep> {
    let Some(name) = run.definition.plan.dead_letters.as_deref() else {
        let text = format!("an event failed {} times: {error}", run.definition.plan.attempts);
        return run.stop(job, &text);
    };
    // A first attempt can have read more events than the one that failed.
    if read.events.len() > 1 {
        return Err(Error::new(error.code(), error.message()));
    }
    run.cx.service.log_job_gave_up(&job.id, error);
    let letter = dead_letter(run, error, ("event", Value::Document(event.as_doc())));
    let next = moved(run, job, &read.token, 1, Some(event));
    let committed = run.transact(job, |transaction| {
        transaction.call(doc! { "insert": name, "documents": [&letter] })?;
        Ok(next.clone())
    })?;
    Ok(after(job, committed))
}

/// Goes on after the change log has removed the next changes: from now, or not at all.
fn lost(run: &Run<'_>, changes: &Changes, job: &mut Job) -> Result<WholeStep> {
    if !changes.restarts {
        return run.stop(job, "the change log no longer has the next changes");
    }
    let now = Timestamp::from_u64(run.cx.service.clock.now().to_u64().saturating_add(1));
    let changed = doc! { "token": Value::Null, "from": now, "restarted": Value::Date(run.cx.service.wall_ms()) };
    let position = with_fields(&job.position, &changed);
    let next = Job { position, due_ms: 0, steps: job.steps + 1, ..job.clone() };
    let committed = run.transact(job, |_| Ok(next.clone()))?;
    Ok(after(job, committed))
}

fn counter_date(doc: &DocBuf, name: &str) -> Option<i64> {
    match doc.get(name) {
        Some(Value::Date(date)) => Some(date),
        _ => None,
    }
}
