//! `getLog`: the newest log lines, or the warnings of the start.

use crate::frame::args::{arguments, missing};
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    if let Some(arg) = arguments(cx.command.name, body).next() {
        return Err(arg.unknown());
    }
    if let Some(Value::Null | Value::Undefined) = body.get("getLog") {
        return Err(missing(cx.command.name, cx.command.name));
    }
    let Some(Value::String(name)) = body.get("getLog") else {
        let found = body.get("getLog").map_or("missing", |value| value.type_name());
        let text = format!("Argument to getLog must be of type String; found {found}");
        return Err(Error::type_mismatch(text));
    };
    let log = cx.service.log();
    let (written, lines) = match name {
        "*" => {
            let mut names = reply.array("names");
            names.push("global").push("startupWarnings");
            return Ok(());
        }
        "global" => (log.lines_written(), log.recent()),
        "startupWarnings" => {
            let warnings = log.startup_warnings();
            (warnings.len() as u64, warnings)
        }
        _ => {
            let text = format!("No log named '{name}'");
            return Err(Error::new(ErrorCode::OperationFailed, text));
        }
    };
    crate::frame::reply::number(reply, "totalLinesWritten", written as i64);
    let mut log = reply.array("log");
    lines.iter().for_each(|line| {
        log.push(line.as_str());
    });
    Ok(())
}
