//! `ping`: replies ok, which shows that the server is alive.

use crate::frame::args::arguments;
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::Result;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    match arguments(cx.command.name, body).next() {
        Some(arg) => Err(arg.unknown()),
        None => Ok(()),
    }
}
