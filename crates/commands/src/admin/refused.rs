//! Commands of MongoDB that this server refuses for good, with the reason.

use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::{Error, ErrorCode, Result};

/// Runs a command of a sharded cluster.
pub fn sharding(cx: &mut Context<'_>, _: Doc<'_>, _: &mut DocWriter<'_>) -> Result<()> {
    refuse(cx, "this server is a replica set of one member, and no part of a sharded cluster")
}

/// Runs a command that writes to the oplog itself.
pub fn oplog(cx: &mut Context<'_>, _: Doc<'_>, _: &mut DocWriter<'_>) -> Result<()> {
    refuse(cx, "the change log has only changes of data")
}

/// Runs a command of Queryable Encryption.
pub fn encryption(cx: &mut Context<'_>, _: Doc<'_>, _: &mut DocWriter<'_>) -> Result<()> {
    refuse(cx, "this server has no encrypted collections")
}

/// Runs a command about the configuration of the audit log.
pub fn audit(cx: &mut Context<'_>, _: Doc<'_>, _: &mut DocWriter<'_>) -> Result<()> {
    refuse(
        cx,
        "the filter of the audit log is set when the server starts, and auditAuthorizationSuccess by setParameter",
    )
}

fn refuse(cx: &Context<'_>, why: &str) -> Result<()> {
    let text = format!("{} is not supported: {why}", cx.command.name);
    Err(Error::new(ErrorCode::CommandNotSupported, text))
}
