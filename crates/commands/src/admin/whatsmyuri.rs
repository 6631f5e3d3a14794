//! `whatsmyuri`: the client's own address as the server sees it.

use crate::args::arguments;
use crate::dispatch::Context;
use quire_document::{Doc, DocWriter};
use quire_error::Result;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    if let Some(arg) = arguments(cx.command.name, body).next() {
        return Err(arg.unknown());
    }
    let peer = cx.connection.info.peer;
    let you = peer.map_or_else(|| "anonymous unix socket:0".to_owned(), |peer| peer.to_string());
    reply.append("you", you.as_str());
    Ok(())
}
