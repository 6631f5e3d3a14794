//! The interface of operators, and the operators that read rows from other operators.

pub(crate) mod bucket_auto;
pub(crate) mod chain;
pub(crate) mod densify;
pub(crate) mod feed;
pub(crate) mod fetch;
pub(crate) mod filtering;
pub(crate) mod intersection;
pub(crate) mod metadata;
pub(crate) mod points;
pub(crate) mod projection;
pub(crate) mod sample;
pub(crate) mod scores;
pub(crate) mod simple;
pub(crate) mod sort;
pub(crate) mod union;
mod window_parts;
pub(crate) mod windows;
pub(crate) mod would_write;

use quire_error::Result;
use quire_planner::explain::NodeStats;

use crate::env::Run;
use crate::row::Row;
use crate::taking::{Given, Taker};

/// The bytes of new rows after which a call ends: the next row may be as large.
pub(crate) const BATCH_BYTES: usize = 4 << 20;

/// The output of one call of a stage: at most as many rows as requested, and no more after they
/// take [`BATCH_BYTES`].
pub(crate) struct Filling<'o> {
    out: &'o mut Vec<Row>,
    rows_max: usize,
    bytes: usize,
}

impl<'o> Filling<'o> {
    /// Appends to the rows in `out`, at most `max` rows.
    pub fn new(out: &'o mut Vec<Row>, max: usize) -> Self {
        let rows_max = out.len().saturating_add(max);
        Filling { out, rows_max, bytes: 0 }
    }

    /// Returns true if the call must end.
    pub fn is_full(&self) -> bool {
        self.rows_left() == 0 || self.bytes >= BATCH_BYTES
    }

    /// Returns how many more rows were requested.
    pub fn rows_left(&self) -> usize {
        self.rows_max.saturating_sub(self.out.len())
    }

    /// Appends a row.
    pub fn push(&mut self, row: Row) {
        self.bytes += row.size();
        self.out.push(row);
    }
}

/// The number of rows that are made at a time only to be counted.
const PASSED_ROWS_MAX: usize = 1024;

/// The result of [`Operator::pass`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passed {
    /// The number of rows that were skipped.
    pub rows: u64,
    /// False if no rows follow, like the result of [`Operator::next`].
    pub more: bool,
}

/// Returns the lesser of two numbers of rows.
pub(crate) fn at_most(rows: u64, limit: usize) -> usize {
    usize::try_from(rows).map_or(limit, |rows| rows.min(limit))
}

/// A stage from which rows are pulled.
pub(crate) trait Operator: Send {
    /// Appends at most `max` rows to `out`. Returns false if no more follow; after true it may have
    /// appended fewer rows than requested, even none. Reads no more from its input than the rows
    /// need, so that counters are exact and a limit stops the scan.
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool>;

    /// Passes what `taker` takes of the next rows to `give`, in order, as long as several threads compute it.
    /// The stage above reads its whole input: it calls this and `next` in turns. Passes nothing if one thread
    /// works. An operator that implements this returns rows with documents and records and no metadata.
    fn feed(
        &mut self,
        _: &mut Run<'_>,
        _: &dyn Taker,
        _: &mut dyn FnMut(Given) -> Result<()>,
    ) -> Result<()> {
        Ok(())
    }

    /// Skips at most `max` rows without producing them, for a `$skip` or a count. The statistics
    /// count the keys and documents that it examines.
    fn pass(&mut self, run: &mut Run<'_>, max: u64) -> Result<Passed> {
        make_and_drop(self, run, max)
    }

    /// Returns true if [`pass`](Self::pass) counts rows that it does not make.
    fn counts(&self) -> bool {
        false
    }

    /// Starts again, with `rows` in place of those of its leaf. Returns false if it must be built anew, and
    /// leaves `rows` then. The statistics go on. A stage whose pipeline runs for each row calls it.
    fn restart(&mut self, _: &mut Vec<Row>) -> bool {
        false
    }

    /// Ends a call. Drops rows that were read ahead, because the next call reads them again on its
    /// newer view, and frees buffers, because a cursor may rest for minutes. An operator calls this on
    /// its inputs.
    fn rest(&mut self) {}

    /// Returns its statistics so far, with those of its inputs.
    fn stats(&self) -> NodeStats;
}

/// An operator of any type.
pub(crate) type BoxedOperator = Box<dyn Operator>;

/// Skips at most `max` rows of a stage that must produce them.
pub(crate) fn make_and_drop<O: Operator + ?Sized>(
    stage: &mut O,
    run: &mut Run<'_>,
    max: u64,
) -> Result<Passed> {
    let mut rows = Vec::new();
    let more = stage.next(run, at_most(max, PASSED_ROWS_MAX), &mut rows)?;
    Ok(Passed { rows: rows.len() as u64, more })
}

/// Pulls rows from an input that are passed on unchanged, and counts them.
pub(crate) fn pass_on(
    input: &mut BoxedOperator,
    stats: &mut NodeStats,
    run: &mut Run<'_>,
    max: usize,
    out: &mut Vec<Row>,
) -> Result<bool> {
    let start = out.len();
    let more = input.next(run, max, out)?;
    stats.returned += (out.len() - start) as u64;
    stats.is_eof = !more;
    Ok(more)
}

/// Skips rows of an input that are passed on unchanged, and counts them.
pub(crate) fn pass_by(
    input: &mut BoxedOperator,
    stats: &mut NodeStats,
    run: &mut Run<'_>,
    max: u64,
) -> Result<Passed> {
    let passed = input.pass(run, max)?;
    stats.returned += passed.rows;
    stats.is_eof = !passed.more;
    Ok(passed)
}

/// Returns the statistics of a stage above one input.
pub(crate) fn over(input: &BoxedOperator, stats: &NodeStats) -> NodeStats {
    NodeStats { inputs: vec![input.stats()], ..stats.clone() }
}

/// The operator of a plan that finds no document.
pub(crate) struct Eof;

impl Operator for Eof {
    fn next(&mut self, _: &mut Run<'_>, _: usize, _: &mut Vec<Row>) -> Result<bool> {
        Ok(false)
    }

    fn stats(&self) -> NodeStats {
        NodeStats { is_eof: true, ..NodeStats::default() }
    }
}
