//! The points of a time-series collection: the rows of its records and those of its buckets, one after the other or
//! merged by time. No point is in both, so nothing is compared but times.

use std::collections::VecDeque;

use quire_document::Value;
use quire_error::Result;
use quire_planner::explain::NodeStats;

use crate::env::Run;
use crate::operators::{BoxedOperator, Filling, Operator, Passed};
use crate::row::Row;
use crate::taking::{Given, Taker};

/// The rows that are read ahead of an input.
const AHEAD: usize = 64;

/// Returns the rows of one input after the other.
pub(crate) struct OneByOne {
    inputs: Vec<BoxedOperator>,
    at: usize,
    stats: NodeStats,
}

impl OneByOne {
    pub fn new(inputs: Vec<BoxedOperator>) -> Self {
        OneByOne { inputs, at: 0, stats: NodeStats::default() }
    }
}

impl Operator for OneByOne {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let Some(input) = self.inputs.get_mut(self.at) else { return Ok(false) };
        if !input.next(run, max, out)? {
            self.at += 1;
        }
        self.stats.is_eof = self.at >= self.inputs.len();
        Ok(!self.stats.is_eof)
    }

    fn feed(
        &mut self,
        run: &mut Run<'_>,
        taker: &dyn Taker,
        give: &mut dyn FnMut(Given) -> Result<()>,
    ) -> Result<()> {
        match self.inputs.get_mut(self.at) {
            Some(input) => input.feed(run, taker, give),
            None => Ok(()),
        }
    }

    fn pass(&mut self, run: &mut Run<'_>, max: u64) -> Result<Passed> {
        let Some(input) = self.inputs.get_mut(self.at) else {
            return Ok(Passed { rows: 0, more: false });
        };
        let passed = input.pass(run, max)?;
        if !passed.more {
            self.at += 1;
        }
        self.stats.is_eof = self.at >= self.inputs.len();
        Ok(Passed { more: !self.stats.is_eof, ..passed })
    }

    fn counts(&self) -> bool {
        self.inputs.iter().all(|input| input.counts())
    }

    fn rest(&mut self) {
        self.inputs.iter_mut().for_each(|input| input.rest());
    }

    fn stats(&self) -> NodeStats {
        let inputs: Vec<NodeStats> = self.inputs.iter().map(|input| input.stats()).collect();
        let returned = inputs.iter().map(|input| input.returned).sum();
        NodeStats { inputs, returned, ..self.stats.clone() }
    }
}

/// Merges inputs that are sorted by time.
pub(crate) struct ByTime {
    branches: Vec<Branch>,
    time_field: String,
    backward: bool,
    stats: NodeStats,
}

/// An input with the rows that were read ahead.
struct Branch {
    input: BoxedOperator,
    ahead: VecDeque<(i64, Row)>,
    is_done: bool,
}

impl ByTime {
    pub fn new(inputs: Vec<BoxedOperator>, time_field: &str, backward: bool) -> Self {
        let branch = |input| Branch { input, ahead: VecDeque::new(), is_done: false };
        let branches = inputs.into_iter().map(branch).collect();
        let time_field = time_field.to_owned();
        ByTime { branches, time_field, backward, stats: NodeStats::default() }
    }

    /// Makes sure that each branch has a row, or is done.
    fn fill(&mut self, run: &mut Run<'_>, max: usize) -> Result<()> {
        for branch in &mut self.branches {
            while branch.ahead.is_empty() && !branch.is_done {
                let mut rows = Vec::new();
                branch.is_done = !branch.input.next(run, max.clamp(1, AHEAD), &mut rows)?;
                for row in rows {
                    let time = match row.doc().find(&self.time_field).map(|field| field.value()) {
                        Some(Value::Date(time)) => time,
                        _ => i64::MIN,
                    };
                    branch.ahead.push_back((time, row));
                }
            }
        }
        Ok(())
    }

    /// Returns the branch whose row is next: of equal times, that of the first branch.
    fn next_branch(&mut self) -> Option<&mut Branch> {
        let backward = self.backward;
        let with_rows = self.branches.iter_mut().filter(|branch| !branch.ahead.is_empty());
        with_rows.min_by_key(|branch| {
            let time = branch.ahead.front().map_or(0, |(time, _)| *time);
            // The complement reverses the order of all times.
            if backward { !time } else { time }
        })
    }
}

impl Operator for ByTime {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let mut filling = Filling::new(out, max);
        while !filling.is_full() {
            self.fill(run, filling.rows_left())?;
            let next = self.next_branch().and_then(|branch| branch.ahead.pop_front());
            let Some((_, row)) = next else {
                self.stats.is_eof = true;
                return Ok(false);
            };
            self.stats.returned += 1;
            filling.push(row);
        }
        Ok(true)
    }

    fn rest(&mut self) {
        for branch in &mut self.branches {
            branch.ahead.iter_mut().for_each(|(_, row)| row.detach());
            branch.input.rest();
        }
    }

    fn stats(&self) -> NodeStats {
        let inputs = self.branches.iter().map(|branch| branch.input.stats()).collect();
        NodeStats { inputs, ..self.stats.clone() }
    }
}
