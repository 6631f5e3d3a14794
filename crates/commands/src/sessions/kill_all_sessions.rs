//! `killAllSessions`: stops what all sessions of some users do; without users, of everybody.

use super::{elements, user_name};
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::Result;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    const ELEMENT: &str = "KillAllSessionsCmd.killAllSessions";
    let mut everybody = true;
    for doc in elements("KillAllSessionsCmd", body)? {
        user_name(ELEMENT, doc?)?;
        everybody = false;
    }
    // Nobody logs in here, so that all sessions are nobody's and none is that of a named user.
    if everybody {
        cx.service.kill_sessions(&|_| true, cx.operation_id);
    }
    Ok(())
}
