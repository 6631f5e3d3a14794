//! `runJob`, a command of Quire's own: runs a scheduled job now, beside its schedule.

use super::definition::{Definition, When, counter};
use super::table::{Stored, find, not_found};
use crate::frame::args::arguments;
use crate::frame::context::Context;
use quire_collections::Job;
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use std::time::Duration;

/// The interval at which a command that waits looks at the job.
const LOOK: Duration = Duration::from_millis(10);

/// Asks for a run. With `wait: true` it returns when the run has ended, and fails if an attempt fails,
/// also if others follow.
///
/// # Errors
/// 26 NamespaceNotFound; 20 IllegalOperation for a paused job and one on changes; the error of the run.
pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut waits = false;
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "wait" => waits = arg.bool()?,
            _ => return Err(arg.unknown()),
        }
    }
    let Stored { definition, rows, .. } = cx.named_job(body)?;
    let refuse = |text: &str| Err(Error::new(ErrorCode::IllegalOperation, text));
    let Some(row) = rows.first() else { return refuse("the job is paused") };
    if matches!(definition.plan.when, When::Changes(_)) {
        return refuse("the job runs on changes, not by a command");
    }
    let before = cx.change_jobs(|writer| {
        let row = writer.job(&row.id)?.unwrap_or_else(|| row.clone());
        let mut position = DocBuf::build(|position| {
            let kept = row.position.as_doc().fields().filter(|(name, _)| *name != "asked");
            kept.for_each(|(name, value)| {
                position.append(name, value);
            });
        });
        position.append("asked", true);
        let asked = Job { position, due_ms: 0, ..row };
        writer.put_job(&asked)?;
        Ok(asked)
    })?;
    cx.service.jobs.forget(&before.id);
    cx.service.store.job_bell().ring();
    if !waits {
        return Ok(());
    }
    let run = await_run(cx, &definition, &before)?;
    reply.append_some("run", run.as_ref().map(|run| Value::Document(run.as_doc())));
    Ok(())
}

/// Waits until a job has run once more than in `before`. Returns its last run.
fn await_run(cx: &Context<'_>, definition: &Definition, before: &Job) -> Result<Option<DocBuf>> {
    let (key, runs) = (definition.key(), |row: &Job| counter(row.position.as_doc(), "runs"));
    loop {
        cx.pause(LOOK)?;
        let found = find(&cx.service.store, &key)?;
        let found = found.ok_or_else(|| not_found(cx.db, &definition.name))?;
        let Some(row) = found.rows.first() else {
            let text =
                "the job was paused before the run had ended; it is done when the job goes on";
            return Err(Error::new(ErrorCode::OperationFailed, text));
        };
        let failed = |error: &str| {
            let text = format!("the run of the job failed: {error}");
            Err(Error::new(ErrorCode::OperationFailed, text))
        };
        if runs(row) > runs(before) {
            let last = row.position.get("last").and_then(|last| last.as_document());
            let error = last.and_then(|last| last.get("error")?.as_str());
            return error.map_or_else(|| Ok(last.map(Doc::to_owned)), failed);
        }
        if let Some(error) = cx.service.jobs.error_of(&row.id) {
            return failed(&error);
        }
    }
}
