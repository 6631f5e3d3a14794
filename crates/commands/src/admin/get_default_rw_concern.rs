//! `getDefaultRWConcern`: the default read and write concern.

use crate::frame::args::arguments;
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::Result;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut in_memory = false;
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "inMemory" if arg.is_null() => {}
            "inMemory" => in_memory = arg.bool()?,
            _ => return Err(arg.unknown()),
        }
    }
    cx.check_member()?;
    cx.service.concern_defaults.write_reply(in_memory, reply);
    Ok(())
}
