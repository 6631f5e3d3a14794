//! `whatsmyuri`: the client's address as the server sees it.

use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::Result;

/// Like mongod it accepts any field.
pub fn run(cx: &mut Context<'_>, _body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let peer = cx.connection.info.peer;
    let you = peer.map_or_else(|| "anonymous unix socket:0".to_owned(), |peer| peer.to_string());
    reply.append("you", you.as_str());
    Ok(())
}
