//! `listJobs`, a command of Quire's own: the jobs of a database, with their definitions, their last
//! runs and their errors.

use super::create_job::stored_number;
use super::definition::{Definition, When, counter};
use super::table;
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
        shown.push(row(cx, &doc, &rows, &known));
    }
    let namespace = format!("{}.$cmd.listJobs", cx.db);
    cx.list_reply(reply, &namespace, shown, batch, body)
}

/// Returns what is shown of a job. `rows` and `known` are the rows of all jobs, as they are stored and as
/// this process knows them.
fn row(
    cx: &Context<'_>,
    doc: &DocBuf,
    rows: &BTreeMap<JobId, Job>,
    known: &BTreeMap<JobId, Entry>,
) -> DocBuf {
    let definition: Result<Definition, Error> = Definition::of_stored(doc.as_doc());
    let own = |definition: &Definition| -> Vec<Job> {
        let found = table::rows(definition, |id| Ok::<_, Error>(rows.get(id).cloned()));
        found.unwrap_or_default()
    };
    let rows = definition.as_ref().map(own).unwrap_or_default();
    let entries: Vec<&Entry> = rows.iter().filter_map(|row| known.get(&row.id)).collect();
    DocBuf::build(|shown| {
        for name in ["db", "name", "owner", "created", "reason"] {
            shown.append_some(name, doc.get(name));
        }
        shown.append("state", if rows.is_empty() { "paused" } else { "active" });
        if let Err(error) = &definition {
            shown.append("error", error.to_string().as_str());
        }
        match &definition {
            Ok(definition) if !rows.is_empty() => {
                append_runs(shown, &rows, &definition.plan.when, known, cx.service.wall_ms());
            }
            _ => append_counters(shown, doc),
        }
        if !entries.is_empty() {
            let is_running = |entry: &&Entry| matches!(entry.state, State::Running(_));
            shown.append("running", entries.iter().any(is_running));
            let failures = entries.iter().map(|entry| entry.failures).max();
            shown.append("failures", i64::from(failures.unwrap_or(0)));
            if let Some(error) = entries.iter().find_map(|entry| entry.error.as_ref()) {
                shown.append("error", error.as_str());
            }
        }
        shown.append_some("definition", doc.get("definition"));
    })
}

/// Appends the counters and the last run of a paused job.
fn append_counters(shown: &mut DocWriter<'_>, doc: &DocBuf) {
    let lanes = doc.get("lanes").and_then(|lanes| lanes.as_array());
    let lanes =
        lanes.into_iter().flat_map(|lanes| lanes.iter()).filter_map(|row| row.as_document());
    let rows: Vec<Doc<'_>> = std::iter::once(doc.as_doc()).chain(lanes).collect();
    let positions = rows.iter().filter_map(|row| row.get("position")?.as_document());
    let positions: Vec<Doc<'_>> = positions.collect();
    if positions.is_empty() {
        return;
    }
    let runs: i64 = positions.iter().map(|position| counter(*position, "runs")).sum();
    let done: i64 = rows.iter().map(|row| stored_number(row.get("done"))).sum();
    shown.append("runs", runs).append("done", done);
    shown.append_some("last", latest(positions));
}

/// Appends the next due time, the counters, the last run and the lag of an active job. The lag of a job
/// in lanes is that of the last of them.
fn append_runs(
    shown: &mut DocWriter<'_>,
    rows: &[Job],
    when: &When,
    known: &BTreeMap<JobId, Entry>,
    now_ms: i64,
) {
    let positions = || rows.iter().map(|row| row.position.as_doc());
    let done: i64 = rows.iter().map(|row| row.done).sum();
    shown.append_some("next", positions().next().and_then(|first| first.get("next")));
    shown.append("runs", table::runs(rows)).append("done", done);
    shown.append_some("last", latest(positions().collect()));
    let behind = rows.iter().filter_map(|row| {
        let is_resting = |entry: &Entry| matches!(entry.state, State::Resting(_));
        let waits = known.get(&row.id).is_some_and(is_resting);
        lag(row.position.as_doc(), when, waits, now_ms)
    });
    if let Some(behind) = behind.max() {
        shown.append("lagMS", behind);
    }
}

/// Returns how late the next run is, or how long the last event has waited. A row on changes that `waits`
/// has handled all changes.
fn lag(position: Doc<'_>, when: &When, waits: bool, now_ms: i64) -> Option<i64> {
    match (when, position.get("next"), position.get("last")) {
        (When::Schedule(_), Some(Value::Date(next)), _) => Some(now_ms.saturating_sub(next).max(0)),
        (When::Changes(_), _, _) if waits => Some(0),
        (When::Changes(_), _, Some(Value::Document(last))) => last.get("delayMS")?.exact_i64(),
        _ => None,
    }
}

/// Returns the last run that ended last.
fn latest(positions: Vec<Doc<'_>>) -> Option<Value<'_>> {
    let ended = |last: &Value<'_>| match last.as_document().and_then(|last| last.get("ended")) {
        Some(Value::Date(ended)) => ended,
        _ => i64::MIN,
    };
    positions.into_iter().filter_map(|position| position.get("last")).max_by_key(ended)
}
