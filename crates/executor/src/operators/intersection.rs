//! AND_SORTED: the records that all inputs return. Each input returns its records by rising record
//! id. The rows are those of the first input, with its index keys.

use std::collections::VecDeque;

use quire_collections::RecordId;
use quire_error::Result;
use quire_planner::explain::NodeStats;

use crate::env::Run;
use crate::operators::{BoxedOperator, Operator};
use crate::row::Row;

/// The rows pulled from an input at a time.
const ROWS_MAX: usize = 128;

/// Scans its inputs in parallel.
pub(crate) struct Intersection {
    branches: Vec<Branch>,
    rows: Vec<Row>,
    stats: NodeStats,
}

/// An input with the rows that were read from it and not used.
struct Branch {
    input: BoxedOperator,
    queue: VecDeque<Row>,
    done: bool,
}

impl Branch {
    /// Returns the first record with an id of at least `from`; `None` if there is none.
    fn seek(
        &mut self,
        from: RecordId,
        run: &mut Run<'_>,
        rows: &mut Vec<Row>,
    ) -> Result<Option<RecordId>> {
        loop {
            while let Some(row) = self.queue.front() {
                if row.record >= from {
                    return Ok(Some(row.record));
                }
                self.queue.pop_front();
            }
            if self.done {
                return Ok(None);
            }
            run.env.check_interrupt()?;
            self.done = !self.input.next(run, ROWS_MAX, rows)?;
            self.queue.extend(rows.drain(..));
        }
    }
}

impl Intersection {
    pub fn new(inputs: Vec<BoxedOperator>) -> Self {
        let branch = |input| Branch { input, queue: VecDeque::new(), done: false };
        let branches = inputs.into_iter().map(branch).collect();
        Intersection { branches, rows: Vec::new(), stats: NodeStats::default() }
    }

    /// Returns the next record, from the id `from` on, that all inputs have.
    fn common(&mut self, from: RecordId, run: &mut Run<'_>) -> Result<Option<RecordId>> {
        let mut wanted = from;
        let mut agreed = 0;
        // The inputs are advanced in turn until all have the same record.
        for at in (0..self.branches.len()).cycle() {
            let Some(branch) = self.branches.get_mut(at) else { break };
            match branch.seek(wanted, run, &mut self.rows)? {
                None => return Ok(None),
                Some(record) if record == wanted => agreed += 1,
                Some(record) => (wanted, agreed) = (record, 1),
            }
            if agreed >= self.branches.len() {
                return Ok(Some(wanted));
            }
        }
        Ok(None)
    }
}

impl Operator for Intersection {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let mut from = RecordId(0);
        for _ in 0..max {
            let Some(record) = self.common(from, run)? else {
                self.stats.is_eof = true;
                return Ok(false);
            };
            from = RecordId(record.0.saturating_add(1));
            let mut rows = self.branches.iter_mut().filter_map(|branch| branch.queue.pop_front());
            out.extend(rows.next());
            rows.for_each(drop);
            self.stats.returned += 1;
        }
        Ok(true)
    }

    fn rest(&mut self) {
        for branch in &mut self.branches {
            branch.queue.iter_mut().for_each(Row::detach);
            branch.input.rest();
        }
    }

    fn stats(&self) -> NodeStats {
        let inputs = self.branches.iter().map(|branch| branch.input.stats()).collect();
        NodeStats { inputs, ..self.stats.clone() }
    }
}
