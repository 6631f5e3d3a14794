//! `pauseJob` and `resumeJob`, commands of Quire's own. A paused job keeps its position: a job on
//! changes goes on with the first change that it has not seen, and a run of a schedule that was asked
//! for, or has merged a part of its results, is done when the job goes on.

use super::create_job::{define, stored_number};
use super::definition::{Definition, When};
use super::run::with_fields;
use super::table::{
    Stored, beginning, document, ids, is_under_way, not_found, pause, put, read, row_of,
};
use crate::frame::args::arguments;
use crate::frame::context::Context;
use quire_collections::Job;
use quire_document::{Doc, DocBuf, DocWriter, Value, doc};
use quire_error::Result;

/// Pauses an active job; a paused one stays as it is. A run that has not committed has no effect.
///
/// # Errors
/// 26 NamespaceNotFound.
pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    refuse_arguments(cx, body)?;
    let Stored { definition, rows, .. } = cx.named_job(body)?;
    if rows.is_empty() {
        return Ok(());
    }
    cx.change_jobs(|writer| pause(writer, &definition, None))?;
    rows.iter().for_each(|row| cx.service.jobs.forget(&row.id));
    Ok(())
}

/// Makes a paused job active; an active one stays as it is. The client becomes the owner.
///
/// # Errors
/// 26 NamespaceNotFound; those of the definition, which can have come from a dump.
pub fn resume(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    refuse_arguments(cx, body)?;
    let Stored { definition: old, rows, .. } = cx.named_job(body)?;
    if !rows.is_empty() {
        return Ok(());
    }
    let definition = define(cx, &old.name, (old.uuid, old.created_ms), old.given.clone())?;
    let begun = beginning(&definition, cx.service.wall_ms(), cx.service.clock.now().to_u64())?;
    cx.change_jobs(|writer| {
        let Some((doc, rows)) = read(writer, &definition)? else {
            return Err(not_found(cx.db, &old.name).into());
        };
        if !rows.is_empty() {
            return Ok(());
        }
        let rows = paused_rows(&definition, &begun, doc.as_doc());
        rows.iter().try_for_each(|row| writer.put_job(row))?;
        put(writer, document(&definition, "active", Doc::empty()).as_doc())
    })?;
    ids(&definition).for_each(|id| cx.service.jobs.forget(&id));
    cx.service.store.job_bell().ring();
    Ok(())
}

/// Returns the rows with which a paused job goes on: from the places that it kept, else from those at
/// which a new job `begun`. A job that came from a dump may have kept the place of the first lane only.
fn paused_rows(definition: &Definition, begun: &(DocBuf, i64), doc: Doc<'_>) -> Vec<Job> {
    let others = doc.get("lanes").and_then(|lanes| lanes.as_array());
    let others = others.into_iter().flat_map(|lanes| lanes.iter()).map(|lane| lane.as_document());
    let mut kept = std::iter::once(Some(doc)).chain(others);
    let first = place(definition, begun, Some(doc));
    let rows = (0..definition.plan.rows()).map(|lane| {
        let own = kept.next().flatten();
        let (position, due_ms) = match own {
            Some(own) => place(definition, begun, Some(own)),
            None => (without_runs(&first.0), first.1),
        };
        let number = |name: &str| own.map_or(0, |own| stored_number(own.get(name)));
        let row = row_of(definition, lane, position, due_ms);
        Job { steps: number("steps") + 1, done: number("done"), ..row }
    });
    rows.collect()
}

/// Returns the position from which a row goes on, and when it is due.
fn place(definition: &Definition, begun: &(DocBuf, i64), kept: Option<Doc<'_>>) -> (DocBuf, i64) {
    let kept = kept.and_then(|kept| kept.get("position")?.as_document());
    let Some(kept) = kept else { return begun.clone() };
    let is_placed = kept.contains("token") || kept.contains("from");
    match &definition.plan.when {
        When::Changes(_) if is_placed => (kept.to_owned(), begun.1),
        When::Changes(_) => (with_fields(&kept.to_owned(), &begun.0), begun.1),
        When::Schedule(_) => {
            let due_ms = if is_under_way(kept) { 0 } else { begun.1 };
            (with_fields(&kept.to_owned(), &begun.0), due_ms)
        }
    }
}

fn without_runs(position: &DocBuf) -> DocBuf {
    with_fields(position, &doc! { "runs": Value::Null, "last": Value::Null })
}

fn refuse_arguments(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    match arguments(cx.command.name, body).next() {
        Some(arg) => Err(arg.unknown()),
        None => Ok(()),
    }
}
