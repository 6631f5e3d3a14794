//! `listJobs`, a command of Quire's own: the jobs of a database, with their definitions, their last
//! runs and their errors.

use super::create_job::stored_number;
use super::definition::{Definition, When, counter};
use super::table::{self, is_of};
use crate::frame::args::arguments;
use crate::frame::context::Context;
use crate::frame::job_list::{Entry, State};
use crate::frame::query_args::batch_size;
use quire_collections::{Job, JobId};
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, Result};
use std::collections::BTreeMap;

/// Replies with a cursor over the jobs of the command's database, or of all databases in `admin`.
///
/// # Errors
/// The errors of reading.
pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut name, mut batch) = (None, None);
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "name" => name = Some(arg.string()?),
            "cursor" => batch = batch_size("cursor", arg.document()?)?,
            _ => return Err(arg.unknown()),
        }
    }
    let jobs = cx.service.store.jobs(|_| {})?;
    let rows: BTreeMap<JobId, Job> = jobs.into_iter().map(|job| (job.id.clone(), job)).collect();
    let known: BTreeMap<JobId, Entry> =
        cx.service.jobs.list().into_iter().map(|entry| (entry.job.id.clone(), entry)).collect();
    let mut shown = Vec::new();
    for doc in table::all(&cx.service.store)? {
        let text = |field: &str| doc.get(field).and_then(|value| value.as_str());
        let in_scope = cx.db == "admin" || text("db") == Some(cx.db);
        if !in_scope || name.is_some_and(|name| text("name") != Some(name)) {
            continue;
        }
        let id = JobId::new(table::KIND, text("_id").unwrap_or_default());
        shown.push(row(cx, &doc, rows.get(&id), known.get(&id)));
    }
    let namespace = format!("{}.$cmd.listJobs", cx.db);
    cx.list_reply(reply, &namespace, shown, batch, body)
}

fn row(cx: &Context<'_>, doc: &DocBuf, row: Option<&Job>, entry: Option<&Entry>) -> DocBuf {
    let definition: Result<Definition, Error> = Definition::of_stored(doc.as_doc());
    let active = definition.as_ref().ok().and_then(|known| row.filter(|row| is_of(row, known)));
    DocBuf::build(|shown| {
        for name in ["db", "name", "owner", "created", "reason"] {
            shown.append_some(name, doc.get(name));
        }
        shown.append("state", if active.is_some() { "active" } else { "paused" });
        if let Err(error) = &definition {
            shown.append("error", error.to_string().as_str());
        }
        match (active, &definition) {
            (Some(row), Ok(definition)) => {
                let waits = entry.is_some_and(|entry| matches!(entry.state, State::Resting));
                append_run(shown, row, (&definition.plan.when, waits), cx.service.wall_ms());
            }
            _ => append_counters(shown, doc),
        }
        if let Some(entry) = entry.filter(|_| active.is_some()) {
            shown.append("running", matches!(entry.state, State::Running(_)));
            shown.append("failures", i64::from(entry.failures));
            if let Some(error) = &entry.error {
                shown.append("error", error.as_str());
            }
        }
        shown.append_some("definition", doc.get("definition"));
    })
}

/// Appends the counters and the last run of a paused job.
fn append_counters(shown: &mut DocWriter<'_>, doc: &DocBuf) {
    let Some(position) = doc.get("position").and_then(|kept| kept.as_document()) else { return };
    shown.append("runs", counter(position, "runs"));
    shown.append("done", stored_number(doc.get("done")));
    shown.append_some("last", position.get("last"));
}

/// Appends the next due time, the counters and the last run of an active job.
/// A trigger that `waits` has handled all changes.
fn append_run(shown: &mut DocWriter<'_>, row: &Job, (when, waits): (&When, bool), now_ms: i64) {
    let position = row.position.as_doc();
    shown.append_some("next", position.get("next"));
    shown.append("runs", counter(position, "runs")).append("done", row.done);
    shown.append_some("last", position.get("last"));
    let behind = match (when, position.get("next"), position.get("last")) {
        (When::Schedule(_), Some(Value::Date(next)), _) => Some(now_ms.saturating_sub(next).max(0)),
        (When::Changes(_), _, _) if waits => Some(0),
        (When::Changes(_), _, Some(Value::Document(last))) => {
            last.get("delayMS").and_then(|delay| delay.exact_i64())
        }
        _ => None,
    };
    if let Some(behind) = behind {
        shown.append("lagMS", behind);
    }
}
