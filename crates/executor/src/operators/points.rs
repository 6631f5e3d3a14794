//! The points of a time-series collection: the rows of its records and those of its buckets, one after the other or
//! merged in their order. No point is in both, so nothing is compared but what they are sorted by.

use std::collections::VecDeque;
use std::sync::Arc;

use bumpalo::Bump;
use quire_document::Value;
use quire_error::Result;
use quire_mql::sort::SortPattern;
use quire_planner::explain::NodeStats;

use crate::env::Run;
use crate::operators::union::sort_bytes;
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

/// Merges inputs that are sorted in the same way.
pub(crate) struct Merged {
    branches: Vec<Branch>,
    by: SortedBy,
    arena: Bump,
    stats: NodeStats,
}

/// What inputs are sorted by.
pub(crate) enum SortedBy {
    /// The time of points, which is read without a pattern.
    Time {
        /// The field with the time.
        field: String,
        /// True for the newest first.
        backward: bool,
    },
    /// What the sort of the request sorts by.
    Pattern(Arc<SortPattern>),
}

/// The place of a row in the order: the smaller one comes first. The bytes are empty if rows are sorted by the time.
type Place = (i64, Vec<u8>);

/// An input with the rows that were read ahead.
struct Branch {
    input: BoxedOperator,
    ahead: VecDeque<(Place, Row)>,
    is_done: bool,
}

impl Merged {
    pub fn new(inputs: Vec<BoxedOperator>, by: SortedBy) -> Self {
        let branch = |input| Branch { input, ahead: VecDeque::new(), is_done: false };
        let branches = inputs.into_iter().map(branch).collect();
        Merged { branches, by, arena: Bump::new(), stats: NodeStats::default() }
    }

    /// Makes sure that each branch has a row, or is done.
    fn fill(&mut self, run: &mut Run<'_>, max: usize) -> Result<()> {
        for branch in &mut self.branches {
            while branch.ahead.is_empty() && !branch.is_done {
                let mut rows = Vec::new();
                branch.is_done = !branch.input.next(run, max.clamp(1, AHEAD), &mut rows)?;
                for row in rows {
                    let place = self.by.place(&row, run, &mut self.arena)?;
                    branch.ahead.push_back((place, row));
                }
            }
        }
        Ok(())
    }

    /// Returns the branch whose row is next: of equal places, that of the first branch.
    fn next_branch(&mut self) -> Option<&mut Branch> {
        let mut best: Option<&mut Branch> = None;
        for branch in &mut self.branches {
            let Some((place, _)) = branch.ahead.front() else { continue };
            let first = best.as_ref().and_then(|best| best.ahead.front());
            if first.is_none_or(|(first, _)| place < first) {
                best = Some(branch);
            }
        }
        best
    }
}

impl SortedBy {
    fn place(&self, row: &Row, run: &Run<'_>, arena: &mut Bump) -> Result<Place> {
        match self {
            SortedBy::Time { field, backward } => {
                let time = match row.doc().find(field).map(|field| field.value()) {
                    Some(Value::Date(time)) => time,
                    _ => i64::MIN,
                };
                // The complement reverses the order of all times.
                Ok((if *backward { !time } else { time }, Vec::new()))
            }
            SortedBy::Pattern(pattern) => {
                let mut bytes = Vec::with_capacity(24);
                sort_bytes(pattern, row, run.scope(), arena, &mut bytes)?;
                Ok((0, bytes))
            }
        }
    }
}

impl Operator for Merged {
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
