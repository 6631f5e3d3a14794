//! What is known about the keys of each space without a read of the tables.

use std::time::Duration;

use quire_storage::Space;

use crate::space::gaps::Gaps;
use crate::space::settling::Settling;
use crate::space::tombstones::Tombstones;
use crate::table::trees::of_space;

/// The gaps to skip, and the tombstones and overwritten rows to merge away.
pub(crate) struct Heads {
    gaps: [Gaps; 4],
    pub tombstones: Tombstones,
    pub settling: Settling,
}

impl Heads {
    pub fn new(slow: Duration) -> Self {
        Self {
            gaps: Space::ALL.map(|_| Gaps::new(slow)),
            tombstones: Tombstones::default(),
            settling: Settling::default(),
        }
    }

    pub fn gaps(&self, space: Space) -> &Gaps {
        of_space(&self.gaps, space)
    }
}
