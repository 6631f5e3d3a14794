//! What stages read and change: the planner moves them around each other and fetches no more
//! than they need.

use crate::expression::Dependencies;
use std::collections::BTreeSet;

/// What a stage needs of its input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// What its expressions read.
    pub reads: Dependencies,
    /// Nothing of the input but what `reads` names gets into its output.
    pub exhaustive: bool,
}

/// Which paths a stage changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Modified {
    /// It changes no path.
    Nothing,
    /// These and what is below them.
    Paths(BTreeSet<String>),
    /// All but these, which are kept as they are.
    AllExcept(BTreeSet<String>),
    /// It may change any path.
    All,
}

impl Needs {
    /// Returns the needs of a stage that passes its input on besides what it reads.
    pub fn reading(reads: Dependencies) -> Self {
        Needs { reads, exhaustive: false }
    }

    /// Returns the needs of a stage that lets nothing through but what it reads.
    pub fn only(reads: Dependencies) -> Self {
        Needs { reads, exhaustive: true }
    }
}
