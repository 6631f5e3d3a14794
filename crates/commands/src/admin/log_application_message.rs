//! `logApplicationMessage`: writes a text of the client to the audit log. (MongoDB manual,
//! "logApplicationMessage".) Without an audit log the command does not exist, as in MongoDB.

use crate::frame::args::{Arg, arguments, missing};
use crate::frame::command::{AuditEvent, Command};
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter, doc};
use quire_error::{Error, ErrorCode, Result};

/// Checks the arguments. The event is written like every other, after the command has succeeded.
pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    if cx.service.audit.is_none() {
        let text = format!("no such command: '{}'", cx.command.name);
        return Err(Error::new(ErrorCode::CommandNotFound, text));
    }
    if let Some(arg) = arguments(cx.command.name, body).next() {
        return Err(arg.unknown());
    }
    let first = body.first().ok_or_else(|| missing(cx.command.name, cx.command.name))?;
    Arg::new(cx.command.name, first).string().map(drop)
}

/// Returns the event with the text.
pub fn event(_command: &Command, body: Doc<'_>) -> AuditEvent {
    let text = body.first().and_then(|first| first.value().as_str()).unwrap_or_default();
    ("applicationMessage", doc! { "msg": text })
}
