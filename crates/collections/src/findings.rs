//! The findings of checks.

use crate::RecordId;

/// One problem that a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The namespace, or the part of the catalog.
    pub place: String,
    /// A description of the problem.
    pub problem: String,
    /// The kind of the problem, for programs.
    pub what: Problem,
    /// True if the repair corrected it; false without repair.
    pub repaired: bool,
}

/// The kinds of problems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// A record that is not a valid document.
    InvalidDocument(RecordId),
    /// A document lacks an entry in an index.
    MissingEntry {
        /// The name of the index.
        index: String,
        /// The record of the document.
        record: RecordId,
    },
    /// An index has an entry that no document has.
    SurplusEntry {
        /// The name of the index.
        index: String,
        /// The document that the entry points to, if that can be read.
        record: Option<RecordId>,
    },
    /// Another problem of the index with this name.
    Index(String),
    /// Any other problem.
    Other,
}

/// What a check repairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Repair {
    /// Repairs nothing and only reports.
    #[default]
    Nothing,
    /// Repairs the facts about index entries: multikey paths and long keys.
    Facts,
    /// Repairs the facts, missing and surplus entries, and the counters.
    All,
}

/// The result of the check of one collection.
#[derive(Debug, Clone, Default)]
pub struct CollectionCheck {
    /// The number of documents that were read.
    pub documents: u64,
    /// The number of entries read, for each index by name.
    pub entries: Vec<(String, u64)>,
    /// True if the counters were compared; that is impossible while other clients write all the
    /// time.
    pub counted: bool,
    /// The number of documents that violate the BSON specification in points that the server
    /// tolerates.
    pub violations: u64,
    /// The first of these documents and its violation.
    pub first_violation: Option<String>,
    /// The number of documents that do not comply with the collection's validator.
    pub noncompliant: u64,
    /// The first of these documents.
    pub first_noncompliant: Option<RecordId>,
    /// The indexes of which a repair removed facts that no document needs any more, such as
    /// multikey paths.
    pub narrowed: Vec<String>,
    /// The problems that were found.
    pub findings: Vec<Finding>,
}

impl CollectionCheck {
    /// Returns the problems for which `which` returns true.
    pub fn problems(&self, which: impl Fn(&Problem) -> bool) -> impl Iterator<Item = &Problem> {
        self.findings.iter().map(|finding| &finding.what).filter(move |problem| which(problem))
    }

    /// Returns true if every problem was repaired.
    pub fn is_sound_now(&self) -> bool {
        self.findings.iter().all(|finding| finding.repaired)
    }

    /// Returns true if a problem was repaired.
    pub fn is_repaired(&self) -> bool {
        !self.narrowed.is_empty() || self.findings.iter().any(|finding| finding.repaired)
    }

    /// Returns true if every problem of an index was repaired.
    pub fn is_sound(&self, name: &str) -> bool {
        let about = |problem: &Problem| match problem {
            Problem::MissingEntry { index, .. }
            | Problem::SurplusEntry { index, .. }
            | Problem::Index(index) => index == name,
            Problem::InvalidDocument(_) | Problem::Other => false,
        };
        !self.findings.iter().any(|finding| !finding.repaired && about(&finding.what))
    }
}

/// The result of a check of all collections.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The number of collections that were read.
    pub collections: u64,
    /// The number of documents that were read.
    pub documents: u64,
    /// The number of index entries that were read.
    pub entries: u64,
    /// The problems in the order in which they were found.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Returns true if no problem was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// Returns true if every problem was repaired.
    pub fn is_repaired(&self) -> bool {
        self.findings.iter().all(|finding| finding.repaired)
    }
}
