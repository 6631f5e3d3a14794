//! What every stage of a running plan is.

use quire_error::Result;
use quire_planner::explain::NodeStats;

use crate::env::Run;
use crate::row::Row;

/// A stage that is pulled for rows.
pub(crate) trait Operator: Send {
    /// Appends at most `max` rows to `out`. False once nothing follows; true may come with fewer
    /// rows than asked for, even none. Reads no more from its input than the rows need, so that
    /// counters are exact and a limit stops the scan.
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool>;

    /// What it did so far, with its inputs.
    fn stats(&self) -> NodeStats;
}

/// A stage, boxed.
pub(crate) type BoxedOperator = Box<dyn Operator>;

/// Nothing.
pub(crate) struct Eof;

impl Operator for Eof {
    fn next(&mut self, _: &mut Run<'_>, _: usize, _: &mut Vec<Row>) -> Result<bool> {
        Ok(false)
    }

    fn stats(&self) -> NodeStats {
        NodeStats { is_eof: true, ..NodeStats::default() }
    }
}
