//! `delete_one` and `delete_many`.

use crate::Collection;
use crate::command::Command;
use crate::error::{Error, Result};
use crate::options::{Hint, WriteConcern};
use crate::reply::{Fields, needed};
use crate::results::DeleteResult;
use bson::{Bson, Document, doc};

impl<T: Send + Sync> Collection<T> {
    /// Removes the first document that matches.
    pub fn delete_one(&self, query: Document) -> Delete {
        Delete { command: self.command("delete"), statement: doc! { "q": query, "limit": 1 } }
    }

    /// Removes every document that matches.
    pub fn delete_many(&self, query: Document) -> Delete {
        Delete { command: self.command("delete"), statement: doc! { "q": query, "limit": 0 } }
    }
}

/// Removes documents; see [`Collection::delete_one`] and [`Collection::delete_many`].
#[must_use = "an action does nothing before `run`"]
pub struct Delete {
    command: Command,
    statement: Document,
}

impl Delete {
    /// How strings compare.
    pub fn collation(mut self, value: Document) -> Self {
        self.statement.insert("collation", value);
        self
    }

    /// Shown in the log and in currentOp.
    pub fn comment(mut self, value: impl Into<Bson>) -> Self {
        self.command.set("comment", value);
        self
    }

    /// The index to use.
    pub fn hint(mut self, value: Hint) -> Self {
        self.statement.insert("hint", value);
        self
    }

    /// Variables for expressions.
    pub fn let_vars(mut self, value: Document) -> Self {
        self.command.set("let", value);
        self
    }

    /// How durable it must be.
    pub fn write_concern(mut self, value: WriteConcern) -> Self {
        self.command.set("writeConcern", value);
        self
    }

    /// Removes them.
    ///
    /// # Errors
    /// What the command answers.
    pub fn run(mut self) -> Result<DeleteResult> {
        self.command.set("deletes", vec![self.statement]);
        let reply = self.command.run()?;
        Error::from_write_reply(&reply)?;
        Ok(DeleteResult { deleted_count: needed(reply.integer("n"), "n")? as u64 })
    }
}
