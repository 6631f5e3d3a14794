//! `run_command` and `run_cursor_command`: run any command of the server.

use crate::command::Command;
use crate::error::{Error, Result};
use crate::options::millis;
use crate::setters::standard_options;
use crate::{Cursor, Database};
use bson::Document;
use std::time::Duration;

impl Database {
    /// Runs any command in this database and returns its reply.
    pub fn run_command(&self, command: Document) -> RunCommand {
        RunCommand { command: Command::from_document(&self.embedded, self.name(), command) }
    }

    /// Runs any command whose reply is a cursor.
    pub fn run_cursor_command(&self, command: Document) -> RunCursorCommand {
        let command = Command::from_document(&self.embedded, self.name(), command);
        RunCursorCommand { command, batch_size: None, await_ms: None }
    }
}

/// Runs a command; see [`Database::run_command`].
#[must_use = "an action does nothing before `run`"]
pub struct RunCommand {
    command: Command,
}

impl RunCommand {
    standard_options!(session);

    /// Runs the command.
    ///
    /// # Errors
    /// The error of a reply with `ok: 0`. Write errors are in the returned reply.
    pub fn run(self) -> Result<Document> {
        Document::try_from(self.command.run()?).map_err(Error::deserialization)
    }
}

/// Runs a command whose reply is a cursor; see [`Database::run_cursor_command`].
#[must_use = "an action does nothing before `run`"]
pub struct RunCursorCommand {
    command: Command,
    batch_size: Option<u32>,
    await_ms: Option<i64>,
}

impl RunCursorCommand {
    standard_options!(session);

    /// Sets the number of documents in the batches after the first.
    pub fn batch_size(mut self, size: u32) -> Self {
        self.batch_size = Some(size);
        self
    }

    /// Sets how long a tailable cursor waits for a new document.
    pub fn max_time(mut self, time: Duration) -> Self {
        self.await_ms = Some(millis(time));
        self
    }

    /// Runs the command.
    ///
    /// # Errors
    /// The errors of the command.
    pub fn run(self) -> Result<Cursor<Document>> {
        Cursor::open(self.command, self.batch_size, self.await_ms)
    }
}
