//! A command in the making: its fields, the database it goes to, and the macro that writes one
//! setter for each of its options.

use crate::embedded::{Documents, Embedded};
use crate::error::{Error, Result};
use crate::reply::checked;
use bson::{Bson, Document, RawDocumentBuf};
use std::sync::Arc;
use std::time::Duration;

/// A command and where it goes.
#[derive(Clone)]
pub(crate) struct Command {
    pub(crate) embedded: Arc<Embedded>,
    pub(crate) db: String,
    body: Document,
}

impl Command {
    /// A command whose first field is `name`.
    pub(crate) fn new(
        embedded: &Arc<Embedded>,
        db: &str,
        name: &str,
        target: impl Into<Bson>,
    ) -> Command {
        let mut body = Document::new();
        body.insert(name, target);
        Command { embedded: Arc::clone(embedded), db: db.to_owned(), body }
    }

    /// A command that a caller wrote.
    pub(crate) fn from_document(embedded: &Arc<Embedded>, db: &str, body: Document) -> Command {
        Command { embedded: Arc::clone(embedded), db: db.to_owned(), body }
    }

    /// Sets a field.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Bson>) -> &mut Command {
        self.body.insert(name, value);
        self
    }

    /// A field.
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
        self.body.insert("$db", self.db);
        let body = self.body.to_vec().map_err(Error::serialization)?;
        checked(self.embedded.call(&body, documents)?)
    }
}

/// Writes one setter for each option: `name: Type => "field"`, with a conversion after `as`
/// where the type is no BSON value.
macro_rules! options {
    ($($(#[$doc:meta])* $name:ident: $kind:ty => $field:literal $(as $convert:path)?,)*) => { $(
        $(#[$doc])*
        pub fn $name(mut self, value: $kind) -> Self {
            $(let value = $convert(value);)?
            self.command.set($field, value);
            self
        }
    )* };
}
pub(crate) use options;

/// Whole milliseconds.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A number that is never negative.
pub(crate) fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
