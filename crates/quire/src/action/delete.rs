//! `delete_one` and `delete_many`.

use crate::Collection;
use crate::command::{Command, Statement};
use crate::error::{Error, Result};
use crate::reply::{Fields, needed};
use crate::results::DeleteResult;
use crate::setters::standard_options;
use bson::{Document, doc};

impl<T: Send + Sync> Collection<T> {
    /// Deletes the first matching document.
    pub fn delete_one(&self, query: Document) -> Delete {
        let statement = Statement(doc! { "q": query, "limit": 1 });
        Delete { command: self.command("delete"), statement }
    }

    /// Deletes every matching document.
    pub fn delete_many(&self, query: Document) -> Delete {
        let statement = Statement(doc! { "q": query, "limit": 0 });
        Delete { command: self.command("delete"), statement }
    }
}

/// Deletes documents; see [`Collection::delete_one`] and [`Collection::delete_many`].
#[must_use = "an action does nothing before `run`"]
pub struct Delete {
    command: Command,
    statement: Statement,
}

impl Delete {
    standard_options!(statement; collation, hint);
    standard_options!(comment, let_vars, session, write_concern);

    /// Deletes the documents.
    ///
    /// # Errors
    /// The errors of the command.
    pub fn run(mut self) -> Result<DeleteResult> {
        self.command.set("deletes", vec![self.statement.0]);
        let reply = self.command.run()?;
        Error::from_write_reply(&reply)?;
        Ok(DeleteResult { deleted_count: needed(reply.integer("n"), "n")? as u64 })
    }
}
