//! What was asked of a server in a span of time: a recorded workload, by the shape of statements.
//!
//! A recorder makes a [`Workload`] of what it has counted; the advice about indexes and schemas
//! reads it. It holds no literal of a statement unless somebody asked for samples. Read in this
//! order: `figures` (sums and histograms), `measures` (what is counted for a shape), `parts` (the
//! paths that a shape filters, sorts, returns and writes), `representative` (a statement of the
//! shape that can be run), `coding` (the document that a file or a reply carries).

pub mod coding;
pub mod figures;
pub mod measures;
pub mod parts;
pub mod representative;
#[cfg(test)]
mod tests;

pub use figures::{Figure, Histogram};
pub use measures::{Measures, PLANS_MAX, PlanUse};
pub use parts::{Filtered, Joined, Parts, Test, Written};

use quire_document::DocBuf;

/// Statements by shape, in a span of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// The beginning of the span, in milliseconds since 1970.
    pub begins_ms: i64,
    /// The end of the span.
    pub ends_ms: i64,
    /// What was counted, one element for each shape and cause.
    pub shapes: Vec<ShapeUse>,
    /// What was counted and has left, because more shapes came than are kept.
    pub forgotten: Forgotten,
}

/// How much has left a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// The number of times that a shape left.
    pub shapes: u64,
    /// The statements that had been counted for them.
    pub statements: u64,
}

/// The statements of one shape from one cause.
#[derive(Clone, Debug, PartialEq)]
pub struct ShapeUse {
    /// The collection, `database.collection`. For an aggregate without a collection
    /// `database.$cmd.aggregate`.
    pub namespace: String,
    /// What the statements do.
    pub kind: Kind,
    /// Whose statements they are.
    pub cause: Cause,
    /// The normal form: the structure with a type in place of each literal (docs/format.md,
    /// "Shapes").
    pub shape: DocBuf,
    /// Commands of the shape with their values, if somebody asked for them. Usually none.
    pub samples: Vec<DocBuf>,
    /// What was counted.
    pub measures: Measures,
}

/// What a statement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The command `find`.
    Find,
    /// The command `aggregate`.
    Aggregate,
    /// The command `count`.
    Count,
    /// The command `distinct`.
    Distinct,
    /// An `insert`; one statement for all its documents.
    Insert,
    /// A statement of an `update`, or of a `bulkWrite`.
    Update,
    /// A statement of a `delete`, or of a `bulkWrite`.
    Delete,
    /// The command `findAndModify`.
    FindAndModify,
}

/// Whose work a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// A client asked for it.
    Client,
    /// Documents of a TTL index expired.
    Ttl,
    /// The rule of a collection derives it from another write.
    Derived,
    /// Another job of the server.
    Job,
}

impl Kind {
    /// Every kind of statement.
    pub const ALL: [Kind; 8] = [
        Kind::Find,
        Kind::Aggregate,
        Kind::Count,
        Kind::Distinct,
        Kind::Insert,
        Kind::Update,
        Kind::Delete,
        Kind::FindAndModify,
    ];

    /// Returns the name of the command, which also stands in the shape.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Find => "find",
            Kind::Aggregate => "aggregate",
            Kind::Count => "count",
            Kind::Distinct => "distinct",
            Kind::Insert => "insert",
            Kind::Update => "update",
            Kind::Delete => "delete",
            Kind::FindAndModify => "findAndModify",
        }
    }

    /// Returns the kind with this name.
    pub fn parse(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns true if statements of the kind change documents.
    pub fn writes(self) -> bool {
        matches!(self, Kind::Insert | Kind::Update | Kind::Delete | Kind::FindAndModify)
    }
}

impl Cause {
    /// Every cause of statements.
    pub const ALL: [Cause; 4] = [Cause::Client, Cause::Ttl, Cause::Derived, Cause::Job];

    /// Returns the name of the cause in the encoding.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Client => "client",
            Cause::Ttl => "ttl",
            Cause::Derived => "derived",
            Cause::Job => "job",
        }
    }

    /// Returns the cause with this name.
    pub fn parse(name: &str) -> Option<Cause> {
        Cause::ALL.into_iter().find(|cause| cause.name() == name)
    }
}

impl ShapeUse {
    /// Returns the paths that the shape filters, sorts, returns and writes.
    pub fn parts(&self) -> Parts {
        parts::of(self.kind, self.shape.as_doc())
    }

    /// Returns a command of the shape that can be run: each type in the shape is replaced by one
    /// value of it. `None` for a write, whose shape does not say what it writes.
    pub fn representative(&self) -> Option<DocBuf> {
        representative::of(self.kind, self.shape.as_doc())
    }
}

impl Workload {
    /// Adds what another span has counted: shapes that both have become one.
    pub fn merge(&mut self, other: Workload) {
        let is_empty = self.shapes.is_empty() && self.ends_ms == 0;
        self.begins_ms =
            if is_empty { other.begins_ms } else { self.begins_ms.min(other.begins_ms) };
        self.ends_ms = self.ends_ms.max(other.ends_ms);
        self.forgotten.shapes += other.forgotten.shapes;
        self.forgotten.statements += other.forgotten.statements;
        let key = |used: &ShapeUse| (used.cause, used.shape.as_bytes().to_vec());
        let mut places: std::collections::HashMap<_, usize> =
            self.shapes.iter().enumerate().map(|(at, used)| (key(used), at)).collect();
        for used in other.shapes {
            let at = *places.entry(key(&used)).or_insert(self.shapes.len());
            match self.shapes.get_mut(at) {
                Some(known) => {
                    known.measures.merge(&used.measures);
                    known.samples.extend(used.samples);
                }
                None => self.shapes.push(used),
            }
        }
    }

    /// Returns the number of statements that were counted, also of those that have left.
    pub fn statements(&self) -> u64 {
        let counted: u64 = self.shapes.iter().map(|used| used.measures.count).sum();
        counted + self.forgotten.statements
    }
}
