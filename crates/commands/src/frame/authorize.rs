//! What a command needs of who runs it, and whether that is given.
//!
//! Nothing here costs more than one test where access control is off.

use crate::frame::accounts::Identity;
use crate::frame::command::Kind;
use crate::frame::context::Context;
use quire_access::{Action, Target};
use quire_document::Doc;
use quire_error::{Error, ErrorCode, Result};
use std::sync::Arc;

/// What a command needs.
#[derive(Clone, Copy)]
pub enum Requires {
    /// Nothing: the command runs before a login too.
    Nothing,
    /// The client has logged in.
    Login,
    /// The client has logged in and may do these actions on the server.
    Cluster(&'static [Action]),
    /// The client has logged in and may do these actions on the command's database.
    Database(&'static [Action]),
    /// The client has logged in and may do these actions on the collection that the command's first field names.
    Collection(&'static [Action]),
    /// A login and what the function finds out from the arguments.
    Arguments(fn(&Context<'_>, Doc<'_>) -> Result<()>),
}

impl Context<'_> {
    /// Fails unless the client may run its command.
    ///
    /// # Errors
    /// 13 Unauthorized.
    pub(crate) fn authorize(&self, requires: Requires, body: Doc<'_>) -> Result<()> {
        if !self.service.access.enforced || matches!(requires, Requires::Nothing) {
            return Ok(());
        }
        if self.connection.identity.is_none() {
            return match self.is_first_user()? {
                true => Ok(()),
                false => Err(needs_login(self.command.name)),
            };
        }
        let all = |target, actions: &[Action]| {
            actions.iter().try_for_each(|action| self.require(target, *action))
        };
        match requires {
            Requires::Nothing | Requires::Login => Ok(()),
            Requires::Cluster(actions) => all(Target::Cluster, actions),
            Requires::Database(actions) => all(Target::Database(self.db), actions),
            Requires::Collection(actions) => all(self.named_target(body), actions),
            Requires::Arguments(check) => check(self, body),
        }
    }

    /// Fails unless the client still may run the command that opened a cursor. A cursor of a write holds
    /// the replies of its own statements, which stay its client's.
    ///
    /// # Errors
    /// 13 Unauthorized.
    pub(crate) fn authorize_cursor(&self, opened_by: Doc<'_>) -> Result<()> {
        let name = opened_by.first().map_or("", |first| first.key());
        match self.service.commands.find(name).filter(|command| command.kind != Kind::Write) {
            Some(command) => self.authorize(self.service.commands.requires(command), opened_by),
            None => Ok(()),
        }
    }

    /// Returns true if the client has the privilege for `action` on `target`, or access control is off.
    pub(crate) fn may(&self, target: Target<'_>, action: Action) -> bool {
        if !self.service.access.enforced {
            return true;
        }
        let identity = self.connection.identity.as_ref();
        identity.is_some_and(|identity| identity.privileges().allow(target, action))
    }

    /// Fails unless the client has the privilege for `action` on `target`.
    ///
    /// # Errors
    /// 13 Unauthorized.
    pub(crate) fn require(&self, target: Target<'_>, action: Action) -> Result<()> {
        match self.may(target, action) {
            true => Ok(()),
            false => Err(self.unauthorized()),
        }
    }

    /// Returns the error of a command whose client lacks a privilege.
    pub(crate) fn unauthorized(&self) -> Error {
        let text =
            format!("not authorized on {} to execute command {}", self.db, self.command.name);
        Error::new(ErrorCode::Unauthorized, text)
    }

    /// Returns who is logged in.
    pub(crate) fn identity(&self) -> Option<&Arc<Identity>> {
        self.connection.identity.as_ref()
    }

    /// Returns the digest of the user whose sessions and cursors are the client's own.
    pub(crate) fn user_digest(&self) -> [u8; 32] {
        self.identity().map_or(quire_session::NOBODY, |identity| identity.digest)
    }

    /// Returns the collection that the command's first field names, or its database.
    pub(crate) fn named_target<'a>(&'a self, body: Doc<'a>) -> Target<'a> {
        match body.first().and_then(|first| first.value().as_str()) {
            Some(collection) => Target::Collection(self.db, collection),
            None => Target::Database(self.db),
        }
    }

    /// While no user is stored, a client of this machine may make the first one, or a role for it.
    /// (MongoDB manual, "Localhost Exception".)
    fn is_first_user(&self) -> Result<bool> {
        let makes_one = matches!(self.command.name, "createUser" | "createRole");
        if !makes_one || self.db != "admin" || self.connection.info.is_remote() {
            return Ok(false);
        }
        Ok(!self.service.has_users()?)
    }
}

fn needs_login(command: &str) -> Error {
    Error::new(ErrorCode::Unauthorized, format!("Command {command} requires authentication"))
}
