//! RECORD_STORE_FAST_COUNT: the number of documents from the collection's counters.

use std::sync::Arc;

use quire_catalog::Collection;
use quire_error::Result;
use quire_planner::explain::NodeStats;

use crate::env::Run;
use crate::operators::Operator;
use crate::row::Row;
use crate::scans::collection_scan::CollectionScan;
use crate::table::Table;

/// Counts the documents of a collection and returns no rows.
pub(crate) struct FastCount {
    table: Table,
    skip: u64,
    /// The largest number to count; 0 for all.
    limit: u64,
    /// Counts if the view is not the newest, because the counters are.
    scan: CollectionScan,
    stats: NodeStats,
}

impl FastCount {
    pub fn new(collection: &Arc<Collection>, skip: u64, limit: u64) -> Self {
        let scan = CollectionScan::new(collection, false, None);
        let stats = NodeStats::default();
        FastCount { table: Table::new(collection), skip, limit, scan, stats }
    }

    fn documents(&mut self, run: &mut Run<'_>) -> Result<u64> {
        if !run.may_be_old() {
            let collection = self.table.resolve(run)?;
            return Ok(run.view().counts(collection).documents);
        }
        let enough = match self.limit {
            0 => u64::MAX,
            limit => self.skip.saturating_add(limit),
        };
        let mut all = 0;
        while all < enough {
            let passed = self.scan.pass(run, enough - all)?;
            all += passed.rows;
            if !passed.more {
                break;
            }
        }
        if all < enough {
            let collection = self.table.resolve(run)?;
            all += run.view().bucket_counts(collection)?.1;
        }
        Ok(all)
    }
}

impl Operator for FastCount {
    fn next(&mut self, run: &mut Run<'_>, _: usize, _: &mut Vec<Row>) -> Result<bool> {
        if !self.stats.is_eof {
            let all = self.documents(run)?;
            let rest = all.saturating_sub(self.skip);
            self.stats.counted = if self.limit > 0 { rest.min(self.limit) } else { rest };
            self.stats.skipped = all.min(self.skip);
            self.stats.is_eof = true;
        }
        Ok(false)
    }

    fn stats(&self) -> NodeStats {
        let scan = self.scan.stats();
        let (docs_examined, bytes_read) = (scan.docs_examined, scan.bytes_read);
        NodeStats { docs_examined, bytes_read, ..self.stats.clone() }
    }
}
