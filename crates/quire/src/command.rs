//! A command in the making: its fields, the database it goes to, and the macro that writes one
//! setter for each of its options.

use crate::embedded::{Documents, Embedded};
use crate::error::{Error, Result};
use crate::reply::checked;
use crate::session_state::SessionState;
use bson::{Bson, Document, RawDocumentBuf};
use std::sync::Arc;

/// A command and where it goes.
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

    /// Returns a command that a caller wrote.
    pub(crate) fn from_document(embedded: &Arc<Embedded>, db: &str, body: Document) -> Command {
        Command { embedded: Arc::clone(embedded), db: db.to_owned(), body, session: None }
    }

    /// Sets a field.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Bson>) -> &mut Command {
        self.body.insert(name, value);
        self
    }

    /// Runs it in a session.
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

    /// Runs it.
    ///
    /// # Errors
    /// What the reply tells with `ok: 0`; write errors are in the reply.
    pub(crate) fn run(self) -> Result<RawDocumentBuf> {
        self.run_with(None)
    }

    /// Runs it with the documents of one of its arguments.
    pub(crate) fn run_with(mut self, documents: Option<Documents<'_>>) -> Result<RawDocumentBuf> {
        if let Some(session) = &self.session {
            session.prepare(&mut self.body)?;
        }
        self.send(documents)
    }

    /// Runs it as it is, in its session, with fields that it has already.
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

/// The one statement of a command: most of its options are its fields.
pub(crate) struct Statement(pub(crate) Document);

impl Statement {
    /// Sets a field.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Bson>) {
        self.0.insert(name, value);
    }
}

/// Writes one setter for each option: `name: Type => "field"`, with a conversion after `as`
/// where the type is no BSON value. They set fields of the command; `statement;` in front says
/// that they are fields of its one statement.
macro_rules! options {
    ($target:ident; $($(#[$doc:meta])* $name:ident: $kind:ty => $field:literal $(as $convert:path)?,)*) => { $(
        $(#[$doc])*
        pub fn $name(mut self, value: $kind) -> Self {
            $(let value = $convert(value);)?
            self.$target.set($field, value);
            self
        }
    )* };
    ($($options:tt)*) => { $crate::command::options! { command; $($options)* } };
}
pub(crate) use options;

/// Writes the setters of options that many commands have, by their names.
macro_rules! standard_options {
    ($($name:ident),*) => { $($crate::command::standard_option!($name, command);)* };
    ($target:ident; $($name:ident),*) => { $($crate::command::standard_option!($name, $target);)* };
}
pub(crate) use standard_options;

/// The setter of one such option.
macro_rules! standard_option {
    (bypass_document_validation, $target:ident) => {
        $crate::command::options! { $target;
            /// What is written does not ask the collection's validator.
            bypass_document_validation: bool => "bypassDocumentValidation",
        }
    };
    (collation, $target:ident) => {
        $crate::command::options! { $target;
            /// How strings compare.
            collation: bson::Document => "collation",
        }
    };
    (comment, $target:ident) => {
        $crate::command::options! { $target;
            /// Shown in the log and in currentOp.
            comment: impl Into<bson::Bson> => "comment",
        }
    };
    (hint, $target:ident) => {
        $crate::command::options! { $target;
            /// The index to use.
            hint: $crate::options::Hint => "hint",
        }
    };
    (let_vars, $target:ident) => {
        $crate::command::options! { $target;
            /// Variables for expressions.
            let_vars: bson::Document => "let",
        }
    };
    (max_time, $target:ident) => {
        $crate::command::options! { $target;
            /// The time after which the server ends the operation.
            max_time: std::time::Duration => "maxTimeMS" as $crate::options::millis,
        }
    };
    (read_concern, $target:ident) => {
        $crate::command::options! { $target;
            /// Which writes it must see.
            read_concern: $crate::options::ReadConcern => "readConcern",
        }
    };
    (write_concern, $target:ident) => {
        $crate::command::options! { $target;
            /// How durable what it writes must be.
            write_concern: $crate::options::WriteConcern => "writeConcern",
        }
    };
    (session, $target:ident) => {
        /// Runs it in a session.
        pub fn session(mut self, session: &$crate::ClientSession) -> Self {
            self.$target.set_session(&session.state);
            self
        }
    };
}
pub(crate) use standard_option;

/// Returns a number that is never negative.
pub(crate) fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
