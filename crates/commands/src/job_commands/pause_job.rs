//! `pauseJob` and `resumeJob`, commands of Quire's own. A paused job keeps its position: a job on
//! changes goes on with the first change that it has not seen, and a run of a schedule that was asked
//! for, or has merged a part of its results, is done when the job goes on.

use super::create_job::{define, stored_number};
use super::definition::When;
use super::run::with_fields;
use super::table::{Stored, beginning, document, id, is_under_way, pause, put, row_of};
use crate::frame::args::arguments;
use crate::frame::context::Context;
use quire_collections::Job;
use quire_document::{Doc, DocWriter};
use quire_error::Result;

/// Pauses an active job; a paused one stays as it is. A run that has not committed has no effect.
///
/// # Errors
/// 26 NamespaceNotFound.
pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    refuse_arguments(cx, body)?;
    let Stored { definition, row, .. } = cx.named_job(body)?;
    let Some(row) = row else { return Ok(()) };
    cx.change_jobs(|writer| {
        // The position can have moved since the row was read.
        let row = writer.job(&row.id)?.unwrap_or_else(|| row.clone());
        pause(writer, &definition, &row, None)
    })?;
    cx.service.jobs.forget(&row.id);
    Ok(())
}

/// Makes a paused job active; an active one stays as it is. The client becomes the owner.
///
/// # Errors
/// 26 NamespaceNotFound; those of the definition, which can have come from a dump.
pub fn resume(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    refuse_arguments(cx, body)?;
    let Stored { definition: old, doc, row } = cx.named_job(body)?;
    if row.is_some() {
        return Ok(());
    }
    let given = old.given.clone();
    let definition = define(cx, &old.name, (old.uuid, old.created_ms), given)?;
    let time = cx.service.clock.now().to_u64();
    let (mut position, mut due_ms) = beginning(&definition, cx.service.wall_ms(), time)?;
    match (doc.get("position").and_then(|kept| kept.as_document()), &definition.plan.when) {
        (Some(kept), When::Changes(_)) => position = kept.to_owned(),
        (Some(kept), When::Schedule(_)) => {
            position = with_fields(&kept.to_owned(), &position);
            if is_under_way(kept) {
                due_ms = 0;
            }
        }
        (None, _) => {}
    }
    let begun = row_of(&definition, position, due_ms);
    let (steps, done) = (stored_number(doc.get("steps")), stored_number(doc.get("done")));
    let row = Job { steps: steps + 1, done, ..begun };
    let stored = document(&definition, "active", Doc::empty());
    cx.change_jobs(|writer| {
        writer.put_job(&row)?;
        put(writer, stored.as_doc())
    })?;
    cx.service.jobs.forget(&id(cx.db, &old.name));
    cx.service.store.job_bell().ring();
    Ok(())
}

fn refuse_arguments(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    match arguments(cx.command.name, body).next() {
        Some(arg) => Err(arg.unknown()),
        None => Ok(()),
    }
}
