//! `logRotate`: renames the log file, the file of the audit log, or both, and begins new files.

use crate::frame::args::{Arg, arguments};
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    if let Some(arg) = arguments(cx.command.name, body).next() {
        return Err(arg.unknown());
    }
    let Some(first) = body.first() else { return Ok(()) };
    let (server, audit) = match first.value() {
        Value::String("server") => (true, false),
        Value::String("audit") if cx.service.audit.is_some() => (false, true),
        Value::Bool(_) => (true, true),
        number if number.is_number() => (true, true),
        Value::String(name) => {
            return Err(Error::new(ErrorCode::NoSuchKey, format!("Unknown log type '{name}'")));
        }
        _ => return Err(Arg::new("logRotate", first).wrong_type("string")),
    };
    let failed = |error: std::io::Error| {
        Error::new(ErrorCode::FileRenameFailed, format!("Log rotation failed: {error}"))
    };
    if server {
        cx.service.log().rotate().map_err(failed)?;
    }
    match audit {
        true => cx.service.rotate_audit(Some(&*cx.connection)).map_err(failed),
        false => Ok(()),
    }
}
