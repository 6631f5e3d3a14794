//! What checks find.

use crate::RecordId;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The namespace, or the part of the catalog.
    pub place: String,
    /// What is wrong there.
    pub problem: String,
    /// The same for programs.
    pub what: Problem,
    /// True if the repair mended it; false without repair.
    pub mended: bool,
}

/// What is wrong, by kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// A record that is no valid document.
    InvalidDocument(RecordId),
    /// A document lacks an entry in an index.
    MissingEntry {
        /// The name of the index.
        index: String,
        /// The record of the document.
        record: RecordId,
    },
    /// An index holds an entry that no document has.
    SurplusEntry {
        /// The name of the index.
        index: String,
        /// The document that the entry points to, where that can be read.
        record: Option<RecordId>,
    },
    /// Something else about an index.
    Index(String),
    /// A problem that has no kind of its own.
    Other,
}

/// What a check mends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Repair {
    /// Mends nothing and only reports.
    #[default]
    Nothing,
    /// What an index knows of its entries: multikey paths and long keys.
    Facts,
    /// That, missing and surplus entries, and the counters.
    All,
}

/// What a check of one collection found.
#[derive(Debug, Clone, Default)]
pub struct CollectionCheck {
    /// Documents that were read.
    pub documents: u64,
    /// Entries of each index that were read.
    pub entries: Vec<(String, u64)>,
    /// True if the counters were compared: they cannot be while others write all the time.
    pub counted: bool,
    /// Documents that depart from the BSON specification, and are served all the same.
    pub departures: u64,
    /// The first of them and how it departs.
    pub first_departure: Option<String>,
    /// The indexes of which a repair took back facts that no document needs any more, such as that
    /// they are multikey.
    pub narrowed: Vec<String>,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

impl CollectionCheck {
    /// Returns the problems that `which` picks.
    pub fn problems(&self, which: impl Fn(&Problem) -> bool) -> impl Iterator<Item = &Problem> {
        self.findings.iter().map(|finding| &finding.what).filter(move |problem| which(problem))
    }

    /// True if nothing is wrong that was not mended.
    pub fn is_sound_now(&self) -> bool {
        self.findings.iter().all(|finding| finding.mended)
    }

    /// True if something was mended.
    pub fn is_mended(&self) -> bool {
        !self.narrowed.is_empty() || self.findings.iter().any(|finding| finding.mended)
    }

    /// True if nothing is wrong with an index that was not mended.
    pub fn is_sound(&self, name: &str) -> bool {
        let about = |problem: &Problem| match problem {
            Problem::MissingEntry { index, .. }
            | Problem::SurplusEntry { index, .. }
            | Problem::Index(index) => index == name,
            Problem::InvalidDocument(_) | Problem::Other => false,
        };
        !self.findings.iter().any(|finding| !finding.mended && about(&finding.what))
    }
}

/// What a check found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Collections that were read.
    pub collections: u64,
    /// Documents that were read.
    pub documents: u64,
    /// Index entries that were read.
    pub entries: u64,
    /// What is wrong, in the order in which it was found; empty is clean.
    pub findings: Vec<Finding>,
}

impl Report {
    /// True if nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// True if everything that was wrong has been mended.
    pub fn is_mended(&self) -> bool {
        self.findings.iter().all(|finding| finding.mended)
    }
}
