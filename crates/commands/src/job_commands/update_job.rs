//! `updateJob`, a command of Quire's own: changes fields of a job's definition.

use super::create_job::define;
use super::definition::{When, given};
use super::run::with_fields;
use super::table::{Stored, document, is_under_way, put, row_of};
use crate::frame::args::arguments;
use crate::frame::context::Context;
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::Result;

/// Replaces the given fields; null removes one. The client becomes the owner. An active job goes on
/// from its position; with a new schedule it is due at the next time of that.
///
/// # Errors
/// 26 NamespaceNotFound; those of the definition.
pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    if let Some(arg) = arguments(cx.command.name, body).find(|arg| arg.name() == "paused") {
        return Err(arg.unknown());
    }
    let Stored { definition: old, doc, row } = cx.named_job(body)?;
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
    let next = match (&row, &definition.plan.when) {
        (Some(row), When::Schedule(_)) if changes.as_doc().contains("schedule") => {
            let begun = super::table::beginning(&definition, cx.service.wall_ms(), 0)?;
            let due_ms = if is_under_way(row.position.as_doc()) { 0 } else { begun.1 };
            let again = row_of(&definition, with_fields(&row.position, &begun.0), due_ms);
            Some(quire_collections::Job { steps: row.steps + 1, done: row.done, ..again })
        }
        // The same row is written, so that a run of the old definition conflicts.
        (Some(row), _) => Some(row.clone()),
        (None, _) => None,
    };
    let state = if next.is_some() { "active" } else { "paused" };
    let extra = DocBuf::build(|extra| {
        for name in ["position", "steps", "done"] {
            extra.append_some(name, doc.get(name));
        }
    });
    let stored = document(&definition, state, extra.as_doc());
    cx.change_jobs(|writer| {
        if let Some(row) = &next {
            writer.put_job(row)?;
        }
        put(writer, stored.as_doc())
    })?;
    cx.service.jobs.forget(&super::table::id(cx.db, &old.name));
    cx.service.store.job_bell().ring();
    Ok(())
}
