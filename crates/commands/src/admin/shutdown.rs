//! `shutdown`: ends the process. There is no reply: the connection closes, as in mongod.

use crate::frame::args::arguments;
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::{Error, ErrorCode, Result};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "force" => drop(arg.safe_bool()?),
            "timeoutSecs" => drop(arg.integer_from(0)?),
            _ => return Err(arg.unknown()),
        }
    }
    // Without logins the only check is that the client is on this machine.
    if !cx.service.access.enforced && cx.connection.info.is_remote() {
        let text = "shutdown must run from localhost when running db without auth";
        return Err(Error::new(ErrorCode::Unauthorized, text));
    }
    (cx.service.options.on_shutdown)();
    cx.outcome.hang_up = true;
    Ok(())
}
