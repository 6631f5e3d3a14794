//! `$setWindowFields` over sorted documents. The documents of a partition wait until their window
//! functions have read enough later documents. Waiting documents beyond the memory limit go to
//! disk.

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

use crate::env::{Env, Run, Scope};
use crate::operators::filtering::{renew, reset};
use crate::operators::{BoxedOperator, Filling, Operator, over};
use crate::row::{Extra, Row};

/// The rows pulled at a time.
const ROWS_MAX: usize = 256;
/// The rows returned between two checks of the interrupt and of the memory.
const CHECK_ROWS: u64 = 16;

/// The operator of `$setWindowFields`.
pub(crate) struct Windows {
    input: BoxedOperator,
    /// True if the input's rows own their bytes.
    owned_rows: bool,
    stage: Arc<WindowFields>,
    /// Rows of the input that are not assigned to a partition yet.
    arrived: VecDeque<Row>,
    /// The current partition, with the value that its documents share.
    partition: Option<(ValueBuf, Partition)>,
    /// The documents of the partition that have not been returned.
    held: Held,
    done: bool,
    steps: u64,
    arena: Bump,
    stats: NodeStats,
    memory: MemoryUse,
}

impl Windows {
    pub fn new(input: BoxedOperator, owned_rows: bool, stage: Arc<WindowFields>) -> Self {
        let functions = stage.outputs().iter().map(|output| (Box::from(output.field()), 0));
        let memory = MemoryUse { functions: functions.collect(), total: 0 };
        Windows {
            input,
            owned_rows,
            stage,
            arrived: VecDeque::new(),
            partition: None,
            held: Held::default(),
            done: false,
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
        let context = context.with_variables(scope.variables);
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
        if functions > MEMORY_BYTES_MAX {
            let text = format!(
                "Exceeded memory limit in DocumentSourceSetWindowFields, used {functions} bytes but max allowed is {MEMORY_BYTES_MAX}"
            );
            return Err(Error::location(5414201, text));
        }
        // The state of functions cannot go to disk; half of the memory is for documents.
        let limit = env.params.stage_bytes_max;
        if self.held.bytes + functions.min(limit / 2) <= limit {
            return Ok(());
        }
        self.stats.spills += 1;
        self.held.spill(env)
    }

    /// Does one step: adds a row, reads more rows, or ends a partition. Returns false if nothing is
    /// left to do.
    fn step(&mut self, run: &mut Run<'_>, rows: &mut Vec<Row>) -> Result<bool> {
        if self.partition.as_ref().is_some_and(|(_, partition)| partition.is_finished()) {
            self.partition = None;
        }
        if let Some(row) = self.arrived.pop_front() {
            if let Some(row) = self.take(row, run.scope())? {
                self.arrived.push_front(row);
            }
            return Ok(true);
        }
        if !self.done {
            run.env.check_interrupt()?;
            self.done = !self.input.next(run, ROWS_MAX, rows)?;
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

    fn rest(&mut self) {
        self.arrived.iter_mut().for_each(Row::detach);
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        let memory = Some(Box::new(self.memory.clone()));
        let functions = self.partition.as_ref().map_or(0, |(_, partition)| partition.size());
        let held_bytes = (self.held.bytes + functions) as u64;
        NodeStats { memory, held_bytes, ..over(&self.input, &self.stats) }
    }
}

/// Documents in the order of arrival: the older ones on disk if not all fit into memory.
#[derive(Default)]
struct Held {
    files: VecDeque<SpillReader>,
    rows: VecDeque<Row>,
    /// The bytes of `rows`.
    bytes: usize,
}

impl Held {
    fn push(&mut self, row: Row, detaches: bool) {
        let mut row = row;
        if detaches {
            row.detach();
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
