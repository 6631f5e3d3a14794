//! The fields that stages read and change. With them the planner moves stages and fetches only the
//! fields that are needed.

use crate::expression::{Dependencies, FieldPath};
use std::collections::BTreeSet;

/// The fields that a stage needs of its input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The dependencies of its expressions.
    pub reads: Dependencies,
    /// True if the output depends only on the fields in `reads`.
    pub exhaustive: bool,
}

/// The paths that a stage changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Modified {
    /// No path at all.
    Nothing,
    /// These paths, and all paths below them.
    Paths(BTreeSet<String>),
    /// All paths except these, which are kept unchanged.
    AllExcept(BTreeSet<String>),
    /// Possibly any path.
    All,
}

impl Modified {
    /// Returns what a stage changes that sets `paths` and goes through documents alone to do so: any
    /// other value on the way, an array too, is replaced, with all that is below it.
    pub(super) fn replacing<'p>(paths: impl IntoIterator<Item = &'p FieldPath>) -> Self {
        Modified::Paths(paths.into_iter().map(|path| path.first().to_owned()).collect())
    }
}

impl Needs {
    /// Returns the needs of a stage that passes its input on, and reads fields of it.
    pub fn reading(reads: Dependencies) -> Self {
        Needs { reads, exhaustive: false }
    }

    /// Returns the needs of a stage whose output depends only on the fields that it reads.
    pub fn only(reads: Dependencies) -> Self {
        Needs { reads, exhaustive: true }
    }
}
