//! `logRotate`: puts the log file aside and goes on in a new one.

use crate::frame::args::{Arg, arguments};
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    if let Some(arg) = arguments(cx.command.name, body).next() {
        return Err(arg.unknown());
    }
    let Some(first) = body.first() else { return Ok(()) };
    match first.value() {
        Value::String("server") | Value::Bool(_) => {}
        number if number.is_number() => {}
        Value::String(name) => {
            return Err(Error::new(ErrorCode::NoSuchKey, format!("Unknown log type '{name}'")));
        }
        _ => return Err(Arg::new("logRotate", first).wrong_type("string")),
    }
    cx.service.log().rotate().map_err(|error| {
        Error::new(ErrorCode::FileRenameFailed, format!("Log rotation failed: {error}"))
    })
}
