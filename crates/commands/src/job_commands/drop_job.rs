//! `dropJob`, a command of Quire's own: removes a job. A run that has not committed has no effect.

use super::run::drop_results;
use super::table::{Stored, ids, remove};
use crate::frame::args::arguments;
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::Result;

/// Removes the definition and the rows.
///
/// # Errors
/// 26 NamespaceNotFound.
pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    if let Some(arg) = arguments(cx.command.name, body).next() {
        return Err(arg.unknown());
    }
    let Stored { definition, .. } = cx.named_job(body)?;
    let key = definition.key();
    cx.change_jobs(|writer| {
        ids(&definition).try_for_each(|id| writer.delete_job(&id))?;
        remove(writer, &key).map(drop)
    })?;
    ids(&definition).for_each(|id| cx.service.jobs.forget(&id));
    drop_results(&cx.service.store, &definition.uuid)
}
