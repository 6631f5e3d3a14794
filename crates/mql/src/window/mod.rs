//! Window functions: `$setWindowFields` computes fields from the documents around each document.
//!
//! Read in this order: this file, `bounds` (the documents in a window), `output` (an output field,
//! parsed), `registry` (all functions), `partition` (the functions on one partition), `sliding` (a
//! window that moves over the values of a partition), then `contents` and one file for each family
//! of functions. Documents arrive in order. Each value is processed once when it enters a window
//! and once when it leaves, so the cost does not depend on the width of the window.

mod bounds;
mod contents;
mod covariance;
mod edges;
mod extremes;
mod fill;
mod moving_average;
mod multiset;
mod output;
mod partition;
mod percentiles;
mod ranks;
mod registry;
mod scaler;
mod sliding;
mod slopes;
mod sums;

pub use bounds::{Bound, Bounds};
pub use output::Output;
pub use partition::Partition;
pub use registry::{WINDOW_FUNCTIONS, WindowFunction};

use crate::sort::SortPattern;
use std::sync::Arc;

/// The `sortBy` of the stage, for its window functions.
#[derive(Clone, Debug, Default)]
pub(crate) struct SortedBy {
    /// True if the stage has a `sortBy`, even an empty one.
    pub given: bool,
    /// The pattern, if it has at least one part.
    pub pattern: Option<Arc<SortPattern>>,
}

impl SortedBy {
    /// Returns path and direction (true for ascending), if documents are sorted by exactly one
    /// field.
    pub fn single(&self) -> Option<(&str, bool)> {
        let [part] = self.pattern.as_ref()?.parts() else { return None };
        Some((part.path()?.as_str(), part.direction == crate::sort::Direction::Ascending))
    }

    /// Returns true if documents are sorted by exactly one part.
    pub fn has_one_part(&self) -> bool {
        self.pattern.as_ref().is_some_and(|pattern| pattern.parts().len() == 1)
    }
}
