//! Checks that a client has the privileges that its command needs.
//!
//! Where access control is off, each check is one test of a flag.

use crate::frame::account::shown_body;
use crate::frame::accounts::Identity;
use crate::frame::args::unambiguous;
use crate::frame::command::Kind;
use crate::frame::context::Context;
use quire_access::{Action, Target};
use quire_catalog::{Namespace, debug_doc};
use quire_document::{Doc, Value};
use quire_error::{Error, ErrorClass, ErrorCode, Result};
use quire_mql::stage::find_stage;
use quire_session::{NeededRight, Session};
use std::sync::{Arc, MutexGuard, TryLockError};
use std::time::Duration;

/// The interval at which a client that would create the first user looks whether another one still
/// does.
const FIRST_USER_LOOK: Duration = Duration::from_millis(5);

/// The privileges that a command requires.
#[derive(Clone, Copy)]
pub enum Requires {
    /// None: the command runs before a login too.
    Nothing,
    /// The client has logged in.
    Login,
    /// The client has logged in and may do these actions on the server.
    Cluster(&'static [Action]),
    /// The client has logged in and may do these actions on the command's database.
    Database(&'static [Action]),
    /// The client has logged in and may do these actions on the collection that the command's first field names.
    Collection(&'static [Action]),
    /// A login, and the privileges that the function determines from the arguments.
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

    /// Fails unless the client may still run the command that opened a cursor. A cursor of a write
    /// needs no rights: it holds the replies of statements that were allowed.
    ///
    /// # Errors
    /// 13 Unauthorized.
    pub(crate) fn authorize_cursor(&self, opened_by: Doc<'_>) -> Result<()> {
        let name = opened_by.first().map_or("", |first| first.key());
        match self.service.commands.find(name) {
            Some(command) if command.kind == Kind::Write => Ok(()),
            Some(command) => self.authorize(self.service.commands.requires(command), opened_by),
            None if self.service.access.enforced => Err(self.unauthorized()),
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
        if !self.may(target, action) {
            return Err(self.unauthorized());
        }
        if self.service.access.enforced && self.in_transaction() {
            self.note_right(target, action);
        }
        Ok(())
    }

    /// Notes a right that the command needs and that the commit of its transaction checks again.
    fn note_right(&self, target: Target<'_>, action: Action) {
        let (db, collection) = match target {
            // No command on the server as a whole runs in a transaction.
            Target::Cluster => return,
            Target::Database(db) => (db, None),
            Target::Collection(db, collection) => (db, Some(collection.to_owned())),
        };
        let right = NeededRight { db: db.to_owned(), collection, action };
        let mut rights = self.rights.borrow_mut();
        if !rights.contains(&right) {
            rights.push(right);
        }
    }

    /// Fails unless the client still has the rights that the statements of its open transaction
    /// needed.
    ///
    /// # Errors
    /// 13 Unauthorized.
    pub(crate) fn authorize_commit(&self, session: &Session, number: i64) -> Result<()> {
        if !self.service.access.enforced {
            return Ok(());
        }
        let has = |right: &NeededRight| {
            let target = match &right.collection {
                Some(collection) => Target::Collection(&right.db, collection),
                None => Target::Database(&right.db),
            };
            self.may(target, right.action)
        };
        match session.transaction_rights(number).iter().all(has) {
            true => Ok(()),
            false => Err(self.unauthorized()),
        }
    }

    /// Returns an error of a write to `namespace`. Removes the values of documents from its text
    /// and details unless the client may read the collection.
    pub(crate) fn without_values(&self, namespace: &Namespace, error: Error) -> Error {
        if self.may_read(namespace) { error } else { without_values(error) }
    }

    /// Returns true if the client may read the collection.
    pub(crate) fn may_read(&self, namespace: &Namespace) -> bool {
        self.may(Target::Collection(namespace.db(), namespace.collection()), Action::Find)
    }

    /// Returns an error of `command`. Removes the values of documents of the collection that its
    /// pipeline writes to, unless the client may read that collection.
    pub(crate) fn without_values_of_target(&self, command: Doc<'_>, error: Error) -> Error {
        let stages = command.get("pipeline").and_then(|stages| stages.as_array());
        let last = stages.and_then(|stages| stages.iter().last());
        let Some(last) = last.and_then(|last| last.as_document()?.first()) else { return error };
        let Some(row) = find_stage(last.key()).filter(|row| row.facts.writes) else { return error };
        let fields = last.value().as_document().unwrap_or_default();
        match row.facts.names.of(last.value(), fields).map(|named| self.collection_of(named)) {
            Some(Ok(target)) if self.may(target, Action::Find) => error,
            _ => without_values(error),
        }
    }

    /// Returns the collection that a stage names: `"name"` or `{db, coll}`.
    ///
    /// # Errors
    /// Those of [`unambiguous`].
    pub(crate) fn collection_of<'a>(&'a self, named: Value<'a>) -> Result<Target<'a>> {
        Ok(match named {
            Value::String(collection) => Target::Collection(self.db, collection),
            Value::Document(_) => {
                let doc = unambiguous(named)?;
                let text = |name: &str| doc.get(name).and_then(|value| value.as_str());
                Target::Collection(text("db").unwrap_or(self.db), text("coll").unwrap_or_default())
            }
            _ => Target::Database(self.db),
        })
    }

    /// Returns the error of a command whose client lacks a privilege.
    pub(crate) fn unauthorized(&self) -> Error {
        let shown = debug_doc(shown_body(self.command.secrets, self.body).as_doc());
        let text = format!("not authorized on {} to execute command {shown}", self.db);
        Error::new(ErrorCode::Unauthorized, text)
    }

    /// Returns the logged-in user.
    pub(crate) fn identity(&self) -> Option<&Arc<Identity>> {
        self.connection.identity.as_ref()
    }

    /// Returns the number to which the client's sessions and cursors belong.
    pub(crate) fn owner(&self) -> [u8; 32] {
        self.identity().map_or(quire_session::NO_USER, |identity| identity.owner)
    }

    /// Returns the collection that the command's first field names, or its database.
    pub(crate) fn named_target<'a>(&'a self, body: Doc<'a>) -> Target<'a> {
        match body.first().and_then(|first| first.value().as_str()) {
            Some(collection) => Target::Collection(self.db, collection),
            None => Target::Database(self.db),
        }
    }

    /// Returns true if the command creates the first user, or a role for it, the client is on this
    /// machine and no user is stored. (MongoDB manual, "Localhost Exception".)
    ///
    /// Another client may create a user after this check: [`alone_as_first_user`]
    /// (Self::alone_as_first_user) checks again.
    fn is_first_user(&self) -> Result<bool> {
        let makes_one = matches!(self.command.name, "createUser" | "createRole");
        if !makes_one || self.db != "admin" || self.connection.info.is_remote() {
            return Ok(false);
        }
        Ok(!self.service.has_users()?)
    }

    /// Lets one client at a time use the exception for the first user, from its check until its
    /// commit: of several clients that create a user at once, one succeeds. Returns `None` at once
    /// for clients that have logged in and on servers without access control.
    ///
    /// # Errors
    /// 13 Unauthorized if there is a user by now; the error of an interrupted wait.
    pub(crate) fn alone_as_first_user(&self) -> Result<Option<MutexGuard<'_, ()>>> {
        if !self.service.access.enforced || self.connection.identity.is_some() {
            return Ok(None);
        }
        let alone = loop {
            match self.service.access.first_user.try_lock() {
                Ok(alone) => break alone,
                Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => self.pause(FIRST_USER_LOOK)?,
            }
        };
        match self.is_first_user()? {
            true => Ok(Some(alone)),
            false => Err(needs_login(self.command.name)),
        }
    }
}

/// Returns the error with its code, without the values of documents in its text and details.
pub(crate) fn without_values(error: Error) -> Error {
    let code = error.code();
    let is_of_server = [ErrorClass::Interruption, ErrorClass::RetriableError]
        .into_iter()
        .any(|class| code.is_a(class));
    let is_plain = matches!(
        code,
        ErrorCode::WriteConflict
            | ErrorCode::SnapshotTooOld
            | ErrorCode::CommandNotSupported
            | ErrorCode::Unauthorized
    );
    if is_of_server || is_plain {
        return error;
    }
    let text = match code {
        ErrorCode::DuplicateKey => error.message().split(" dup key: ").next().unwrap_or_default(),
        ErrorCode::CannotConvertIndexToUnique => error.message(),
        _ => "the text of this error may show documents, and this user may not read the collection",
    };
    Error::new(code, text)
}

fn needs_login(command: &str) -> Error {
    Error::new(ErrorCode::Unauthorized, format!("Command {command} requires authentication"))
}
