//! How a join finds foreign documents: by reading all of them, or by looking up its keys. The plan can
//! serve both ways; the number of keys, which is known only when the join runs, decides.

use super::Foreign;
use crate::node_stats::JoinStrategy;

/// The cost of looking up a key in an index and of fetching a document, in units of one document of
/// a scan: estimates, not calibrated.
const KEY_COST: u64 = 4;
const FETCH_COST: u64 = 2;

/// The minimum cost of a scan: with fewer documents than this, an index is still used for a few
/// keys.
const SCAN_COST_MIN: u64 = 1000;

/// The look-ups of a join so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct LookedUp {
    /// The number of keys that were looked up.
    pub keys: u64,
    /// The number of documents that were found for them.
    pub found: u64,
}

impl LookedUp {
    fn cost(self) -> u64 {
        self.keys * KEY_COST + self.found * FETCH_COST
    }
}

impl Foreign {
    /// Returns true if reading all of the `documents` of the collection costs less than looking up
    /// `keys` keys, after the look-ups of `so_far`. `all` is true if no other keys will follow.
    pub fn prefers_everything(
        &self,
        keys: u64,
        all: bool,
        so_far: LookedUp,
        documents: u64,
    ) -> bool {
        if self.keyed_scan().is_none() {
            // Both ways need one scan. With keys fewer documents are kept in memory, but each
            // document is compared with the keys.
            return !all || keys.saturating_mul(2) > documents;
        }
        let found = (keys * so_far.found).checked_div(so_far.keys).unwrap_or(keys);
        let cost = LookedUp { keys, found }.cost() + so_far.cost();
        cost > documents.max(SCAN_COST_MIN)
    }

    /// Returns the strategy of the join. `too_large` if the foreign documents do not fit in memory, `read_all` if
    /// all of them were read and no keys were looked up.
    pub fn strategy(&self, too_large: bool, read_all: bool) -> JoinStrategy {
        match &self.key {
            _ if self.whole.missing => JoinStrategy::Missing,
            Some(_) if self.keyed_scan().is_some() && !read_all => JoinStrategy::Index,
            Some(_) if !too_large => JoinStrategy::Hash,
            _ => JoinStrategy::NestedLoop,
        }
    }
}
