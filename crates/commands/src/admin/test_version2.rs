//! `testVersion2`: does nothing. Drivers test `apiStrict` with it, because it is not in version 1
//! of the Stable API.

use crate::frame::args::arguments;
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::Result;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _: &mut DocWriter<'_>) -> Result<()> {
    match arguments(cx.command.name, body).next() {
        Some(arg) => Err(arg.unknown()),
        None => Ok(()),
    }
}
