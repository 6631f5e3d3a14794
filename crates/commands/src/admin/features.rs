//! `features`: the bytes that identify this process in object ids.

use crate::frame::args::arguments;
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::{Error, Result};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            // The bytes of a process do not change: object ids differ by their counter.
            "oidReset" if arg.safe_bool()? => {
                return Err(Error::not_built("features.oidReset"));
            }
            "oidReset" => {}
            _ => return Err(arg.unknown()),
        }
    }
    let [_, _, _, _, a, b, c, ..] = cx.service.process_id.0;
    reply.append("oidMachine", i64::from(u32::from_be_bytes([0, a, b, c])));
    Ok(())
}
