//! `getAuditConfig`: what the audit log records.

use crate::frame::args::arguments;
use crate::frame::context::Context;
use crate::frame::parameters::table::AUDIT_SUCCESS;
use quire_document::{Doc, DocWriter, ObjectId};
use quire_error::Result;

/// Shows no filter: that of the start is in `getCmdLineOpts`. The generation does not change,
/// because the configuration does not.
pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    if let Some(arg) = arguments(cx.command.name, body).next() {
        return Err(arg.unknown());
    }
    reply.append("generation", ObjectId([0; 12]));
    reply.document("filter").finish();
    reply.append("auditAuthorizationSuccess", cx.service.parameters.flag(AUDIT_SUCCESS));
    Ok(())
}
