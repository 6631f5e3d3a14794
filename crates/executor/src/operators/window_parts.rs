//! Whole partitions of sorted rows that are in memory, with their window functions computed by
//! several threads. What they make is given on in the order of the rows.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bumpalo::Bump;
use bytes::Bytes;
use parking_lot::Mutex;
use quire_collections::{Helpers, RecordId};
use quire_document::{Doc, ValueBuf, equal};
use quire_error::{Error, Result};
use quire_mql::EvalContext;
use quire_mql::stage::WindowFields;
use quire_mql::window::Partition;
use quire_planner::explain::MemoryUse;

use crate::env::Scope;
use crate::operators::filtering::{renew, reset};
use crate::operators::windows::check_functions;
use crate::row::Row;
use crate::sorting::sorter::SortedRows;
use crate::taking::{Documents, Given, Scratch, Taker};

/// Rows of a part, at least, while there are as many.
const PART_ROWS: usize = 2048;
/// Rows of the largest part.
const PART_ROWS_MAX: usize = 64 * 1024;
/// Bytes of the documents of the largest part, going by the mean of all documents.
const PART_BYTES_MAX: usize = 8 << 20;
/// Parts that are computed before the threads wait for each other, for each thread.
const PARTS_EACH: usize = 32;
/// Bytes made, for each thread, at which no further part is begun.
const MADE_BYTES_EACH: usize = 8 << 20;
/// Documents, and their bytes, at which they are given on together.
const GIVEN_ROWS: usize = 512;
const GIVEN_BYTES: usize = 1 << 20;
/// Rows taken between two looks at the interrupt and at the memory in use.
const CHECK_ROWS: usize = 16;

/// Sorted rows that are computed in parts, each of which has whole partitions.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'p> {
    pub stage: &'p WindowFields,
    pub rows: &'p SortedRows,
    /// The stage above, if it takes all documents.
    pub taker: Option<&'p dyn Taker>,
    /// The window functions by name, and no memory.
    pub memory: &'p MemoryUse,
    pub scope: Scope<'p>,
}

/// What a part became.
pub(crate) struct Made {
    /// What is given on.
    pub given: Vec<Given>,
    /// The number of documents in it.
    pub count: u64,
    pub memory: MemoryUse,
    /// What ended the part, behind what is given on.
    pub failed: Option<Error>,
    bytes: usize,
}

impl Parts<'_> {
    /// Computes rows, from the first on, and gives what they become to `give`. Ends before a
    /// partition that is too large. Returns the number of rows that were computed.
    pub fn compute(&self, give: &mut dyn FnMut(Made) -> Result<()>) -> Result<usize> {
        let mut computed = 0;
        loop {
            let parts = self.cut(computed);
            if parts.is_empty() {
                return Ok(computed);
            }
            let given = self.compute_parts(&parts, give)?;
            computed = parts.get(given - 1).map_or(computed, |part| part.end);
            // Rows that are only given on are held until they are wanted.
            if self.taker.is_none() {
                return Ok(computed);
            }
        }
    }

    /// Computes parts on several threads; returns the number of those that were given on.
    fn compute_parts(
        &self,
        parts: &[Range<usize>],
        give: &mut dyn FnMut(Made) -> Result<()>,
    ) -> Result<usize> {
        let threads = self.scope.env.params.threads_max.min(parts.len());
        let helpers = Helpers::acquire(threads.saturating_sub(1));
        let bytes_max = MADE_BYTES_EACH * (helpers.count() + 1);
        let (taken, bytes, enough) =
            (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
        let done = Mutex::new(BTreeMap::new());
        let work = |after: &mut dyn FnMut() -> Result<()>| {
            let mut scratch = Scratch::default();
            while !enough.load(Ordering::Relaxed) {
                let number = taken.fetch_add(1, Ordering::Relaxed);
                let Some(part) = parts.get(number) else { break };
                let made = self.make(part.clone(), &mut scratch);
                let made_bytes = made.bytes + bytes.fetch_add(made.bytes, Ordering::Relaxed);
                if made.failed.is_some() || made_bytes > bytes_max {
                    enough.store(true, Ordering::Relaxed);
                }
                done.lock().insert(number, made);
                after().inspect_err(|_| enough.store(true, Ordering::Relaxed))?;
            }
            Ok::<(), Error>(())
        };
        let mut given = 0;
        let mut advance = || {
            loop {
                // The lock is not held while the stage above works.
                let next = done.lock().remove(&given);
                let Some(made) = next else { return Ok(()) };
                given += 1;
                give(made)?;
            }
        };
        let help = || drop(work(&mut || Ok(())));
        helpers.run("window", help, || work(&mut advance))?;
        advance()?;
        Ok(given)
    }

    /// Cuts the rows from `start` on into parts, up to a partition that is too large.
    fn cut(&self, start: usize) -> Vec<Range<usize>> {
        let most = self.scope.env.params.threads_max.saturating_mul(PARTS_EACH).max(1);
        let (mut parts, mut arena): (Vec<Range<usize>>, _) = (Vec::new(), Bump::new());
        let mut at = start;
        while parts.len() < most
            && at < self.rows.len()
            && let Some(end) = self.part_end(at, &mut arena)
        {
            parts.push(at..end);
            at = end;
        }
        parts
    }

    /// Returns where the part that begins at a row ends; `None` if its first partition is too
    /// large.
    fn part_end(&self, at: usize, arena: &mut Bump) -> Option<usize> {
        let first = self.partition_end(at, arena)?;
        let least = (at + PART_ROWS).min(self.rows.len());
        if first >= least {
            return Some(first);
        }
        self.partition_end(least - 1, arena).or(Some(first))
    }

    /// Returns where the partition of a row ends. `None` if it is too large from that row on, or if
    /// a document fails: the documents are then read one after the other, so that the first error
    /// is returned.
    fn partition_end(&self, at: usize, arena: &mut Bump) -> Option<usize> {
        let bytes = (self.rows.bytes() / self.rows.all().max(1)).max(1);
        let rows_max = (PART_BYTES_MAX / bytes).clamp(1, PART_ROWS_MAX);
        let key = self.partition_of(at, arena).ok()?;
        let collator = self.scope.env.shared.collator.as_deref();
        let mut has = |row: usize| {
            let other = self.partition_of(row, arena).ok()?;
            let collator = collator.map(|collator| collator as &dyn quire_document::Collator);
            Some(equal(key.as_value(), other.as_value(), collator))
        };
        let (mut within, mut step) = (at, 1);
        let mut beyond = loop {
            let next = (within + step).min(self.rows.len());
            if next == self.rows.len() || !has(next)? {
                break next;
            }
            (within, step) = (next, step * 2);
            if within - at > rows_max {
                return None;
            }
        };
        while beyond - within > 1 {
            let middle = within + (beyond - within) / 2;
            match has(middle)? {
                true => within = middle,
                false => beyond = middle,
            }
        }
        (beyond - at <= rows_max).then_some(beyond)
    }

    fn partition_of(&self, row: usize, arena: &mut Bump) -> Result<ValueBuf> {
        reset(arena);
        let Scope { env, variables } = self.scope;
        let context = EvalContext::new(arena, self.rows.doc(row), &env.shared);
        self.stage.partition_of(&context.with_variables(variables)).map(ValueBuf::new)
    }

    fn make(&self, part: Range<usize>, scratch: &mut Scratch) -> Made {
        let memory = self.memory.clone();
        let made = Made { given: Vec::new(), count: 0, memory, failed: None, bytes: 0 };
        let mut work = Work { parts: *self, scratch, made, bytes: Vec::new(), ends: Vec::new() };
        let computed = self.scope.env.interruptible(|| {
            let computed = work.compute(part);
            work.give();
            computed
        });
        let failed = computed.err();
        Made { failed, ..work.made }
    }
}

/// A part that a thread computes.
struct Work<'w, 'p> {
    parts: Parts<'p>,
    scratch: &'w mut Scratch,
    made: Made,
    /// Documents that are not given on yet.
    bytes: Vec<u8>,
    /// Where each of them ends, and which row it was.
    ends: Vec<(usize, usize)>,
}

/// A partition that a thread computes.
struct Open {
    key: ValueBuf,
    partition: Partition,
    /// The rows whose results are not known yet, and the bytes of their documents.
    waiting: Range<usize>,
    waiting_bytes: usize,
}

impl Work<'_, '_> {
    fn compute(&mut self, part: Range<usize>) -> Result<()> {
        let Parts { stage, rows, scope: Scope { env, variables }, .. } = self.parts;
        let (mut open, mut arena): (Option<Open>, _) = (None, Bump::new());
        for row in part {
            if row.is_multiple_of(CHECK_ROWS) {
                env.check_interrupt()?;
            }
            renew(&mut arena, env)?;
            let doc = rows.doc(row);
            let context = EvalContext::new(&arena, doc, &env.shared).with_variables(variables);
            let context = stage.extract(&context)?;
            let key = stage.partition_of(&context)?;
            let ends = |open: &mut Open| !equal(open.key.as_value(), key, context.collator());
            if let Some(ended) = open.take_if(ends) {
                self.end(ended)?;
            }
            let open = match &mut open {
                Some(open) => open,
                none => {
                    let partition = stage.partition(&context)?;
                    let (key, waiting) = (ValueBuf::new(key), row..row);
                    none.insert(Open { key, partition, waiting, waiting_bytes: 0 })
                }
            };
            open.partition.push(&context)?;
            open.waiting.end += 1;
            open.waiting_bytes += size_of::<Row>() + doc.len();
            if row.is_multiple_of(CHECK_ROWS) {
                self.check_memory(open)?;
            }
            self.take_results(open)?;
        }
        open.map_or(Ok(()), |open| self.end(open))
    }

    /// Ends a partition, and takes the results that are left.
    fn end(&mut self, mut open: Open) -> Result<()> {
        self.check_memory(&open)?;
        open.partition.end();
        self.take_results(&mut open)
    }

    fn check_memory(&mut self, open: &Open) -> Result<()> {
        let functions = open.partition.size();
        self.made.memory.note(open.partition.sizes());
        let total = (functions + open.waiting_bytes) as u64;
        self.made.memory.total = self.made.memory.total.max(total);
        check_functions(functions)
    }

    /// Makes the documents whose results are known.
    fn take_results(&mut self, open: &mut Open) -> Result<()> {
        let Parts { stage, rows, scope: Scope { env, variables }, .. } = self.parts;
        while open.partition.is_ready()?
            && let Some(row) = open.waiting.next()
        {
            renew(&mut self.scratch.arena, env)?;
            let doc = rows.doc(row);
            open.waiting_bytes -= size_of::<Row>() + doc.len();
            let context = EvalContext::new(&self.scratch.arena, doc, &env.shared);
            let doc = stage.output(&mut open.partition, &context.with_variables(variables))?;
            self.bytes.extend_from_slice(doc.as_bytes());
            self.ends.push((self.bytes.len(), row));
            if self.ends.len() >= GIVEN_ROWS || self.bytes.len() >= GIVEN_BYTES {
                self.give();
            }
        }
        Ok(())
    }

    /// Gives the documents on that have been made.
    fn give(&mut self) {
        if self.ends.is_empty() {
            return;
        }
        self.made.count += self.ends.len() as u64;
        let Work { parts, scratch, bytes, ends, .. } = self;
        let taken = parts.taker.and_then(|taker| {
            let mut start = 0;
            let doc = |(end, _): &(usize, usize)| {
                let bytes = bytes.get(std::mem::replace(&mut start, *end)..*end);
                Doc::from_valid_bytes(bytes.unwrap_or_default())
            };
            let docs: Vec<Doc<'_>> = ends.iter().map(doc).collect();
            let record = |at: usize| record(parts.rows, ends, at);
            taker.take(&Documents { docs: &docs, record: &record }, scratch, parts.scope)
        });
        let given = match taken {
            Some(taken) => {
                self.made.bytes += taken.size();
                Given::Taken(taken)
            }
            None => {
                self.made.bytes += self.bytes.len() + self.ends.len() * size_of::<Row>();
                Given::Rows(self.take_rows())
            }
        };
        self.made.given.push(given);
        self.bytes.clear();
        self.ends.clear();
    }

    /// The documents that are not given on, in memory that they share.
    fn take_rows(&mut self) -> Vec<Row> {
        let (bytes, mut start) = (Bytes::from(std::mem::take(&mut self.bytes)), 0);
        let row = |(at, (end, _)): (usize, &(usize, usize))| {
            let doc = bytes.slice(std::mem::replace(&mut start, *end)..*end);
            Row::of_document(record(self.parts.rows, &self.ends, at), doc)
        };
        self.ends.iter().enumerate().map(row).collect()
    }
}

/// The record of one of some documents, of which `ends` says which rows they were.
fn record(rows: &SortedRows, ends: &[(usize, usize)], at: usize) -> RecordId {
    ends.get(at).map_or(RecordId(0), |(_, row)| rows.record(*row))
}
