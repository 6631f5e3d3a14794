//! UPDATE and DELETE as explain runs them: the found documents are counted, nothing is written.

use quire_error::Result;
use quire_planner::WriteKind;
use quire_planner::explain::NodeStats;

use crate::env::Run;
use crate::operators::{BoxedOperator, Operator, over};
use crate::row::Row;

/// The rows pulled at a time.
const ROWS_MAX: usize = 256;

/// Counts the documents that a write would find, and returns no rows.
pub(crate) struct WouldWrite {
    pub input: BoxedOperator,
    /// The kind of the write.
    pub kind: WriteKind,
    pub stats: NodeStats,
}

impl Operator for WouldWrite {
    fn next(&mut self, run: &mut Run<'_>, _: usize, _: &mut Vec<Row>) -> Result<bool> {
        let mut rows = Vec::new();
        let all = self.kind.takes_all();
        while !self.stats.is_eof {
            let wanted = if all { ROWS_MAX } else { 1 };
            let more = self.input.next(run, wanted, &mut rows)?;
            self.stats.counted += rows.len() as u64;
            self.stats.is_eof = !more || (!all && !rows.is_empty());
            rows.clear();
        }
        let found = self.stats.counted > 0;
        self.stats.upserted = !found && self.kind.upserts();
        self.stats.returned = u64::from(self.kind.returns_document(found));
        Ok(false)
    }

    fn rest(&mut self) {
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        over(&self.input, &self.stats)
    }
}
