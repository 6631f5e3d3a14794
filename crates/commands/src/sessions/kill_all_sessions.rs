//! `killAllSessions`: stops the operations of all sessions of the named users; without users, of
//! all sessions.

use super::{elements, user_name};
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::Result;
use quire_session::SessionId;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    const ELEMENT: &str = "KillAllSessionsCmd.killAllSessions";
    let users = elements("KillAllSessionsCmd", body)?
        .map(|doc| Ok(user_name(ELEMENT, doc?)?.digest()))
        .collect::<Result<Vec<_>>>()?;
    let meant = |session: &SessionId| users.is_empty() || users.contains(&session.user);
    cx.service.kill_sessions(&meant, cx.operation_id);
    Ok(())
}
