//! A running plan. It returns batches, and holds no view between two of them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quire_collections::RecordId;
use quire_document::{ArrayWriter, DocBuf, memory};
use quire_error::{Error, ErrorClass, Result};
use quire_planner::Plan;
use quire_storage::Interrupt;

use crate::env::{Env, Run, Scope};
use crate::examined::{Counters, Examined};
use crate::holding::reserve_built;
use crate::operators::BoxedOperator;
use crate::params::{Awaits, BatchEnd, BatchLimits, Follows};
use crate::row::Row;
use crate::steady::Steady;
use crate::taking::{Given, Taker};
use crate::views::Views;

/// The generation of the views of the first call, which the plan was made for.
pub(crate) const FIRST_GENERATION: u64 = 2;

/// The rows pulled at a time.
const ROWS_MAX: usize = 256;
/// The bytes of a batch between two reservations of memory for the reply.
const UNRESERVED_BATCH_BYTES: usize = 512 << 10;
/// The bytes of documents that may be read for a batch of record ids.
const RECORDS_BYTES_MAX: usize = 4 << 20;

/// A running request, which a cursor holds.
pub struct Execution {
    pub(crate) env: Arc<Env>,
    pub(crate) root: BoxedOperator,
    /// The rows that did not fit into the last batch.
    pub(crate) pending: VecDeque<Row>,
    pub(crate) exhausted: bool,
    pub(crate) generation: u64,
    pub(crate) returned: u64,
    pub(crate) plan: Arc<Plan>,
    /// True if a statement writes the documents that it finds: it may delete the one at which a scan
    /// stands.
    pub(crate) of_write: bool,
    /// The commits that it follows, if it stays open at the end of its rows.
    pub(crate) awaits: Option<Awaits>,
    /// Set if it does not always take newer views.
    pub(crate) steady: Option<Box<Steady>>,
}

/// The records that a statement writes next.
pub(crate) struct FoundRecords {
    pub records: Vec<RecordId>,
    /// The error of the document after them. The statement writes the records, then fails.
    pub failed: Option<Error>,
}

impl Execution {
    pub(crate) fn new(env: Arc<Env>, root: BoxedOperator, plan: Arc<Plan>) -> Self {
        Execution {
            env,
            root,
            pending: VecDeque::new(),
            exhausted: false,
            generation: FIRST_GENERATION - 1,
            returned: 0,
            plan,
            of_write: false,
            awaits: None,
            steady: None,
        }
    }

    /// Appends the next documents to `out`: as many as `limits` allow, and at least one unless none
    /// is left or `docs_max` is 0. Reads on the view of `views`, and replaces it if the batch takes
    /// long.
    ///
    /// # Errors
    /// The errors of the stages; 175 QueryPlanKilled if the collection or an index of the plan was
    /// dropped; the error of an interrupt. The execution cannot continue after an error.
    pub fn next_batch(
        &mut self,
        views: &mut dyn Views,
        interrupt: &Arc<Interrupt>,
        limits: BatchLimits,
        out: &mut ArrayWriter<'_>,
    ) -> Result<BatchEnd> {
        let mut docs = 0;
        let mut failed = None;
        let mut reserved = UNRESERVED_BATCH_BYTES;
        let follows = self.rows(views, interrupt, limits.docs_max, |row| {
            let doc = row.doc();
            if let Err(error) = crate::operators::chain::check_size(doc) {
                failed = Some(error);
                return false;
            }
            // The size includes the names of the elements: a reply of many small documents must
            // stay within the size of one document.
            if docs > 0 && out.len() + doc.len() > limits.bytes_max {
                return false;
            }
            if out.len() + doc.len() > reserved {
                reserved = out.len() + doc.len() + UNRESERVED_BATCH_BYTES;
                if let Err(error) = reserve_built(reserved) {
                    // A shorter batch is an answer too.
                    failed = (docs == 0 || limits.is_whole).then_some(error);
                    return false;
                }
            }
            docs += 1;
            out.push(doc);
            true
        })?;
        if reserved > UNRESERVED_BATCH_BYTES {
            // The cursor may need what the buffer does not use.
            memory::settle(out.len());
        }
        if let Some(error) = failed {
            return Err(error);
        }
        self.returned += docs as u64;
        Ok(BatchEnd { docs, follows })
    }

    /// Returns the next document, however large it is; `None` if there is none, or none yet.
    ///
    /// # Errors
    /// Those of [`next_batch`](Self::next_batch).
    pub fn next_document(
        &mut self,
        views: &mut dyn Views,
        interrupt: &Arc<Interrupt>,
    ) -> Result<Option<DocBuf>> {
        let mut found = None;
        self.rows(views, interrupt, 1, |row| {
            found = Some(row.doc().to_owned());
            true
        })?;
        Ok(found)
    }

    /// Returns the record ids of the next documents, at most `max`, for a statement that writes
    /// them and reads each of them again. Empty only at the end.
    ///
    /// # Errors
    /// Those of the query, if it found nothing before it failed.
    pub(crate) fn next_records(
        &mut self,
        views: &mut dyn Views,
        interrupt: &Arc<Interrupt>,
        max: usize,
    ) -> Result<FoundRecords> {
        let (mut records, mut bytes) = (Vec::new(), 0);
        let ended = self.rows(views, interrupt, max, |row| {
            if bytes >= RECORDS_BYTES_MAX {
                return false;
            }
            bytes += row.size();
            records.push(row.record);
            true
        });
        match ended {
            Err(error) if records.is_empty() || error.code().is_a(ErrorClass::Interruption) => {
                Err(error)
            }
            ended => Ok(FoundRecords { records, failed: ended.err() }),
        }
    }

    /// Returns true if no rows follow.
    pub(crate) fn is_done(&self) -> bool {
        self.exhausted && self.pending.is_empty()
    }

    /// Returns the commits that it follows; `None` if its rows have an end.
    pub fn awaits(&self) -> Option<Awaits> {
        self.awaits
    }

    /// Returns how many queries have been planned for it: those of its own collection and of the other
    /// collections that it reads. More only after a change of the catalog below a join.
    pub fn queries_planned(&self) -> u64 {
        self.env.queries_planned.load(Ordering::Relaxed)
    }

    /// Returns true if the plan returns nothing before it has read its whole input.
    pub fn blocks(&self) -> bool {
        self.plan.root.blocks()
    }

    /// Calls `take` for each row until it refuses one, `max` rows are taken or none are left.
    /// Returns what follows them.
    pub(crate) fn rows(
        &mut self,
        views: &mut dyn Views,
        interrupt: &Arc<Interrupt>,
        max: usize,
        take: impl FnMut(&Row) -> bool,
    ) -> Result<Follows> {
        self.env.set_interrupt(interrupt);
        self.env.check_interrupt()?;
        let env = Arc::clone(&self.env);
        env.interruptible(|| match self.steady.take() {
            None => self.take_rows(views, max, take),
            Some(mut steady) => {
                let follows = self.take_rows(&mut steady.over(views)?, max, take);
                self.steady = Some(steady);
                follows
            }
        })
    }

    fn take_rows(
        &mut self,
        views: &mut dyn Views,
        max: usize,
        mut take: impl FnMut(&Row) -> bool,
    ) -> Result<Follows> {
        self.generation += 1;
        let variables = self.env.variable_values();
        let scope = Scope { env: &self.env, variables: &variables };
        let mut run = Run::new(scope, views, self.generation);
        run.wanted = max;
        run.of_write = self.of_write;
        let mut left = max;
        let mut offer = |row: &Row, left: &mut usize| {
            let taken = take(row);
            *left = if taken { *left - 1 } else { 0 };
            taken
        };
        let mut rows = Vec::new();
        let follows = loop {
            while left > 0
                && let Some(row) = self.pending.front()
                && offer(row, &mut left)
            {
                self.pending.pop_front();
            }
            let ended = self.pending.is_empty() && self.exhausted;
            // A pipeline detects its end only when more rows are requested, as in mongod: a batch
            // that happens to contain the last document leaves the cursor open.
            if ended && (left > 0 || !self.plan.of_pipeline) {
                // A limit has ended the rows of a cursor that stays open.
                break match self.awaits {
                    Some(_) => Follows::NothingYet { past: run.view().version() },
                    None => Follows::End,
                };
            }
            if left == 0 {
                break Follows::Rows;
            }
            let more = self.root.next(&mut run, left.min(ROWS_MAX), &mut rows);
            if let Err(error) = more {
                // A write keeps what it found before.
                rows.iter().take_while(|row| left > 0 && offer(row, &mut left)).for_each(drop);
                return Err(error);
            }
            self.exhausted = matches!(more, Ok(false));
            if run.has_ended {
                self.awaits = None;
            }
            let taken = rows.iter().take_while(|row| left > 0 && offer(row, &mut left)).count();
            self.pending.extend(rows.drain(taken..));
            rows.clear();
            if let Some(past) = run.nothing_yet.take()
                && self.pending.is_empty()
            {
                break Follows::NothingYet { past };
            }
        };
        self.generation = run.generation;
        self.root.rest();
        self.pending.iter_mut().for_each(Row::detach);
        Ok(follows)
    }

    /// Passes all rows to `give`, or what `taker` takes of them.
    pub(crate) fn all(
        &mut self,
        views: &mut dyn Views,
        interrupt: &Arc<Interrupt>,
        taker: &dyn Taker,
        give: &mut dyn FnMut(Given) -> Result<()>,
    ) -> Result<()> {
        self.env.set_interrupt(interrupt);
        self.env.check_interrupt()?;
        let env = Arc::clone(&self.env);
        env.interruptible(|| match self.steady.take() {
            None => self.give_all(views, taker, give),
            Some(mut steady) => {
                let given = self.give_all(&mut steady.over(views)?, taker, give);
                self.steady = Some(steady);
                given
            }
        })
    }

    fn give_all(
        &mut self,
        views: &mut dyn Views,
        taker: &dyn Taker,
        give: &mut dyn FnMut(Given) -> Result<()>,
    ) -> Result<()> {
        self.generation += 1;
        let variables = self.env.variable_values();
        let scope = Scope { env: &self.env, variables: &variables };
        let mut run = Run::new(scope, views, self.generation);
        run.wanted = usize::MAX;
        loop {
            self.root.feed(&mut run, taker, give)?;
            let mut rows = Vec::new();
            let more = self.root.next(&mut run, ROWS_MAX, &mut rows)?;
            give(Given::Rows(rows))?;
            if !more {
                self.exhausted = true;
                self.generation = run.generation;
                return Ok(());
            }
        }
    }

    /// Runs to the end and discards all rows.
    pub(crate) fn drain(
        &mut self,
        views: &mut dyn Views,
        interrupt: &Arc<Interrupt>,
    ) -> Result<()> {
        self.rows(views, interrupt, usize::MAX, |_| true).map(|_| ())
    }

    /// Returns the counts of the keys and documents examined so far, and the plan.
    pub fn examined(&self) -> Examined {
        let mut counters = Counters { returned: self.returned, ..Counters::of(&self.root.stats()) };
        counters.held_bytes += self.pending.iter().map(|row| row.size() as u64).sum::<u64>();
        Examined { counters, plan: Some(Arc::clone(&self.plan)), by_id: None }
    }
}
