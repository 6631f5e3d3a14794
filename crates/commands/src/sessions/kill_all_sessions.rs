//! `killAllSessions`: stops the operations of all sessions of the named users; without users, of
//! all sessions.

use super::{elements, user_name};
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::Result;
use quire_session::SessionId;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    const ELEMENT: &str = "KillAllSessionsCmd.killAllSessions";
    let owners = elements("KillAllSessionsCmd", body)?
        .map(|doc| user_name(ELEMENT, doc?)?.owner(cx.service))
        .collect::<Result<Vec<_>>>()?;
    let meant = |session: &SessionId| owners.is_empty() || owners.contains(&Some(session.user));
    cx.service.kill_sessions(&meant, cx.operation_id);
    Ok(())
}
