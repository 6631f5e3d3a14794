//! Logical sessions: one file for each command, the listing stages, and ending idle sessions.

pub mod abort_transaction;
pub mod commit_transaction;
pub mod end_sessions;
pub mod expiry;
pub mod kill_all_sessions;
pub mod kill_all_sessions_by_pattern;
pub mod kill_sessions;
pub mod list_sessions;
pub mod refresh_sessions;
pub mod start_session;

use crate::frame::args::{self, Arg};
use crate::frame::context::Context;
use crate::frame::operation_session::session_id;
use crate::frame::service::Service;
use quire_access::{Action, Target};
use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_session::{NO_USER, SessionId};

/// A user in the arguments of commands about sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserName {
    /// The name of the user.
    pub user: String,
    /// The database of the user.
    pub db: String,
}

impl UserName {
    /// Returns the number to which the user's sessions belong; `None` if there is no such user. An
    /// empty name means clients that have not logged in.
    fn owner(&self, service: &Service) -> Result<Option<[u8; 32]>> {
        match self.user.is_empty() && self.db.is_empty() {
            true => Ok(Some(NO_USER)),
            false => service.owner_of(&quire_access::UserName::new(&self.user, &self.db)),
        }
    }
}

impl Service {
    /// Stops the operations and closes the cursors of the sessions for which `which` returns true,
    /// except the operation `asking`. The sessions themselves stay.
    pub(crate) fn kill_sessions(&self, which: &dyn Fn(&SessionId) -> bool, asking: i64) {
        self.operations.kill_sessions(which, asking);
        self.cursors.kill_sessions(which);
        self.sessions.abort_transactions(which);
    }
}

/// Returns the error of a command that ends a transaction, sent without one.
fn outside_transaction(cx: &Context<'_>) -> Error {
    let text = format!("{} must be run within a transaction", cx.command.name);
    Error::new(ErrorCode::CommandFailed, text)
}

/// Records whether the end of a transaction reports a write concern that cannot be met: if it succeeds,
/// and if the transaction had ended before.
fn note_concern<T>(cx: &Context<'_>, ended: &Result<T>) {
    let reports = match ended {
        Ok(_) => true,
        Err(error) => error.code() == ErrorCode::NoSuchTransaction,
    };
    cx.writing.set(reports);
}

/// Returns the command's first field: an array of documents. Nulls are skipped.
fn elements<'a>(
    owner: &'static str,
    body: Doc<'a>,
) -> Result<impl Iterator<Item = Result<Doc<'a>>>> {
    let Some(first) = body.first() else { return Err(args::missing(owner, "")) };
    let arg = Arg::new(owner, first);
    if arg.is_null() {
        return Err(args::missing(owner, arg.name()));
    }
    documents(arg)
}

/// Returns the documents of an array. Nulls are skipped.
fn documents<'a>(arg: Arg<'a>) -> Result<impl Iterator<Item = Result<Doc<'a>>>> {
    let some = arg.array()?.iter().enumerate().filter(|(_, value)| !value.is_nullish());
    Ok(some.map(move |(at, value)| match value {
        Value::Document(doc) => Ok(doc),
        other => Err(arg.wrong_element(at, other, "object")),
    }))
}

/// Returns the sessions that the command's first field names; errors call one of them `element`. A
/// session without a user is the client's own.
///
/// # Errors
/// 13 Unauthorized for sessions of other users, unless the client may kill any session.
fn named_sessions(
    cx: &Context<'_>,
    owner: &'static str,
    element: &'static str,
    body: Doc<'_>,
) -> Result<Vec<SessionId>> {
    let own = cx.owner();
    let named = elements(owner, body)?.map(|doc| {
        let named = session_id(element, doc?)?;
        match named.user {
            NO_USER => return Ok(SessionId { user: own, ..named }),
            user if user == own => {}
            _ => cx.require(Target::Cluster, Action::KillAnySession)?,
        }
        Ok(named)
    });
    named.collect()
}

/// Reads a user from `{user, db}`.
fn user_name(owner: &'static str, doc: Doc<'_>) -> Result<UserName> {
    let (mut user, mut db) = (None, None);
    for arg in args::fields(owner, doc) {
        match arg.name() {
            "user" | "db" if arg.is_null() => {}
            "user" => user = Some(arg.string()?.to_owned()),
            "db" => db = Some(arg.string()?.to_owned()),
            _ => return Err(arg.unknown()),
        }
    }
    let user = user.ok_or_else(|| args::missing(owner, "user"))?;
    let db = db.ok_or_else(|| args::missing(owner, "db"))?;
    Ok(UserName { user, db })
}
