//! `$bucketAuto`: sorts documents by a value, and divides them into buckets in that order.

use std::sync::Arc;

use bumpalo::Bump;
use quire_collections::RecordId;
use quire_document::key::{self, TypeBits};
use quire_document::{Doc, DocBuf, Value, ValueBuf, compare};
use quire_error::Result;
use quire_mql::EvalContext;
use quire_mql::accumulator::{State, check_states};
use quire_mql::stage::BucketAuto;
use quire_planner::explain::NodeStats;

use crate::env::{Run, Scope};
use crate::operators::chain::StepCounts;
use crate::operators::filtering::{renew, reset};
use crate::operators::{BoxedOperator, Filling, Operator, over};
use crate::row::Row;
use crate::sorting::batch::{BATCH_BYTES_MAX, KeyedBatch};
use crate::sorting::sorter::{Sorted, Sorter};
use crate::taking::{Documents, Given, Keyed, Scratch, Taken, Taker};

/// The rows pulled at a time.
const ROWS_MAX: usize = 1024;
/// The rows added to a bucket between two checks of the interrupt.
const INTERRUPT_ROWS: u64 = 1024;

/// The operator of `$bucketAuto`.
pub(crate) struct BucketAutoOp {
    input: BoxedOperator,
    stage: Arc<BucketAuto>,
    cutter: Option<Cutter>,
    stats: NodeStats,
}

impl BucketAutoOp {
    pub fn new(input: BoxedOperator, stage: Arc<BucketAuto>) -> Self {
        BucketAutoOp { input, stage, cutter: None, stats: NodeStats::default() }
    }

    fn collect(&mut self, run: &mut Run<'_>) -> Result<Cutter> {
        let (mut sorter, mut count) = (Sorter::by_given_keys("$bucketAuto"), 0u64);
        let (mut rows, mut scratch, scope) = (Vec::new(), Scratch::default(), run.scope());
        let stage = &*self.stage;
        loop {
            let mut give = |given| match given {
                Given::Rows(rows) => {
                    count += rows.len() as u64;
                    take_rows(stage, rows, &mut sorter, &mut scratch, scope)
                }
                Given::Taken(Taken::Keyed(keyed)) => {
                    count += keyed.batch.len() as u64;
                    sorter.push_batch(keyed.batch, keyed.bytes, scope.env)
                }
                Given::Taken(_) => Err(Taken::mistaken("$bucketAuto")),
            };
            self.input.feed(run, stage, &mut give)?;
            let more = self.input.next(run, ROWS_MAX, &mut rows)?;
            give(Given::Rows(std::mem::take(&mut rows)))?;
            if !more {
                break;
            }
        }
        self.stats.spills = sorter.spills;
        let sorted = sorter.finish(run.env)?;
        Cutter::new(sorted, count, self.stage.buckets())
    }
}

/// What documents are put into buckets by becomes their key.
impl Taker for BucketAuto {
    fn take(&self, docs: &Documents<'_>, scratch: &mut Scratch, scope: Scope<'_>) -> Option<Taken> {
        let mut batch = KeyedBatch::default();
        for doc in docs.docs {
            let given = intake(self, *doc, scratch, scope).ok()?;
            batch.push(&scratch.key, RecordId(0), given.as_bytes(), None);
            if batch.size() > BATCH_BYTES_MAX {
                return None;
            }
        }
        batch.end();
        Some(Taken::Keyed(Keyed { batch, bytes: 0, passed: StepCounts::default() }))
    }
}

fn take_rows(
    stage: &BucketAuto,
    rows: Vec<Row>,
    sorter: &mut Sorter,
    scratch: &mut Scratch,
    scope: Scope<'_>,
) -> Result<()> {
    rows.into_iter().try_for_each(|mut row| {
        row.know_doc()?;
        let given = intake(stage, row.doc(), scratch, scope)?;
        sorter.push_keyed(&scratch.key, Row::made(given), scope.env)
    })
}

/// Makes what is kept of a document, and its key in the scratch.
fn intake(
    stage: &BucketAuto,
    doc: Doc<'_>,
    scratch: &mut Scratch,
    scope: Scope<'_>,
) -> Result<DocBuf> {
    let Scratch { arena, key, .. } = scratch;
    renew(arena, scope.env)?;
    let context = EvalContext::new(arena, doc, &scope.env.shared);
    let context = context.with_variables(scope.variables);
    let (value, given) = stage.intake(&context)?;
    key.clear();
    key::append_full(value, false, context.collator(), key, &mut TypeBits::new());
    Ok(given)
}

impl Operator for BucketAutoOp {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let mut cutter = match self.cutter.take() {
            Some(cutter) => cutter,
            None => run.for_all(|run| self.collect(run))?,
        };
        let mut more = true;
        let mut filling = Filling::new(out, max);
        while !filling.is_full() {
            let Some(doc) = cutter.bucket(&self.stage, run.scope())? else {
                more = false;
                break;
            };
            self.stats.returned += 1;
            filling.push(Row::made(doc));
        }
        self.cutter = Some(cutter);
        self.stats.is_eof = !more;
        Ok(more)
    }

    fn rest(&mut self) {
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        over(&self.input, &self.stats)
    }
}

/// Divides sorted rows into buckets.
struct Cutter {
    sorted: Sorted,
    /// The first row of the next bucket.
    head: Option<Row>,
    /// The upper bound of the previous bucket. If bounds are rounded it is the next lower bound.
    bound: Option<ValueBuf>,
    /// The approximate number of rows of a bucket.
    size: u64,
    buckets_left: u32,
    arena: Bump,
}

/// The current bucket.
struct Bucket<'b> {
    stage: &'b BucketAuto,
    states: Vec<Box<dyn State>>,
    max: ValueBuf,
    rows: u64,
}

impl Cutter {
    fn new(mut sorted: Sorted, count: u64, buckets: u32) -> Result<Self> {
        let size = (count as f64 / f64::from(buckets)).round() as u64;
        let head = sorted.next()?;
        let (bound, arena) = (None, Bump::new());
        Ok(Cutter { sorted, head, bound, size: size.max(1), buckets_left: buckets, arena })
    }

    /// Returns the document of the next bucket.
    fn bucket(&mut self, stage: &BucketAuto, scope: Scope<'_>) -> Result<Option<DocBuf>> {
        let Some(first) = self.head.take() else { return Ok(None) };
        reset(&mut self.arena);
        let context = EvalContext::new(&self.arena, Doc::empty(), &scope.env.shared);
        let context = context.with_variables(scope.variables);
        let min = match (stage.granularity(), self.bound.take()) {
            (None, _) => ValueBuf::new(key_of(&first)),
            (Some(_), Some(bound)) => bound,
            (Some(granularity), None) => ValueBuf::new(granularity.round_down(key_of(&first))),
        };
        let states = stage.new_states(&context)?;
        let mut bucket = Bucket { stage, states, max: ValueBuf::new(Value::Null), rows: 0 };
        bucket.take(&first, scope)?;
        self.buckets_left = self.buckets_left.saturating_sub(1);
        let is_last = self.buckets_left == 0;
        while is_last || bucket.rows < self.size {
            let Some(row) = self.sorted.next()? else { break };
            bucket.take(&row, scope)?;
        }
        self.head = absorb(&mut self.sorted, &mut bucket, scope, &context)?;
        self.bound = Some(bucket.max.clone());
        let bounds = (min.as_value(), bucket.max.as_value());
        stage.output(bounds, &bucket.states, &context).map(Some)
    }
}

/// Adds the rows after a full bucket that belong to it too: those with the same value, or below its
/// rounded upper bound. Sets the bucket's upper bound. Returns the next row.
fn absorb(
    sorted: &mut Sorted,
    bucket: &mut Bucket<'_>,
    scope: Scope<'_>,
    context: &EvalContext<'_>,
) -> Result<Option<Row>> {
    let granularity = bucket.stage.granularity();
    let edge = match granularity {
        Some(granularity) => ValueBuf::new(granularity.round_up(bucket.max.as_value())),
        None => bucket.max.clone(),
    };
    let belongs = |row: &Row| {
        let order = compare(key_of(row), edge.as_value(), context.collator());
        if granularity.is_some() { order.is_lt() } else { order.is_eq() }
    };
    let mut next = sorted.next()?;
    while let Some(row) = next.take_if(|row| belongs(row)) {
        bucket.take(&row, scope)?;
        next = sorted.next()?;
    }
    let is_zero = compare(bucket.max.as_value(), Value::Int32(0), None).is_eq();
    match (granularity, &next) {
        // Zero is in no series: a bucket of zeros ends at the beginning of the next bucket.
        (Some(granularity), Some(row)) if is_zero => {
            bucket.max = ValueBuf::new(granularity.round_down(key_of(row)));
        }
        (Some(_), _) if !is_zero => bucket.max = edge,
        (None, Some(row)) => bucket.max = ValueBuf::new(key_of(row)),
        _ => {}
    }
    Ok(next)
}

impl Bucket<'_> {
    fn take(&mut self, row: &Row, scope: Scope<'_>) -> Result<()> {
        if self.rows.is_multiple_of(INTERRUPT_ROWS) {
            scope.env.check_interrupt()?;
            check_states("$bucketAuto", &self.states)?;
        }
        self.rows += 1;
        self.max = ValueBuf::new(key_of(row));
        self.stage.add(&mut self.states, row.doc())
    }
}

/// Returns the value that decides the bucket of a row.
fn key_of(row: &Row) -> Value<'_> {
    row.doc().get("key").unwrap_or(Value::Null)
}
