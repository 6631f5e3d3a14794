//! `$setWindowFields` over sorted documents. The documents of a partition wait until their window
//! functions have read enough later documents. Waiting documents beyond the memory limit go to
//! disk. If the rows of a sort are all in memory, several threads compute parts of them.

use std::collections::VecDeque;
use std::sync::Arc;

use bumpalo::Bump;
use bytes::Bytes;
use quire_collections::{RecordId, SpillReader, SpillWriter};
use quire_document::{DocBuf, ValueBuf, equal};
use quire_error::{Error, Result};
use quire_mql::EvalContext;
use quire_mql::accumulator::MEMORY_BYTES_MAX;
use quire_mql::stage::WindowFields;
use quire_mql::window::Partition;
use quire_planner::explain::{MemoryUse, NodeStats};

use crate::chunks::Chunks;
use crate::env::{Env, Run, Scope};
use crate::holding::{Holding, refused};
use crate::operators::filtering::{renew, reset};
use crate::operators::sort::Sort;
use crate::operators::window_parts::{Made, Parts};
use crate::operators::{BoxedOperator, Filling, Operator};
use crate::row::{Extra, Row};
use crate::taking::{Given, Taker};

/// The rows pulled at a time.
const ROWS_MAX: usize = 256;
/// The requested rows from which on parts are computed. A cursor requests few rows at a time, and keeps what
/// is computed ahead in memory.
const PARTED_ROWS_MIN: usize = 16 * 1024;
/// The rows returned between two checks of the interrupt and of the memory.
const CHECK_ROWS: u64 = 16;

/// The operator of `$setWindowFields`.
pub(crate) struct Windows {
    input: Input,
    /// True if the input's rows own their bytes.
    owned_rows: bool,
    stage: Arc<WindowFields>,
    /// Rows with results that were computed in parts, and the error after them.
    made: VecDeque<Row>,
    failed: Option<Error>,
    /// Rows of the input that are not assigned to a partition yet.
    arrived: VecDeque<Row>,
    /// The current partition, with the value that its documents share.
    partition: Option<(ValueBuf, Partition)>,
    /// The documents of the partition that have not been returned.
    held: Held,
    /// The memory of `held` and of the functions.
    holding: Holding,
    done: bool,
    /// True if rows are read one by one, so that the input can take the last one back.
    reads_one_by_one: bool,
    steps: u64,
    arena: Bump,
    stats: NodeStats,
    memory: MemoryUse,
}

/// The input of the stage: sorted documents.
pub(crate) enum Input {
    Rows(BoxedOperator),
    Sort(Box<Sort>),
}

impl Input {
    fn operator(&self) -> &dyn Operator {
        match self {
            Input::Rows(input) => &**input,
            Input::Sort(sort) => &**sort,
        }
    }

    fn operator_mut(&mut self) -> &mut dyn Operator {
        match self {
            Input::Rows(input) => &mut **input,
            Input::Sort(sort) => &mut **sort,
        }
    }

    /// Returns the sort if its rows can be computed in parts.
    fn parted(&mut self, run: &mut Run<'_>) -> Result<Option<&mut Sort>> {
        let Input::Sort(sort) = self else { return Ok(None) };
        Ok(sort.documents(run)?.is_some().then_some(&mut **sort))
    }
}

/// Fails if window functions hold more than they may.
pub(super) fn check_functions(bytes: usize) -> Result<()> {
    if bytes <= MEMORY_BYTES_MAX {
        return Ok(());
    }
    let text = format!(
        "Exceeded memory limit in DocumentSourceSetWindowFields, used {bytes} bytes but max allowed is {MEMORY_BYTES_MAX}"
    );
    Err(Error::location(5414201, text))
}

impl Windows {
    pub fn new(input: Input, owned_rows: bool, stage: Arc<WindowFields>) -> Self {
        let functions = stage.outputs().iter().map(|output| (Box::from(output.field()), 0));
        let memory = MemoryUse { functions: functions.collect(), total: 0 };
        Windows {
            input,
            owned_rows,
            stage,
            made: VecDeque::new(),
            failed: None,
            arrived: VecDeque::new(),
            partition: None,
            held: Held::default(),
            holding: Holding::default(),
            done: false,
            reads_one_by_one: false,
            steps: 0,
            arena: Bump::new(),
            stats: NodeStats::default(),
            memory,
        }
    }

    /// Returns the next document whose results are complete.
    fn ready(&mut self, scope: Scope<'_>) -> Result<Option<Row>> {
        let Some((_, partition)) = &mut self.partition else { return Ok(None) };
        if !partition.is_ready()? {
            return Ok(None);
        }
        let Some(row) = self.held.pop()? else { return Ok(None) };
        renew(&mut self.arena, scope.env)?;
        let context = EvalContext::new(&self.arena, row.doc(), &scope.env.shared);
        let context = context.with_variables(scope.variables);
        let doc = self.stage.output(partition, &context)?;
        let doc = Bytes::copy_from_slice(doc.as_bytes());
        Ok(Some(Row { doc: Some(doc), ..row }))
    }

    /// Adds a row to the current partition, or ends the partition and returns the row.
    fn take(&mut self, row: Row, scope: Scope<'_>) -> Result<Option<Row>> {
        let mut row = row;
        row.know_doc()?;
        reset(&mut self.arena);
        let context = EvalContext::new(&self.arena, row.doc(), &scope.env.shared);
        let context = self.stage.extract(&context.with_variables(scope.variables))?;
        let key = self.stage.partition_of(&context)?;
        match &mut self.partition {
            Some((known, partition)) if equal(known.as_value(), key, context.collator()) => {
                partition.push(&context)?;
            }
            Some((_, partition)) => {
                partition.end();
                return Ok(Some(row));
            }
            None => {
                let mut partition = self.stage.partition(&context)?;
                partition.push(&context)?;
                self.partition = Some((ValueBuf::new(key), partition));
            }
        }
        self.held.push(row, !self.owned_rows);
        self.check_memory(scope.env)?;
        Ok(None)
    }

    /// Moves waiting documents to disk if the stage exceeds its memory limit.
    fn check_memory(&mut self, env: &Env) -> Result<()> {
        let Some((_, partition)) = &self.partition else { return Ok(()) };
        let functions = partition.size();
        self.memory.total = self.memory.total.max((functions + self.held.bytes) as u64);
        if self.steps.is_multiple_of(CHECK_ROWS) {
            self.memory.note(partition.sizes());
        }
        check_functions(functions)?;
        // The state of functions cannot go to disk; half of the memory is for documents.
        let limit = env.params.stage_bytes_max;
        let fits = self.held.bytes + functions.min(limit / 2) <= limit;
        if fits && self.holding.cover_or_spill(self.held.bytes + functions)? {
            return Ok(());
        }
        if fits && (!env.may_spill || self.held.bytes < functions) {
            return Err(refused());
        }
        self.stats.spills += 1;
        self.held.spill(env)?;
        self.holding.cover(functions)
    }

    /// Computes parts of the rows into `made`. Returns false if there are none.
    fn compute_rows(&mut self, run: &mut Run<'_>) -> Result<bool> {
        let (mut made, mut failed) = (VecDeque::new(), None);
        self.compute_parts(run, None, &mut |part| {
            // A part after the one that failed counts no more.
            if failed.is_none() {
                for given in part.given {
                    let Given::Rows(rows) = given else { continue };
                    made.extend(rows);
                }
                failed = part.failed;
            }
            Ok(())
        })?;
        (self.made, self.failed) = (made, failed);
        Ok(!self.made.is_empty() || self.failed.is_some())
    }

    /// Computes rows in parts, if no partition is open and the input allows it.
    fn compute_parts(
        &mut self,
        run: &mut Run<'_>,
        taker: Option<&dyn Taker>,
        give: &mut dyn FnMut(Made) -> Result<()>,
    ) -> Result<()> {
        let (stage, stats, memory) = (&self.stage, &mut self.stats, &mut self.memory);
        let busy = self.partition.as_ref().is_some_and(|(_, partition)| !partition.is_finished());
        if busy || !self.arrived.is_empty() || !self.made.is_empty() {
            return Ok(());
        }
        self.partition = None;
        let Some(sort) = self.input.parted(run)? else { return Ok(()) };
        let Some(rows) = sort.documents(run)? else { return Ok(()) };
        let none = MemoryUse { functions: memory.functions.clone(), total: 0 };
        let parts = Parts { stage, rows, taker, memory: &none, scope: run.scope() };
        let computed = parts.compute(&mut |made| {
            stats.returned += made.count;
            memory.note(made.memory.functions.iter().map(|(_, bytes)| *bytes as usize));
            memory.total = memory.total.max(made.memory.total);
            give(made)
        })?;
        sort.advance(computed);
        Ok(())
    }

    /// Does one step: adds a row, reads more rows, or ends a partition. Returns false if nothing is
    /// left to do.
    fn step(&mut self, run: &mut Run<'_>, rows: &mut Vec<Row>) -> Result<bool> {
        if self.partition.as_ref().is_some_and(|(_, partition)| partition.is_finished()) {
            self.partition = None;
        }
        if let Some(row) = self.arrived.pop_front() {
            if let Some(row) = self.take(row, run.scope())? {
                match &mut self.input {
                    // The row begins a partition, which a part may contain.
                    Input::Sort(sort) if self.reads_one_by_one => {
                        sort.step_back();
                        self.done = false;
                    }
                    _ => self.arrived.push_front(row),
                }
            }
            return Ok(true);
        }
        if !self.done {
            run.env.check_interrupt()?;
            let many = run.wanted >= PARTED_ROWS_MIN;
            self.reads_one_by_one = many && self.input.parted(run)?.is_some();
            let rows_max = if self.reads_one_by_one { 1 } else { ROWS_MAX };
            self.done = !self.input.operator_mut().next(run, rows_max, rows)?;
            self.arrived.extend(rows.drain(..));
            return Ok(true);
        }
        match &mut self.partition {
            Some((_, partition)) => {
                self.memory.note(partition.sizes());
                partition.end();
                Ok(true)
            }
            None => Ok(false),
        }
    }
}

impl Operator for Windows {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let (mut rows, mut filling) = (Vec::new(), Filling::new(out, max));
        while !filling.is_full() {
            if let Some(row) = self.made.pop_front() {
                filling.push(row);
                continue;
            }
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            if run.wanted >= PARTED_ROWS_MIN && self.compute_rows(run)? {
                continue;
            }
            self.steps += 1;
            if self.steps.is_multiple_of(CHECK_ROWS) {
                run.env.check_interrupt()?;
            }
            if let Some(row) = self.ready(run.scope())? {
                self.stats.returned += 1;
                filling.push(row);
            } else if !self.step(run, &mut rows)? {
                self.stats.is_eof = true;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn feed(
        &mut self,
        run: &mut Run<'_>,
        taker: &dyn Taker,
        give: &mut dyn FnMut(Given) -> Result<()>,
    ) -> Result<()> {
        self.compute_parts(run, Some(taker), &mut |made| {
            made.given.into_iter().try_for_each(&mut *give)?;
            made.failed.map_or(Ok(()), Err)
        })
    }

    fn rest(&mut self) {
        self.arrived.iter_mut().for_each(Row::detach);
        self.input.operator_mut().rest();
    }

    fn stats(&self) -> NodeStats {
        let memory = Some(Box::new(self.memory.clone()));
        let functions = self.partition.as_ref().map_or(0, |(_, partition)| partition.size());
        let made: usize = self.made.iter().map(Row::size).sum();
        let uncharged = (self.held.bytes + functions).saturating_sub(self.holding.bytes());
        let held_bytes = (uncharged + made) as u64;
        let inputs = vec![self.input.operator().stats()];
        NodeStats { memory, held_bytes, inputs, ..self.stats.clone() }
    }
}

/// Documents in the order of arrival: the older ones on disk if not all fit into memory.
#[derive(Default)]
struct Held {
    files: VecDeque<SpillReader>,
    rows: VecDeque<Row>,
    chunks: Chunks,
    /// The bytes of `rows`.
    bytes: usize,
}

impl Held {
    fn push(&mut self, row: Row, detaches: bool) {
        let mut row = row;
        if detaches {
            row.detach_into(&mut self.chunks);
        }
        if let Some(extra) = &mut row.extra {
            extra.key = None;
        }
        self.bytes += row.size();
        self.rows.push_back(row);
    }

    fn pop(&mut self) -> Result<Option<Row>> {
        while let Some(file) = self.files.front_mut() {
            match read_row(file)? {
                Some(row) => return Ok(Some(row)),
                None => self.files.pop_front(),
            };
        }
        let row = self.rows.pop_front();
        self.bytes -= row.as_ref().map_or(0, Row::size);
        Ok(row)
    }

    /// Writes all rows in memory to a file. Fails with 5643011 if the stage must not use the disk.
    fn spill(&mut self, env: &Env) -> Result<()> {
        let Some(directory) = env.spill_directory() else {
            let text = format!(
                "Exceeded max memory. Current memory: {} bytes. Max allowed memory: {} bytes. Set 'allowDiskUse: true' to spill to disk",
                self.bytes, env.params.stage_bytes_max
            );
            return Err(Error::location(5643011, text));
        };
        let mut writer = SpillWriter::create(directory)?;
        for row in self.rows.drain(..) {
            let metadata = row.extra.as_ref().and_then(|extra| extra.to_spill());
            writer.write(&[
                &row.record.0.to_le_bytes(),
                row.doc().as_bytes(),
                metadata.as_ref().map_or(&[], DocBuf::as_bytes),
            ])?;
        }
        self.bytes = 0;
        self.files.push_back(writer.into_reader()?);
        Ok(())
    }
}

fn read_row(file: &mut SpillReader) -> Result<Option<Row>> {
    let Some(record) = file.read()? else { return Ok(None) };
    let mut part = || file.read()?.ok_or_else(|| Error::internal("a spilled file ended early"));
    let (doc, metadata) = (part()?, part()?);
    let record = RecordId(record.try_into().map_or(0, u64::from_le_bytes));
    let mut row = Row::of_document(record, Bytes::from(doc));
    row.extra = Extra::from_spill(&metadata);
    Ok(Some(row))
}
