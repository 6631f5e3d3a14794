//! A command under construction: its fields and its database.

use crate::embedded::{Documents, Embedded};
use crate::error::{Error, Result};
use crate::reply::checked;
use crate::session_state::SessionState;
use bson::{Bson, Document, RawDocumentBuf};
use std::sync::Arc;

/// A command and its database.
#[derive(Clone)]
pub(crate) struct Command {
    pub(crate) embedded: Arc<Embedded>,
    pub(crate) db: String,
    body: Document,
    pub(crate) session: Option<Arc<SessionState>>,
}

impl Command {
    /// Returns a command whose first field is `name`.
    pub(crate) fn new(
        embedded: &Arc<Embedded>,
        db: &str,
        name: &str,
        target: impl Into<Bson>,
    ) -> Command {
        let mut body = Document::new();
        body.insert(name, target);
        Command { embedded: Arc::clone(embedded), db: db.to_owned(), body, session: None }
    }

    /// Returns a command with the document of a caller.
    pub(crate) fn from_document(embedded: &Arc<Embedded>, db: &str, body: Document) -> Command {
        Command { embedded: Arc::clone(embedded), db: db.to_owned(), body, session: None }
    }

    /// Sets a field.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Bson>) -> &mut Command {
        self.body.insert(name, value);
        self
    }

    /// Makes it run in a session.
    pub(crate) fn set_session(&mut self, session: &Arc<SessionState>) {
        self.session = Some(Arc::clone(session));
    }

    /// Returns the command's fields.
    pub(crate) fn body_mut(&mut self) -> &mut Document {
        &mut self.body
    }

    /// Returns the value of a field.
    pub(crate) fn get(&self, name: &str) -> Option<&Bson> {
        self.body.get(name)
    }

    /// Sets a field of `cursor`.
    pub(crate) fn set_cursor(&mut self, name: &str, value: impl Into<Bson>) {
        let cursor = self.body.entry("cursor").or_insert_with(|| Document::new().into());
        if let Bson::Document(cursor) = cursor {
            cursor.insert(name, value);
        }
    }

    /// Runs the command.
    ///
    /// # Errors
    /// The error of a reply with `ok: 0`; write errors are in the returned reply.
    pub(crate) fn run(self) -> Result<RawDocumentBuf> {
        self.run_with(None)
    }

    /// Runs it, with the documents of one of its arguments.
    pub(crate) fn run_with(mut self, documents: Option<Documents<'_>>) -> Result<RawDocumentBuf> {
        if let Some(session) = &self.session {
            session.prepare(&mut self.body)?;
        }
        self.send(documents)
    }

    /// Runs it without adding fields, in its session.
    pub(crate) fn send(mut self, documents: Option<Documents<'_>>) -> Result<RawDocumentBuf> {
        self.body.insert("$db", self.db);
        let body = self.body.to_vec().map_err(Error::serialization)?;
        let reply = checked(self.embedded.call(&body, documents)?)?;
        if let Some(session) = &self.session {
            session.note(&reply);
        }
        Ok(reply)
    }
}

/// The only statement of a command, whose fields are most of the options.
pub(crate) struct Statement(pub(crate) Document);

impl Statement {
    /// Sets a field.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Bson>) {
        self.0.insert(name, value);
    }
}

/// Converts a number that is never negative.
pub(crate) fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
