//! `$densify`: sorts documents by a field, and adds documents for the missing values between them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bumpalo::Bump;
use quire_document::key::{self, TypeBits};
use quire_document::{Value, ValueBuf, compare};
use quire_error::{Error, Result};
use quire_mql::EvalContext;
use quire_mql::accumulator::MEMORY_BYTES_MAX;
use quire_mql::stage::{Densify, DensifyBounds};
use quire_planner::explain::NodeStats;

use crate::env::{Run, Scope};
use crate::operators::filtering::renew;
use crate::operators::{BoxedOperator, Filling, Operator, over};
use crate::row::Row;

/// The rows pulled at a time.
const ROWS_MAX: usize = 256;
/// The largest number of documents that a stage adds. MongoDB: internalQueryMaxAllowedDensifyDocs
/// (5897900).
const MADE_MAX: u64 = 500_000;
/// The bytes that a partition takes besides its values.
const PARTITION_BYTES: usize = 160;

/// The operator of `$densify`.
pub(crate) struct DensifyOp {
    input: BoxedOperator,
    stage: Arc<Densify>,
    arrived: VecDeque<Row>,
    /// True after the end of the input.
    done: bool,
    partitions: Partitions,
    /// The least value of all documents.
    least: Option<ValueBuf>,
    /// The greatest value so far.
    greatest: Option<ValueBuf>,
    work: Work,
    made: u64,
    arena: Bump,
    stats: NodeStats,
}

/// The next action of the stage.
enum Work {
    /// Reads the next row.
    Read,
    /// Adds the documents of a partition before a row, then returns the row.
    Before { partition: usize, row: Box<Row>, value: ValueBuf },
    /// The input has ended: completes the partitions from this number on.
    Complete(usize),
}

/// The partitions found so far, numbered in the order of their first documents.
#[derive(Default)]
struct Partitions {
    numbers: HashMap<Vec<u8>, usize>,
    list: Vec<Partition>,
    bytes: usize,
}

struct Partition {
    values: Vec<Option<ValueBuf>>,
    /// The value of the next document to add; `None` if there is none.
    next: Option<ValueBuf>,
}

impl DensifyOp {
    pub fn new(input: BoxedOperator, stage: Arc<Densify>) -> Self {
        DensifyOp {
            input,
            stage,
            arrived: VecDeque::new(),
            done: false,
            partitions: Partitions::default(),
            least: None,
            greatest: None,
            work: Work::Read,
            made: 0,
            arena: Bump::new(),
            stats: NodeStats::default(),
        }
    }

    /// Processes a row. Returns it if no document must be added before it.
    fn take(&mut self, row: Row, scope: Scope<'_>) -> Result<Option<Row>> {
        let mut row = row;
        row.know_doc()?;
        renew(&mut self.arena, scope.env)?;
        let context = EvalContext::new(&self.arena, row.doc(), &scope.env.shared);
        let context = context.with_variables(scope.variables);
        let Some(value) = self.stage.value(&context)? else { return Ok(Some(row)) };
        let value = ValueBuf::new(value);
        if self.least.is_none() {
            self.least = Some(value.clone());
        }
        self.greatest = Some(value.clone());
        let values = self.stage.partition(&context)?;
        let mut bytes = Vec::new();
        for value in &values {
            let bits = &mut TypeBits::new();
            match value {
                Some(value) => {
                    key::append_full(*value, false, context.collator(), &mut bytes, bits);
                }
                None => key::append_missing(false, &mut bytes, bits),
            }
        }
        let known = self.partitions.numbers.get(&bytes).copied();
        let partition = match known {
            Some(number) => {
                self.partitions.follow(number, &values);
                number
            }
            None => {
                let next = match self.stage.bounds() {
                    DensifyBounds::Full => self.least.clone(),
                    DensifyBounds::Partition => Some(value.clone()),
                    DensifyBounds::Explicit(low, _) => Some(low.clone()),
                };
                let values = values.iter().map(|value| value.map(ValueBuf::new)).collect();
                self.partitions.open(bytes, Partition { values, next })?
            }
        };
        self.work = Work::Before { partition, row: Box::new(row), value };
        Ok(None)
    }

    /// Adds the next document of a partition below `limit`, or up to it if `included`.
    fn make(&mut self, number: usize, limit: &ValueBuf, included: bool) -> Result<Option<Row>> {
        let Some(partition) = self.partitions.list.get_mut(number) else { return Ok(None) };
        let Some(value) = partition.next.clone() else { return Ok(None) };
        let is_below = |limit: &ValueBuf, included: bool| {
            let order = compare(value.as_value(), limit.as_value(), None);
            order.is_lt() || (included && order.is_eq())
        };
        let in_bounds = match self.stage.bounds() {
            DensifyBounds::Explicit(_, high) => is_below(high, false),
            _ => true,
        };
        if !in_bounds || !is_below(limit, included) {
            return Ok(None);
        }
        self.made += 1;
        if self.made > MADE_MAX {
            let text = format!(
                "Generated {} documents in $densify, which is over the limit of {MADE_MAX}. Increase the 'internalQueryMaxAllowedDensifyDocs' parameter to allow more generated documents",
                self.made
            );
            return Err(Error::location(5897900, text));
        }
        partition.next = after(&self.stage, &value);
        Ok(Some(Row::made(self.stage.document(&partition.values, &value))))
    }

    /// Returns the next row that can be produced without the input.
    fn ready(&mut self) -> Result<Option<Row>> {
        match std::mem::replace(&mut self.work, Work::Read) {
            Work::Read => Ok(None),
            Work::Before { partition, row, value } => {
                if let Some(made) = self.make(partition, &value, false)? {
                    self.work = Work::Before { partition, row, value };
                    return Ok(Some(made));
                }
                self.pass(partition, &value);
                Ok(Some(*row))
            }
            Work::Complete(number) => self.complete(number),
        }
    }

    /// Skips the value that a document has.
    fn pass(&mut self, number: usize, value: &ValueBuf) {
        if let Some(partition) = self.partitions.list.get_mut(number)
            && let Some(next) = &partition.next
            && compare(next.as_value(), value.as_value(), None).is_eq()
        {
            partition.next = after(&self.stage, next);
        }
    }

    /// Returns the next missing document after the last one of a partition, from partition `number`
    /// on; `None` if no partition lacks one.
    fn complete(&mut self, number: usize) -> Result<Option<Row>> {
        let (limit, included) = match self.stage.bounds() {
            DensifyBounds::Partition => (None, false),
            DensifyBounds::Full => (self.greatest.clone(), true),
            DensifyBounds::Explicit(_, high) => (Some(high.clone()), false),
        };
        let mut number = number;
        if let Some(limit) = limit {
            while number < self.partitions.list.len() {
                if let Some(made) = self.make(number, &limit, included)? {
                    self.work = Work::Complete(number);
                    return Ok(Some(made));
                }
                number += 1;
            }
        }
        self.work = Work::Complete(usize::MAX);
        Ok(None)
    }

    /// Notes the end of the input. A range with explicit bounds is filled even without any
    /// document.
    fn end(&mut self) -> Result<()> {
        self.work = Work::Complete(0);
        if let DensifyBounds::Explicit(low, _) = self.stage.bounds()
            && self.partitions.list.is_empty()
            && !self.stage.has_partitions()
        {
            let next = Some(low.clone());
            self.partitions.open(Vec::new(), Partition { values: Vec::new(), next })?;
        }
        Ok(())
    }
}

/// Returns the value one step after `value`; `None` if there is none.
fn after(stage: &Densify, value: &ValueBuf) -> Option<ValueBuf> {
    let next = stage.step_from(value.as_value())?;
    compare(next.as_value(), value.as_value(), None).is_gt().then_some(next)
}

impl Partitions {
    fn open(&mut self, key: Vec<u8>, partition: Partition) -> Result<usize> {
        let values = partition.values.iter().flatten().map(ValueBuf::size);
        self.bytes += PARTITION_BYTES + key.len() + values.sum::<usize>();
        if self.bytes > MEMORY_BYTES_MAX {
            let text = format!(
                "$densify exceeded memory limit of {MEMORY_BYTES_MAX} bytes for its partitions"
            );
            return Err(Error::location(6007200, text));
        }
        let number = self.list.len();
        self.numbers.insert(key, number);
        self.list.push(partition);
        Ok(number)
    }

    /// Gives a partition the key values of its latest document. They may be equal to earlier ones
    /// but not identical: `Apple` and `apple` in a collation, 1 and 1.0. Documents that are added
    /// later have them.
    fn follow(&mut self, number: usize, values: &[Option<Value<'_>>]) {
        let Some(partition) = self.list.get_mut(number) else { return };
        for (kept, value) in partition.values.iter_mut().zip(values) {
            if let (Some(kept), Some(value)) = (kept, value) {
                self.bytes -= kept.size();
                *kept = ValueBuf::new(*value);
                self.bytes += kept.size();
            }
        }
    }
}

impl Operator for DensifyOp {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let (mut rows, mut filling) = (Vec::new(), Filling::new(out, max));
        while !filling.is_full() {
            if let Some(row) = self.ready()? {
                filling.push(row);
                self.stats.returned += 1;
                continue;
            }
            if let Work::Complete(_) = self.work {
                self.stats.is_eof = true;
                return Ok(false);
            }
            if let Some(row) = self.arrived.pop_front() {
                if let Some(row) = self.take(row, run.scope())? {
                    filling.push(row);
                    self.stats.returned += 1;
                }
                continue;
            }
            if self.done {
                self.end()?;
                continue;
            }
            run.env.check_interrupt()?;
            self.done = !self.input.next(run, ROWS_MAX, &mut rows)?;
            self.arrived.extend(rows.drain(..));
        }
        run.env.check_interrupt()?;
        Ok(true)
    }

    fn rest(&mut self) {
        self.arrived.iter_mut().for_each(Row::detach);
        if let Work::Before { row, .. } = &mut self.work {
            row.detach();
        }
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        over(&self.input, &self.stats)
    }
}
