//! Rows in memory as the leaf of a pipeline inside of a stage, and running such a pipeline to its
//! end.

use quire_error::Result;
use quire_planner::explain::NodeStats;

use crate::env::Run;
use crate::holding::reserve_built;
use crate::operators::{BoxedOperator, Operator};
use crate::params::STAGE_BYTES_MAX;
use crate::row::Row;

/// The rows pulled at a time.
const ROWS_MAX: usize = 256;

/// Returns rows from memory.
pub(crate) struct Rows {
    rows: std::vec::IntoIter<Row>,
    stats: NodeStats,
}

impl Rows {
    pub fn new(rows: Vec<Row>) -> Self {
        Rows { rows: rows.into_iter(), stats: NodeStats::default() }
    }
}

/// Gives the rows of an operator in the place of another one, which has been counted already.
pub(crate) struct Counted {
    pub rows: BoxedOperator,
    pub stats: NodeStats,
}

impl Operator for Counted {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        self.rows.next(run, max, out)
    }

    fn rest(&mut self) {
        self.rows.rest();
    }

    fn stats(&self) -> NodeStats {
        self.stats.clone()
    }
}

impl Operator for Rows {
    fn next(&mut self, _: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let before = out.len();
        out.extend(self.rows.by_ref().take(max));
        self.stats.returned += (out.len() - before) as u64;
        self.stats.is_eof = self.rows.len() == 0;
        Ok(!self.stats.is_eof)
    }

    fn restart(&mut self, rows: &mut Vec<Row>) -> bool {
        self.rows = std::mem::take(rows).into_iter();
        true
    }

    fn stats(&self) -> NodeStats {
        self.stats.clone()
    }
}

/// Pulls all rows of an operator, with their documents loaded. `take` returns false to stop.
pub(super) fn drain(
    operator: &mut BoxedOperator,
    run: &mut Run<'_>,
    take: &mut dyn FnMut(Row) -> Result<bool>,
) -> Result<()> {
    run.for_all(|run| {
        let mut rows = Vec::new();
        loop {
            let more = operator.next(run, ROWS_MAX, &mut rows)?;
            for mut row in rows.drain(..) {
                row.know_doc()?;
                if !take(row)? {
                    return Ok(());
                }
            }
            if !more {
                return Ok(());
            }
        }
    })
}

/// About what an element of an array takes besides its document: its type and its name.
pub(super) const ELEMENT_BYTES: usize = 8;

/// Pulls all rows of an operator, and calls `keep` for each. `None` if they take more than
/// [`STAGE_BYTES_MAX`] together.
pub(super) fn collect(
    operator: &mut BoxedOperator,
    run: &mut Run<'_>,
    keep: impl Fn(&mut Row),
) -> Result<Option<Vec<Row>>> {
    let (mut out, mut bytes) = (Vec::new(), 0);
    drain(operator, run, &mut |mut row| {
        keep(&mut row);
        bytes += row.size();
        reserve_built(bytes)?;
        out.push(row);
        Ok(bytes <= STAGE_BYTES_MAX)
    })?;
    Ok((bytes <= STAGE_BYTES_MAX).then_some(out))
}
