//! DISTINCT_SCAN: the first keys of an index for each distinct value of its leading fields.

use quire_catalog::key::KeySpec;
use quire_collections::{IndexEntry, decode_entry};
use quire_error::Result;
use quire_planner::explain::NodeStats;

use crate::env::Run;
use crate::operators::Operator;
use crate::row::Row;
use crate::scans::index_scan::IndexScanOp;

/// Returns the first keys of each group of keys that agree in the fields up to one. Documents
/// without that field have keys among those where it is null: they are skipped until a document has
/// it, unless they are wanted too.
pub(crate) struct DistinctScan {
    scan: IndexScanOp,
    field: usize,
    missing_too: bool,
    /// The number of keys of a group that are wanted.
    each: u64,
    /// The bytes of the current group, and the number of its keys that were returned. Unused if one key is wanted.
    group: Vec<u8>,
    returned: u64,
}

impl DistinctScan {
    pub fn new(scan: IndexScanOp, field: usize, missing_too: bool, each: u64) -> Self {
        DistinctScan { scan, field, missing_too, each, group: Vec::new(), returned: 0 }
    }

    fn is_missing(&self, keys: &KeySpec, entry: &IndexEntry) -> Result<bool> {
        let key = decode_entry(keys, &entry.values, &entry.type_bits)?;
        Ok(key.is_some_and(|key| matches!(key.values.get(self.field), Some(None))))
    }

    /// Counts the last key. Returns true if no more keys of its group are wanted.
    fn is_last_of_group(&mut self) -> Result<bool> {
        if self.each == 1 {
            return Ok(true);
        }
        let Some(group) = self.scan.group(self.field + 1)? else { return Ok(false) };
        if self.returned == 0 || self.group != group {
            self.group.clear();
            self.group.extend_from_slice(group);
            self.returned = 0;
        }
        self.returned += 1;
        Ok(self.returned >= self.each)
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
                if self.is_last_of_group()? {
                    self.scan.skip_group(self.field + 1)?;
                }
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
