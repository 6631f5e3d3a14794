//! `getCmdLineOpts`: the options of the server's start, as given and as parsed.

use crate::frame::args::arguments;
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::Result;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    if let Some(arg) = arguments(cx.command.name, body).next() {
        return Err(arg.unknown());
    }
    {
        let mut argv = reply.array("argv");
        cx.service.options.argv.iter().for_each(|arg| {
            argv.push(arg.as_str());
        });
    }
    reply.append("parsed", &cx.service.options.parsed_options);
    Ok(())
}
