//! What a command is to the server: its row in the registry.

use crate::frame::context::Context;
use foldhash::fast::RandomState;
use quire_document::{Doc, DocWriter};
use quire_error::Result;
use std::collections::HashMap;

/// Runs a command: reads the body, appends the reply's fields (without `ok`).
pub type Run = fn(&mut Context<'_>, Doc<'_>, &mut DocWriter<'_>) -> Result<()>;

/// What a command does, as `serverStatus` counts latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads documents.
    Read,
    /// Writes documents or the catalog; takes a write concern.
    Write,
    /// Anything else.
    Other,
}

/// One command.
pub struct Command {
    /// The name in MongoDB's spelling.
    pub name: &'static str,
    /// Other spellings.
    pub aliases: &'static [&'static str],
    /// One sentence.
    pub summary: &'static str,
    /// What it does.
    pub kind: Kind,
    /// Runs against `admin` only.
    pub admin_only: bool,
    /// Is part of Stable API version 1.
    pub in_api_v1: bool,
    /// Fields that `apiStrict` refuses.
    pub outside_api_v1: &'static [&'static str],
    /// Takes `readConcern`.
    pub takes_read_concern: bool,
    /// Exists only where `enableTestCommands` is on.
    pub test_only: bool,
    /// Runs it; `None` for a command of MongoDB that is not built here yet.
    pub run: Option<Run>,
}

impl Command {
    pub(crate) const fn new(
        name: &'static str,
        kind: Kind,
        run: Run,
        summary: &'static str,
    ) -> Self {
        Command {
            name,
            aliases: &[],
            summary,
            kind,
            admin_only: false,
            in_api_v1: false,
            outside_api_v1: &[],
            takes_read_concern: false,
            test_only: false,
            run: Some(run),
        }
    }

    pub(crate) const fn missing(name: &'static str, summary: &'static str) -> Self {
        Command {
            name,
            aliases: &[],
            summary,
            kind: Kind::Other,
            admin_only: false,
            in_api_v1: false,
            outside_api_v1: &[],
            takes_read_concern: false,
            test_only: false,
            run: None,
        }
    }

    pub(crate) const fn admin(mut self) -> Self {
        self.admin_only = true;
        self
    }

    pub(crate) const fn for_tests(mut self) -> Self {
        self.test_only = true;
        self
    }

    pub(crate) const fn v1(mut self) -> Self {
        self.in_api_v1 = true;
        self
    }

    pub(crate) const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    pub(crate) const fn strict_refuses(mut self, fields: &'static [&'static str]) -> Self {
        self.outside_api_v1 = fields;
        self
    }

    pub(crate) const fn read_concern(mut self) -> Self {
        self.takes_read_concern = true;
        self
    }
}

/// The table of commands with an index by name and alias.
pub struct Commands {
    rows: &'static [Command],
    by_name: HashMap<&'static str, &'static Command, RandomState>,
}

impl Commands {
    /// Indexes `rows` by their names and aliases.
    pub(crate) fn new(rows: &'static [Command]) -> Self {
        let names =
            |row: &'static Command| std::iter::once(row.name).chain(row.aliases.iter().copied());
        let by_name = rows.iter().flat_map(|row| names(row).map(move |name| (name, row))).collect();
        Commands { rows, by_name }
    }

    /// Returns all rows in the order of the manual's chapters.
    pub fn rows(&self) -> &'static [Command] {
        self.rows
    }

    /// Returns the row of the command with this name or alias.
    pub fn find(&self, name: &str) -> Option<&'static Command> {
        self.by_name.get(name).copied()
    }
}
