//! DISTINCT_SCAN: one key of an index for each distinct value of its leading fields.

use quire_catalog::key::KeySpec;
use quire_collections::{IndexEntry, decode_entry};
use quire_error::Result;
use quire_planner::explain::NodeStats;

use crate::env::Run;
use crate::operators::Operator;
use crate::row::Row;
use crate::scans::index_scan::IndexScanOp;

/// Returns the first key of each group of keys that agree in the fields up to one. Documents
/// without that field have keys among those where it is null: they are skipped until a document has
/// it, unless they are wanted too.
pub(crate) struct DistinctScan {
    pub scan: IndexScanOp,
    pub field: usize,
    pub missing_too: bool,
}

impl DistinctScan {
    fn is_missing(&self, keys: &KeySpec, entry: &IndexEntry) -> Result<bool> {
        let key = decode_entry(keys, &entry.values, &entry.type_bits)?;
        Ok(key.is_some_and(|key| matches!(key.values.get(self.field), Some(None))))
    }
}

impl Operator for DistinctScan {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let keys = std::sync::Arc::clone(&self.scan.scan().keys);
        let start = out.len();
        while out.len() < start + max {
            let may_pause = out.is_empty();
            let Some(entry) = self.scan.next_match(run, may_pause)? else { return Ok(false) };
            if self.missing_too || !self.is_missing(&keys, &entry)? {
                out.push(Row::of_entry(&keys, entry));
                self.scan.skip_group(self.field + 1)?;
            }
        }
        Ok(true)
    }

    fn rest(&mut self) {
        self.scan.rest();
    }

    fn stats(&self) -> NodeStats {
        self.scan.counters().clone()
    }
}
