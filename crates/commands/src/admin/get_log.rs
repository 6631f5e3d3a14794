//! `getLog`: the newest log lines, or the warnings of the start.

use crate::args::arguments;
use crate::dispatch::Context;
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    if let Some(arg) = arguments(cx.command.name, body).next() {
        return Err(arg.unknown());
    }
    let Some(Value::String(name)) = body.get("getLog") else {
        let found = body.get("getLog").map_or("missing", |value| value.type_name());
        let text = format!("Argument to getLog must be of type String; found {found}");
        return Err(Error::type_mismatch(text));
    };
    let lines = match name {
        "*" => {
            let mut names = reply.array("names");
            names.push("global").push("startupWarnings");
            return Ok(());
        }
        "global" => cx.service.log().recent(),
        "startupWarnings" => cx.service.log().startup_warnings(),
        _ => {
            let text = format!("No log named '{name}'");
            return Err(Error::new(ErrorCode::OperationFailed, text));
        }
    };
    reply.append("totalLinesWritten", lines.len() as i32);
    let mut log = reply.array("log");
    lines.iter().for_each(|line| {
        log.push(line.as_str());
    });
    Ok(())
}
