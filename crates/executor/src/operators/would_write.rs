//! UPDATE and DELETE as explain runs them: the found documents are counted, nothing is written.

use quire_document::DocBuf;
use quire_error::Result;
use quire_planner::WriteKind;
use quire_planner::explain::NodeStats;

use crate::env::Run;
use crate::operators::{BoxedOperator, Operator, over};
use crate::row::Row;

/// The rows pulled at a time.
const ROWS_MAX: usize = 256;

/// Counts the documents that a write would find. Returns a row for the document that the write would
/// return.
pub(crate) struct WouldWrite {
    pub input: BoxedOperator,
    /// The kind of the write.
    pub kind: WriteKind,
    pub stats: NodeStats,
}

impl Operator for WouldWrite {
    fn next(&mut self, run: &mut Run<'_>, _: usize, out: &mut Vec<Row>) -> Result<bool> {
        let (mut rows, mut last) = (Vec::new(), None);
        let all = self.kind.takes_all();
        while !self.stats.is_eof {
            let wanted = if all { ROWS_MAX } else { 1 };
            let more = self.input.next(run, wanted, &mut rows)?;
            self.stats.counted += rows.len() as u64;
            self.stats.is_eof = !more || (!all && !rows.is_empty());
            last = rows.pop().or(last);
            rows.clear();
        }
        let found = self.stats.counted > 0;
        self.stats.upserted = !found && self.kind.upserts();
        let returns = self.kind.returns_document(found);
        self.stats.returned = u64::from(returns);
        if returns {
            out.push(last.unwrap_or_else(|| Row::made(DocBuf::new())));
        }
        Ok(false)
    }

    fn rest(&mut self) {
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        over(&self.input, &self.stats)
    }
}
