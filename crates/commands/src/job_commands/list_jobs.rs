//! `listJobs`, a command of Quire's own: the jobs of a database, with their definitions, their last
//! runs and their errors.

use super::definition::{Definition, When, counter};
use super::table::{definitions, is_of};
use crate::frame::args::arguments;
use crate::frame::context::Context;
use crate::frame::job_list::{Entry, State};
use crate::frame::query_args::batch_size;
use quire_collections::{CollectionCursor, Job, JobId};
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, Result};
use quire_storage::Direction;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The definitions that are read at a time.
const PAGE_DOCS: usize = 256;
const PAGE_BYTES: usize = 1 << 20;

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
    for doc in stored(cx)? {
        let text = |field: &str| doc.get(field).and_then(|value| value.as_str());
        let in_scope = cx.db == "admin" || text("db") == Some(cx.db);
        if !in_scope || name.is_some_and(|name| text("name") != Some(name)) {
            continue;
        }
        let id = JobId::new(super::table::KIND, text("_id").unwrap_or_default());
        shown.push(row(&doc, rows.get(&id), known.get(&id), cx.service.wall_ms()));
    }
    let namespace = format!("{}.$cmd.listJobs", cx.db);
    cx.list_reply(reply, &namespace, shown, batch, body)
}

/// Returns the documents of all definitions.
fn stored(cx: &Context<'_>) -> Result<Vec<DocBuf>> {
    let view = cx.service.store.read_view()?;
    let view = view.view();
    let Some(collection) = view.collection(&definitions()?).map(Arc::clone) else {
        return Ok(Vec::new());
    };
    let mut cursor = CollectionCursor::new(&collection, Direction::Forward);
    let (mut docs, mut page, mut more) = (Vec::new(), Vec::new(), true);
    while more {
        cx.check_interrupt()?;
        page.clear();
        more = cursor.next_page(&view, &collection, PAGE_DOCS, PAGE_BYTES, &mut page)?;
        docs.extend(page.iter().map(|record| record.doc.as_doc().to_owned()));
    }
    Ok(docs)
}

fn row(doc: &DocBuf, row: Option<&Job>, entry: Option<&Entry>, now_ms: i64) -> DocBuf {
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
        if let (Some(row), Ok(definition)) = (active, &definition) {
            append_run(shown, row, &definition.plan.when, now_ms);
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

/// Appends the next due time, the counters and the last run of an active job.
fn append_run(shown: &mut DocWriter<'_>, row: &Job, when: &When, now_ms: i64) {
    let position = row.position.as_doc();
    shown.append_some("next", position.get("next"));
    shown.append("runs", counter(position, "runs")).append("done", row.done);
    shown.append_some("last", position.get("last"));
    let behind = match (when, position.get("next"), position.get("last")) {
        (When::Schedule(_), Some(Value::Date(next)), _) => Some(now_ms.saturating_sub(next).max(0)),
        (When::Changes(_), _, Some(Value::Document(last))) => {
            last.get("delayMS").and_then(|delay| delay.exact_i64())
        }
        _ => None,
    };
    if let Some(behind) = behind {
        shown.append("lagMS", behind);
    }
}
