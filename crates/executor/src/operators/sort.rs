//! SORT: reads its whole input and returns it in order.

use std::sync::Arc;

use bumpalo::Bump;
use quire_error::Result;
use quire_mql::sort::SortPattern;
use quire_planner::explain::NodeStats;

use crate::env::{Env, Run};
use crate::operators::metadata::add_sort_key;
use crate::operators::{BoxedOperator, Filling, Operator, at_most, over};
use crate::row::Row;
use crate::sorting::sorter::{Sorted, SortedRows, Sorter};
use crate::sorting::taker::SortTaker;

/// The rows pulled at a time.
const ROWS_MAX: usize = 1024;

/// The operator that sorts its input.
pub(crate) struct Sort {
    input: BoxedOperator,
    pattern: Arc<SortPattern>,
    limit: u64,
    /// True if a stage above reads `$meta: "sortKey"`.
    keep_sort_key: bool,
    sorted: Option<Sorted>,
    /// True if all rows are in memory and have only documents and records.
    gives_documents: bool,
    arena: Bump,
    stats: NodeStats,
}

impl Sort {
    pub fn new(
        input: BoxedOperator,
        pattern: Arc<SortPattern>,
        limit: u64,
        keep_sort_key: bool,
    ) -> Self {
        Sort {
            input,
            pattern,
            limit,
            keep_sort_key,
            sorted: None,
            gives_documents: false,
            arena: Bump::new(),
            stats: NodeStats::default(),
        }
    }

    /// Returns a sort whose sorter has read the whole input. `input` has only the counters of that.
    pub fn of_all(
        input: BoxedOperator,
        sorter: Sorter,
        keep_sort_key: bool,
        env: &Env,
    ) -> Result<Self> {
        let pattern = sorter.pattern().cloned().unwrap_or_default();
        let mut sort = Sort::new(input, pattern, sorter.limit() as u64, keep_sort_key);
        sort.take_all(sorter, env)?;
        Ok(sort)
    }

    /// Returns the rows that are left if all rows are in memory and have only documents and records.
    pub fn documents(&mut self, run: &mut Run<'_>) -> Result<Option<&mut SortedRows>> {
        if self.sorted.is_none() {
            run.for_all(|run| self.collect(run))?;
        }
        Ok(match &mut self.sorted {
            Some(Sorted::Memory(rows)) if self.gives_documents => Some(rows),
            _ => None,
        })
    }

    /// Marks `count` rows of [`Sort::documents`] as returned.
    pub fn advance(&mut self, count: usize) {
        if let Some(Sorted::Memory(rows)) = &mut self.sorted {
            rows.advance(count);
            self.stats.returned += count as u64;
        }
    }

    /// Takes back the last row that was returned.
    pub fn step_back(&mut self) {
        if let Some(Sorted::Memory(rows)) = &mut self.sorted {
            rows.step_back();
            self.stats.returned -= 1;
        }
    }

    fn collect(&mut self, run: &mut Run<'_>) -> Result<()> {
        let mut sorter = Sorter::new(Arc::clone(&self.pattern), self.limit);
        let (mut rows, taker, scope) = (Vec::new(), SortTaker::new(&sorter), run.scope());
        loop {
            if let Some(taker) = &taker {
                let give = &mut |given| taker.give(given, &mut sorter, scope);
                self.input.feed(run, taker, give)?;
            }
            let more = self.input.next(run, ROWS_MAX, &mut rows)?;
            rows.drain(..).try_for_each(|row| sorter.push(row, scope))?;
            if !more {
                break;
            }
        }
        self.take_all(sorter, run.env)
    }

    fn take_all(&mut self, sorter: Sorter, env: &Env) -> Result<()> {
        self.stats.bytes_sorted += sorter.bytes_sorted;
        self.stats.spills += sorter.spills;
        let sorted = sorter.finish(env)?;
        self.gives_documents = match &sorted {
            Sorted::Memory(rows) => !self.keep_sort_key && rows.are_documents(),
            Sorted::Runs { .. } => false,
        };
        self.sorted = Some(sorted);
        Ok(())
    }
}

impl Operator for Sort {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        if self.sorted.is_none() {
            run.for_all(|run| self.collect(run))?;
        }
        // Rows from runs on disk can have any size.
        let mut filling = Filling::new(out, max);
        while !filling.is_full() {
            let row = match &mut self.sorted {
                Some(sorted) => sorted.next()?,
                None => None,
            };
            let Some(mut row) = row else {
                self.stats.is_eof = true;
                return Ok(false);
            };
            if self.keep_sort_key {
                add_sort_key(&mut row, &self.pattern, &mut self.arena, run.env)?;
            }
            self.stats.returned += 1;
            filling.push(row);
        }
        self.stats.is_eof = self.sorted.as_ref().is_some_and(Sorted::is_empty);
        Ok(!self.stats.is_eof)
    }

    fn restart(&mut self, rows: &mut Vec<Row>) -> bool {
        (self.sorted, self.gives_documents) = (None, false);
        self.input.restart(rows)
    }

    fn rest(&mut self) {
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        over(&self.input, &self.stats)
    }
}

/// A sort whose input is in its order already. It ends after `limit` rows, and so its input need not
/// find the others.
pub(crate) struct Presorted {
    input: BoxedOperator,
    pattern: Arc<SortPattern>,
    /// The rows that may follow.
    left: u64,
    keep_sort_key: bool,
    arena: Bump,
    stats: NodeStats,
}

impl Presorted {
    /// Returns the first `limit` rows of the input; all if it is 0.
    pub fn new(
        input: BoxedOperator,
        pattern: Arc<SortPattern>,
        limit: u64,
        keep_sort_key: bool,
    ) -> Self {
        let left = if limit == 0 { u64::MAX } else { limit };
        let (arena, stats) = (Bump::new(), NodeStats::default());
        Presorted { input, pattern, left, keep_sort_key, arena, stats }
    }
}

impl Operator for Presorted {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let (start, max) = (out.len(), at_most(self.left, max));
        let more = max > 0 && self.input.next(run, max, out)?;
        for row in out.iter_mut().skip(start) {
            self.stats.bytes_sorted += row.size() as u64;
            if self.keep_sort_key {
                add_sort_key(row, &self.pattern, &mut self.arena, run.env)?;
            }
        }
        let rows = (out.len() - start) as u64;
        self.stats.returned += rows;
        self.left -= rows;
        self.stats.is_eof = !more || self.left == 0;
        Ok(!self.stats.is_eof)
    }

    fn rest(&mut self) {
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        over(&self.input, &self.stats)
    }
}
