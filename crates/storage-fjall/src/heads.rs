//! What is known about the keys of each space without a read of the tables.

use std::time::Duration;

use quire_storage::Space;

use crate::gaps::Gaps;
use crate::recent_keys::RecentKeys;
use crate::tombstones::Tombstones;

/// The gaps to skip, the tombstones to compact, and filters of the keys in memtables.
pub(crate) struct Heads {
    gaps: [Gaps; 4],
    pub tombstones: Tombstones,
    /// Filters of the index entries in memtables.
    pub entries: RecentKeys,
}

impl Heads {
    pub fn new(slow: Duration) -> Self {
        Self {
            gaps: Space::ALL.map(|_| Gaps::new(slow)),
            tombstones: Tombstones::default(),
            entries: RecentKeys::default(),
        }
    }

    pub fn gaps(&self, space: Space) -> &Gaps {
        let [meta, doc, idx, log] = &self.gaps;
        match space {
            Space::Meta => meta,
            Space::Doc => doc,
            Space::Idx => idx,
            Space::Log => log,
        }
    }
}
