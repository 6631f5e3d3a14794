//! A trace: the statements of a while, one by one and in order, with hashes of their values. Pure
//! functions find in it what an application does between statements: `joins` (it looks up what
//! another statement returned), `copies` (it changes copies by hand), `repeats` (it runs the same
//! aggregation again).
//!
//! Equal values have equal hashes within one trace. The key of the hashes is never stored, so that
//! a trace says which values are equal and not what they are.

pub mod coding;
pub mod copies;
pub mod joins;
pub mod repeats;
#[cfg(test)]
mod tests;

pub use copies::{HandCopy, hand_copies};
pub use joins::{AppJoin, app_joins};
pub use repeats::{Repeat, repeats};

use crate::workload::Kind;
use quire_document::DocBuf;

/// How much of the values a trace has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// The whole commands, which can be replayed.
    Keep,
    /// Hashes of the values that statements asked with and that they returned.
    Hash,
    /// Only shapes and times.
    None,
}

/// What is known of a whole trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// When it began, in milliseconds since 1970.
    pub begins_ms: i64,
    /// How much of the values it has.
    pub values: Values,
}

/// A statement of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// When it began, in microseconds since the beginning of the trace.
    pub at_micros: u64,
    /// How long it took, in microseconds.
    pub micros: u64,
    /// The session, or the connection of a statement without one.
    pub session: u64,
    /// The name of the command.
    pub name: String,
    /// The collection, `database.collection`.
    pub namespace: String,
    /// What it does; `None` for a command that has no shape.
    pub kind: Option<Kind>,
    /// The shape; empty without one.
    pub shape: DocBuf,
    /// True if it failed.
    pub failed: bool,
    /// The documents that it returned.
    pub returned_docs: u64,
    /// The cursor that it opened; 0 for none.
    pub cursor: i64,
    /// The values with which its filter tests paths for equality.
    pub asked: Vec<PathHashes>,
    /// The values in the documents that it returned.
    pub returned: Vec<PathHashes>,
    /// The hash of the whole statement with its values; 0 without values.
    pub statement: u64,
    /// The whole command, if values are kept: its document sequences are part of it, and what only
    /// concerns the connection (`lsid`, `$clusterTime`) is not.
    pub command: Option<DocBuf>,
}

/// The hashes of the values at a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathHashes {
    /// The path, with dots.
    pub path: String,
    /// The hashes, in the order of the values, each once.
    pub hashes: Vec<i64>,
}

impl Values {
    /// Returns the name in options and files.
    pub fn name(self) -> &'static str {
        match self {
            Values::Keep => "keep",
            Values::Hash => "hash",
            Values::None => "none",
        }
    }

    /// Returns the value with this name.
    pub fn parse(name: &str) -> Option<Values> {
        [Values::Keep, Values::Hash, Values::None].into_iter().find(|one| one.name() == name)
    }
}

impl Entry {
    /// Returns the values that its filter asks with at a path.
    pub fn asked_at(&self, path: &str) -> Option<&PathHashes> {
        self.asked.iter().find(|asked| asked.path == path)
    }

    /// Returns true if its filter asks with this value at any path.
    pub fn asks(&self, hash: i64) -> bool {
        self.asked.iter().any(|asked| asked.hashes.contains(&hash))
    }

    /// Returns true if it reads documents.
    pub fn reads(&self) -> bool {
        self.kind.is_some_and(|kind| !kind.writes())
    }

    /// Returns true if it changes documents.
    pub fn writes(&self) -> bool {
        self.kind.is_some_and(Kind::writes)
    }
}
