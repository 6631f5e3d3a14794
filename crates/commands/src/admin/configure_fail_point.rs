//! `configureFailPoint`: switches an injected fault of a test on or off.

use crate::frame::args::{Arg, arguments, missing};
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::{Error, Result};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let name = body.first().ok_or_else(|| Error::internal("a command without a name"))?;
    let name = Arg::new(cx.command.name, name).string()?;
    let (mut mode, mut data) = (None, Doc::empty());
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "mode" => mode = Some(arg.value()),
            "data" => data = arg.document()?,
            _ => return Err(arg.unknown()),
        }
    }
    let mode = mode.ok_or_else(|| missing(cx.command.name, "mode"))?;
    reply.append("count", cx.service.fail_points.configure(name, mode, data)?);
    Ok(())
}
