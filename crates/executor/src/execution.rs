//! A plan that runs: batch by batch, with a view that is not kept between two batches.

use std::collections::VecDeque;
use std::sync::Arc;

use quire_collections::RecordId;
use quire_document::ArrayWriter;
use quire_error::Result;
use quire_planner::Plan;
use quire_storage::Interrupt;

use crate::env::{Env, Run, Scope};
use crate::examined::{Counters, Examined};
use crate::operators::BoxedOperator;
use crate::params::{BatchEnd, BatchLimits};
use crate::row::Row;
use crate::views::Views;

/// Rows pulled at a time.
const ROWS_MAX: usize = 256;
/// Bytes of documents that a batch of record ids may have passed through memory.
const RECORDS_BYTES_MAX: usize = 4 << 20;

/// A running request: what a cursor holds.
pub struct Execution {
    pub(crate) env: Arc<Env>,
    pub(crate) root: BoxedOperator,
    /// Rows that did not fit into the last batch.
    pub(crate) pending: VecDeque<Row>,
    pub(crate) exhausted: bool,
    pub(crate) generation: u64,
    pub(crate) returned: u64,
    pub(crate) plan: Arc<Plan>,
}

impl Execution {
    pub(crate) fn new(env: Arc<Env>, root: BoxedOperator, plan: Arc<Plan>) -> Self {
        Execution {
            env,
            root,
            pending: VecDeque::new(),
            exhausted: false,
            generation: 1,
            returned: 0,
            plan,
        }
    }

    /// Appends the next documents to `out`: as many as `limits` allow, at least one unless
    /// nothing is left or `docs_max` is 0. Reads at the view that `views` gives, and exchanges it
    /// when the batch takes long.
    ///
    /// # Errors
    /// What the stages meet; 175 QueryPlanKilled if the collection or an index that the plan
    /// uses was dropped; what the interrupt says. The execution cannot go on after an error.
    pub fn next_batch(
        &mut self,
        views: &mut dyn Views,
        interrupt: &Arc<Interrupt>,
        limits: BatchLimits,
        out: &mut ArrayWriter<'_>,
    ) -> Result<BatchEnd> {
        let mut docs = 0;
        let mut too_large = None;
        let exhausted = self.rows(views, interrupt, limits.docs_max, |row| {
            let doc = row.doc();
            if let Err(error) = crate::operators::chain::check_size(doc) {
                too_large = Some(error);
                return false;
            }
            // With the elements' names: a reply of many small documents must stay one document.
            if docs > 0 && out.len() + doc.len() > limits.bytes_max {
                return false;
            }
            docs += 1;
            out.push(doc);
            true
        })?;
        if let Some(error) = too_large {
            return Err(error);
        }
        self.returned += docs as u64;
        Ok(BatchEnd { docs, exhausted })
    }

    /// The record ids of the next documents, at most `max`, for a statement that writes them: it
    /// reads each again. Empty only at the end.
    pub(crate) fn next_records(
        &mut self,
        views: &mut dyn Views,
        interrupt: &Arc<Interrupt>,
        max: usize,
    ) -> Result<Vec<RecordId>> {
        let (mut records, mut bytes) = (Vec::new(), 0);
        self.rows(views, interrupt, max, |row| {
            if bytes >= RECORDS_BYTES_MAX {
                return false;
            }
            bytes += row.size();
            records.push(row.record);
            true
        })?;
        Ok(records)
    }

    /// True if nothing follows what was taken.
    pub(crate) fn is_done(&self) -> bool {
        self.exhausted && self.pending.is_empty()
    }

    /// True if the plan gives nothing before it has seen everything.
    pub fn blocks(&self) -> bool {
        self.plan.root.blocks()
    }

    /// Calls `take` for each row until it refuses one, `max` are taken or none are left. True if
    /// none are left.
    pub(crate) fn rows(
        &mut self,
        views: &mut dyn Views,
        interrupt: &Arc<Interrupt>,
        max: usize,
        mut take: impl FnMut(&Row) -> bool,
    ) -> Result<bool> {
        self.env.set_interrupt(interrupt);
        self.env.check_interrupt()?;
        self.generation += 1;
        let variables = self.env.variable_values();
        let scope = Scope { env: &self.env, variables: &variables };
        let mut run = Run::new(scope, views, self.generation);
        run.wanted = max;
        let mut left = max;
        let mut offer = |row: &Row, left: &mut usize| {
            let taken = take(row);
            *left = if taken { *left - 1 } else { 0 };
            taken
        };
        let mut rows = Vec::new();
        let done = loop {
            while left > 0
                && let Some(row) = self.pending.front()
                && offer(row, &mut left)
            {
                self.pending.pop_front();
            }
            let ended = self.pending.is_empty() && self.exhausted;
            // A pipeline notices its end only when it is asked for more, as in mongod: a batch that
            // happens to hold the last document leaves the cursor open.
            if ended && (left > 0 || !self.plan.of_pipeline) {
                break true;
            }
            if left == 0 {
                break false;
            }
            let more = self.root.next(&mut run, left.min(ROWS_MAX), &mut rows)?;
            self.exhausted = !more;
            let taken = rows.iter().take_while(|row| left > 0 && offer(row, &mut left)).count();
            self.pending.extend(rows.drain(taken..));
            rows.clear();
        };
        self.generation = run.generation;
        self.root.rest();
        self.pending.iter_mut().for_each(Row::detach);
        Ok(done)
    }

    /// Runs to the end and gives nothing.
    pub(crate) fn drain(
        &mut self,
        views: &mut dyn Views,
        interrupt: &Arc<Interrupt>,
    ) -> Result<()> {
        self.rows(views, interrupt, usize::MAX, |_| true).map(|_| ())
    }

    /// What it has looked at so far, and by which plan.
    pub fn examined(&self) -> Examined {
        let counters = Counters { returned: self.returned, ..Counters::of(&self.root.stats()) };
        Examined { counters, plan: Some(Arc::clone(&self.plan)), by_id: None }
    }
}
