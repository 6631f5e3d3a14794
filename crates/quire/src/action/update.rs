//! `update_one`, `update_many` and `replace_one`.

use crate::Collection;
use crate::command::{Command, Statement};
use crate::error::{Error, Result};
use crate::options::UpdateModifications;
use crate::prepare;
use crate::reply::{Fields, needed};
use crate::results::UpdateResult;
use crate::setters::{options, standard_options};
use bson::{Bson, Document, doc};
use serde::Serialize;
use std::borrow::Borrow;

impl<T: Send + Sync> Collection<T> {
    /// Changes the first matching document.
    pub fn update_one(&self, query: Document, update: impl Into<UpdateModifications>) -> Update {
        Update::new(self.command("update"), query, Ok(update.into().into()), false)
    }

    /// Changes every matching document.
    pub fn update_many(&self, query: Document, update: impl Into<UpdateModifications>) -> Update {
        Update::new(self.command("update"), query, Ok(update.into().into()), true)
    }

    /// Replaces the first matching document; the `_id` stays the same.
    pub fn replace_one(&self, query: Document, replacement: impl Borrow<T>) -> ReplaceOne
    where
        T: Serialize,
    {
        let replacement = prepare::replacement(replacement.borrow());
        Update::new(self.command("update"), query, replacement, false)
    }
}

/// Replaces a document; see [`Collection::replace_one`].
pub type ReplaceOne = Update;

/// Changes documents; see [`Collection::update_one`] and [`Collection::update_many`].
#[must_use = "an action does nothing before `run`"]
pub struct Update {
    command: Command,
    statement: Statement,
    update: Result<Bson>,
}

impl Update {
    fn new(command: Command, query: Document, update: Result<Bson>, multi: bool) -> Update {
        Update { command, statement: Statement(doc! { "q": query, "multi": multi }), update }
    }

    options! { statement;
        /// The array elements that `$[name]` selects.
        array_filters: Vec<Document> => "arrayFilters",
        /// The order that decides which matching document is the first.
        sort: Document => "sort",
        /// True to insert a document if none matches.
        upsert: bool => "upsert",
    }

    standard_options!(statement; collation, hint);
    standard_options!(bypass_document_validation, comment, let_vars, session, write_concern);

    /// Changes the documents.
    ///
    /// # Errors
    /// The replacement cannot be serialized to BSON; the errors of the command.
    pub fn run(mut self) -> Result<UpdateResult> {
        self.statement.set("u", self.update?);
        self.command.set("updates", vec![self.statement.0]);
        let reply = self.command.run()?;
        Error::from_write_reply(&reply)?;
        let matched = needed(reply.integer("n"), "n")? as u64;
        let modified_count = needed(reply.integer("nModified"), "nModified")? as u64;
        let upserted_id = match reply.array("upserted").map(|upserted| upserted.get_document(0)) {
            Some(Ok(upserted)) => upserted.value("_id")?,
            _ => None,
        };
        let matched_count = if upserted_id.is_some() { matched.saturating_sub(1) } else { matched };
        Ok(UpdateResult { matched_count, modified_count, upserted_id })
    }
}
