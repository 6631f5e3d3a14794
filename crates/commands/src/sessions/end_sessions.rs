//! `endSessions`: the client no longer needs the sessions. Their cursors close; the results of
//! their writes are kept until they expire.

use super::named_sessions;
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::Result;
use quire_session::SessionId;
use std::collections::HashSet;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    const ELEMENT: &str = "EndSessionsCmdFromClient.endSessions";
    let ids = named_sessions(cx, "EndSessionsCmdFromClient", ELEMENT, body)?;
    let ended: HashSet<SessionId> = ids.iter().copied().collect();
    cx.service.sessions.abort_transactions(&|session| ended.contains(session));
    cx.service.sessions.end(&ids);
    cx.service.cursors.kill_sessions(|session| ended.contains(session));
    Ok(())
}
