//! `killAllSessionsByPattern`: stops the operations of sessions that match one of some patterns (a
//! session, the owner's number); without patterns, of all sessions.

use super::{documents, elements, user_name};
use crate::frame::args::{fields, missing};
use crate::frame::context::Context;
use crate::frame::operation_session::{digest, session_id};
use quire_document::{Doc, DocWriter};
use quire_error::Result;
use quire_session::SessionId;

const ELEMENT: &str = "KillAllSessionsByPatternCmd.killAllSessionsByPattern";
const LSID: &str = "KillAllSessionsByPatternCmd.killAllSessionsByPattern.lsid";

/// A pattern of sessions.
enum Pattern {
    Session(SessionId),
    User([u8; 32]),
    Every,
}

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let patterns = elements("KillAllSessionsByPatternCmd", body)?
        .map(|doc| parse(doc?))
        .collect::<Result<Vec<_>>>()?;
    let matches = |session: &SessionId| {
        patterns.is_empty()
            || patterns.iter().any(|pattern| match pattern {
                Pattern::Session(id) => id == session,
                Pattern::User(user) => *user == session.user,
                Pattern::Every => true,
            })
    };
    cx.service.kill_sessions(&matches, cx.operation_id);
    Ok(())
}

/// Reads a pattern. `users` and `roles` name the user and roles of the caller; they select no
/// session.
fn parse(doc: Doc<'_>) -> Result<Pattern> {
    let (mut session, mut user) = (None, None);
    for arg in fields(ELEMENT, doc) {
        match arg.name() {
            "lsid" | "uid" | "users" | "roles" if arg.is_null() => {}
            "lsid" => {
                let lsid = arg.document()?;
                let id = session_id(LSID, lsid)?;
                lsid.find("uid").ok_or_else(|| missing(LSID, "uid"))?;
                session = Some(id);
            }
            "uid" => user = Some(digest(&arg)?),
            "users" => {
                for named in documents(arg)? {
                    user_name("KillAllSessionsByPatternCmd.users", named?)?;
                }
            }
            "roles" => documents(arg)?.try_for_each(|role| role.map(|_| ()))?,
            _ => return Err(arg.unknown()),
        }
    }
    Ok(match (session, user) {
        (Some(id), _) => Pattern::Session(id),
        (None, Some(user)) => Pattern::User(user),
        (None, None) => Pattern::Every,
    })
}
