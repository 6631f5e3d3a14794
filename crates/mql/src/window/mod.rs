//! Window functions: what `$setWindowFields` makes of the documents around each document.
//!
//! Reading order: this file, `bounds` (which documents a window has), `output` (one output field,
//! parsed), `registry` (all functions), `partition` (the functions at work on one partition),
//! `sliding` (a window that moves over the values of a partition), then `contents` and one file a
//! family of functions. Documents come in order and each value is seen once when it enters a window
//! and once when it leaves, so that the work does not depend on the width of a window.

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

/// The `sortBy` of the stage as its window functions see it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SortedBy {
    /// The stage has a `sortBy`, perhaps an empty one.
    pub given: bool,
    /// The order, if it has any part.
    pub pattern: Option<Arc<SortPattern>>,
}

impl SortedBy {
    /// The path and whether it rises, if documents are sorted by exactly one field.
    pub fn single(&self) -> Option<(&str, bool)> {
        let [part] = self.pattern.as_ref()?.parts() else { return None };
        Some((part.path()?.as_str(), part.direction == crate::sort::Direction::Ascending))
    }

    /// True if documents are sorted by exactly one part.
    pub fn has_one_part(&self) -> bool {
        self.pattern.as_ref().is_some_and(|pattern| pattern.parts().len() == 1)
    }
}
