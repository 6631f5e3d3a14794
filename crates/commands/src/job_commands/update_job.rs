//! `updateJob`, a command of Quire's own: changes fields of a job's definition.

use super::create_job::define;
use super::definition::{Definition, When, given};
use super::lanes::Lanes;
use super::run::with_fields;
use super::table::{beginning, document, ids, is_under_way, not_found, put, read, rows_at, runs};
use crate::frame::args::arguments;
use crate::frame::context::Context;
use quire_collections::Job;
use quire_document::{Doc, DocBuf, DocWriter, Value, doc};
use quire_error::{Error, ErrorCode, Result};

/// Replaces the given fields; null removes one. The client becomes the owner. An active job goes on
/// from its position; with a new schedule it is due at the next time of that.
///
/// # Errors
/// 26 NamespaceNotFound; those of the definition.
pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    if let Some(arg) = arguments(cx.command.name, body).find(|arg| arg.name() == "paused") {
        return Err(arg.unknown());
    }
    let old = cx.named_job(body)?.definition;
    let changes = given(body);
    let merged = DocBuf::build(|merged| {
        let kept = old.given.as_doc().fields().filter(|(name, _)| !changes.as_doc().contains(name));
        kept.for_each(|(name, value)| {
            merged.append(name, value);
        });
        let set = changes.as_doc().fields().filter(|(_, value)| !matches!(value, Value::Null));
        set.for_each(|(name, value)| {
            merged.append(name, value);
        });
    });
    let definition = define(cx, &old.name, (old.uuid, old.created_ms), merged)?;
    let begun = beginning(&definition, cx.service.wall_ms(), cx.service.clock.now().to_u64())?;
    let is_rescheduled = changes.as_doc().contains("schedule");
    cx.change_jobs(|writer| {
        let Some((doc, rows)) = read(writer, &old)? else {
            return Err(not_found(cx.db, &old.name).into());
        };
        let next = match (&old.plan.when, &definition.plan.when) {
            _ if rows.is_empty() => check_paused(&old, &definition, doc.as_doc())?,
            (When::Schedule(_), When::Schedule(_)) if !is_rescheduled => rows,
            (When::Changes(_), When::Changes(_)) if lanes(&old) == lanes(&definition) => rows,
            (When::Changes(_), When::Changes(_)) => divided(&definition, &rows)?,
            _ => begun_again(&definition, &rows, &begun),
        };
        let state = if next.is_empty() { "paused" } else { "active" };
        let extra = DocBuf::build(|extra| {
            for name in ["position", "steps", "done", "lanes"] {
                extra.append_some(name, doc.get(name));
            }
        });
        ids(&old).try_for_each(|id| writer.delete_job(&id))?;
        // Also rows that are the same are written, so that a run of the old definition conflicts.
        next.iter().try_for_each(|row| writer.put_job(row))?;
        put(writer, document(&definition, state, extra.as_doc()).as_doc())
    })?;
    ids(&old).chain(ids(&definition)).for_each(|id| cx.service.jobs.forget(&id));
    cx.service.store.job_bell().ring();
    Ok(())
}

fn lanes(definition: &Definition) -> Option<&Lanes> {
    match &definition.plan.when {
        When::Changes(changes) => Some(&changes.lanes),
        When::Schedule(_) => None,
    }
}

/// Refuses what a paused job cannot go on with. Returns no rows.
fn check_paused(old: &Definition, new: &Definition, doc: Doc<'_>) -> Result<Vec<Job>> {
    if lanes(old) != lanes(new) && doc.contains("lanes") {
        return Err(different_events());
    }
    Ok(Vec::new())
}

/// Returns the rows of a job with a new schedule, or on changes from now on instead of a schedule.
fn begun_again(definition: &Definition, rows: &[Job], begun: &(DocBuf, i64)) -> Vec<Job> {
    let Some(row) = rows.first() else { return Vec::new() };
    let is_scheduled = matches!(definition.plan.when, When::Schedule(_));
    let waits = !is_scheduled || !is_under_way(row.position.as_doc());
    let mut next = rows_at(definition, &begun.0, if waits { begun.1 } else { 0 });
    next.iter_mut().for_each(|lane| lane.steps = row.steps + 1);
    if let Some(first) = next.first_mut() {
        let counted = doc! { "runs": runs(rows) };
        let position = if is_scheduled { &row.position } else { &counted };
        first.position = with_fields(position, &begun.0);
        first.done = rows.iter().map(|row| row.done).sum();
    }
    next
}

/// Returns the rows of a job that is divided into other lanes: all go on where it was.
fn divided(definition: &Definition, rows: &[Job]) -> Result<Vec<Job>> {
    let [row] = rows else { return Err(different_events()) };
    let place = DocBuf::build(|place| {
        for name in ["token", "from"] {
            place.append_some(name, row.position.get(name));
        }
    });
    let mut next = rows_at(definition, &place, 0);
    next.iter_mut().for_each(|lane| lane.steps = row.steps + 1);
    if let Some(first) = next.first_mut() {
        (first.position, first.done) = (row.position.clone(), row.done);
    }
    Ok(next)
}

fn different_events() -> Error {
    let text = "the lanes of the job have come to different events: drop the job, and create it with changes.startAtOperationTime";
    Error::new(ErrorCode::IllegalOperation, text)
}
