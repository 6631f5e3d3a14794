//! `killSessions`: stops the operations of sessions and closes their cursors; without any, of all
//! sessions of the calling user.

use super::named_sessions;
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::Result;
use quire_session::SessionId;
use std::collections::HashSet;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let ids = named_sessions(cx, "KillSessionsCmd", "KillSessionsCmd.killSessions", body)?;
    let ids: HashSet<SessionId> = ids.into_iter().collect();
    let own = cx.owner();
    let is_meant = |session: &SessionId| match ids.is_empty() {
        true => session.user == own,
        false => ids.contains(session),
    };
    cx.service.kill_sessions(&is_meant, cx.operation_id);
    Ok(())
}
