//! A chain: adjacent stages that process each document separately, run as one operator. A document
//! passes through all of them without a copy in between.

use std::collections::VecDeque;
use std::sync::Arc;

use bumpalo::Bump;
use bytes::Bytes;
use quire_document::{Doc, DocBuf};
use quire_error::Result;
use quire_mql::EvalContext;
use quire_mql::projection::Projection;
use quire_mql::stage::{Match, Position, Redact, Stage, Transforms, Unwind};
use quire_planner::explain::NodeStats;
use smallvec::SmallVec;

use crate::env::{Run, Scope};
use crate::holding::reserve_built;
use crate::operators::filtering::renew;
use crate::operators::metadata::metadata_of;
use crate::operators::{BATCH_BYTES, BoxedOperator, Filling, Operator};
use crate::row::Row;

/// The largest document that may leave a pipeline, in bytes. MongoDB: 16 MiB and 16 KiB (10334
/// BSONObjectTooLarge).
const DOC_BYTES_MAX: usize = 16 * 1024 * 1024 + 16 * 1024;
/// The rows pulled at a time.
const ROWS_MAX: usize = 256;

/// The number of elements of an array that are unwound first.
const ELEMENTS_FIRST: usize = 16;

/// What a step does with each document.
enum Action {
    Match(Arc<Match>),
    Transform(Transforms),
    Unwind(Arc<Unwind>),
    Redact(Arc<Redact>),
    /// Keeps only the fields that later stages read.
    Keep(Arc<Projection>),
}

struct Step {
    action: Action,
    /// The number of plan nodes that it stands for: adjacent transforms are merged.
    nodes: usize,
}

/// The number of documents that each step of a chain has let through.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepCounts(SmallVec<[u64; 4]>);

impl StepCounts {
    fn count(&mut self, step: usize) {
        if let Some(count) = self.0.get_mut(step) {
            *count += 1;
        }
    }

    /// Adds the counters of another run of the same steps.
    pub fn add(&mut self, other: &StepCounts) {
        self.0.iter_mut().zip(&other.0).for_each(|(count, more)| *count += more);
    }
}

/// A row with a loaded document on its way through a chain, and the scope of expressions.
#[derive(Clone, Copy)]
pub(crate) struct Sent<'s> {
    pub row: &'s Row,
    pub scope: Scope<'s>,
}

/// A sequence of adjacent stages.
#[derive(Default)]
pub(crate) struct Chain {
    steps: Vec<Step>,
    /// True if these steps or later ones read metadata of rows.
    pub reads_metadata: bool,
}

impl Chain {
    /// Adds a stage; returns it if it does not process each document separately.
    pub fn push(&mut self, stage: Stage) -> Option<Stage> {
        let action = match stage {
            Stage::Match(stage) => Action::Match(stage),
            Stage::Transform(stage) => match self.steps.last_mut() {
                Some(Step { action: Action::Transform(transforms), nodes }) => {
                    transforms.push(stage);
                    *nodes += 1;
                    return None;
                }
                _ => Action::Transform(stage.into()),
            },
            Stage::Unwind(stage) => Action::Unwind(stage),
            Stage::Redact(stage) => Action::Redact(stage),
            other => return Some(other),
        };
        self.steps.push(Step { action, nodes: 1 });
        None
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Adds a first step that keeps only the fields that later stages read.
    pub fn keep(&mut self, fields: Arc<Projection>) {
        self.steps.insert(0, Step { action: Action::Keep(fields), nodes: 1 });
    }

    /// Returns the counters of its steps, all 0.
    pub fn none_passed(&self) -> StepCounts {
        StepCounts(SmallVec::from_elem(0, self.steps.len()))
    }

    /// Returns the statistics of the plan nodes that it stands for, above those of its input.
    pub fn stats(&self, passed: &StepCounts, input: NodeStats) -> NodeStats {
        let mut stats = input;
        for (step, count) in self.steps.iter().zip(&passed.0) {
            for _ in 0..step.nodes {
                let is_eof = stats.is_eof;
                let inputs = vec![stats];
                stats = NodeStats { returned: *count, is_eof, inputs, ..NodeStats::default() };
            }
        }
        stats
    }

    /// Passes a row's document through the chain. Calls `emit` for each result, with its context.
    pub fn run(
        &self,
        sent: Sent<'_>,
        arena: &mut Bump,
        passed: &mut StepCounts,
        emit: &mut dyn FnMut(&EvalContext<'_>) -> Result<()>,
    ) -> Result<()> {
        let all = (Position::default(), usize::MAX);
        self.run_some(sent, arena, all, passed, emit).map(|_| ())
    }

    /// Passes the document of a context through the chain.
    pub fn run_on(
        &self,
        context: &EvalContext<'_>,
        passed: &mut StepCounts,
        emit: &mut dyn FnMut(&EvalContext<'_>) -> Result<()>,
    ) -> Result<()> {
        self.step(0, context, passed, emit)
    }

    /// Does what `run` does, but unwinds at most `max` elements in a first `$unwind`, from the
    /// element `start` on. Returns the position at which to continue.
    fn run_some(
        &self,
        sent: Sent<'_>,
        arena: &mut Bump,
        (start, max): (Position, usize),
        passed: &mut StepCounts,
        emit: &mut dyn FnMut(&EvalContext<'_>) -> Result<()>,
    ) -> Result<Option<Position>> {
        let Scope { env, variables } = sent.scope;
        renew(arena, env)?;
        let metadata = self.reads_metadata.then(|| metadata_of(sent.row)).transpose()?;
        let context = EvalContext::new(arena, sent.row.doc(), &env.shared)
            .with_variables(variables)
            .with_metadata(metadata.as_ref().map(DocBuf::as_doc));
        match self.steps.first() {
            Some(Step { action: Action::Unwind(unwind), .. }) => {
                unwind.for_each(&context, start, max, &mut |inner| {
                    passed.count(0);
                    self.step(1, inner, passed, emit)
                })
            }
            _ => self.step(0, &context, passed, emit).map(|()| None),
        }
    }

    /// Splits the chain so that each part begins with at most one `$unwind`: the results of an
    /// array can then be produced in pieces.
    fn split(self) -> Vec<Chain> {
        let reads_metadata = self.reads_metadata;
        let mut chains: Vec<Chain> = Vec::new();
        for step in self.steps {
            match chains.last_mut() {
                Some(chain) if !matches!(step.action, Action::Unwind(_)) => chain.steps.push(step),
                _ => {
                    let steps = vec![step];
                    chains.push(Chain { steps, reads_metadata });
                }
            }
        }
        chains
    }

    /// Passes the document of a context through the steps from number `at` on.
    fn step(
        &self,
        at: usize,
        context: &EvalContext<'_>,
        passed: &mut StepCounts,
        emit: &mut dyn FnMut(&EvalContext<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some(step) = self.steps.get(at) else { return emit(context) };
        let mut next = |passed: &mut StepCounts, context: &EvalContext<'_>| {
            passed.count(at);
            self.step(at + 1, context, passed, emit)
        };
        match &step.action {
            Action::Match(stage) => match stage.filter().matches(context.root, context)? {
                true => next(passed, context),
                false => Ok(()),
            },
            Action::Transform(transforms) => {
                let doc = transforms.apply(context)?;
                next(passed, &context.with_root(doc))
            }
            Action::Unwind(unwind) => {
                let (start, all) = (Position::default(), usize::MAX);
                let mut emit = |inner: &EvalContext<'_>| next(passed, inner);
                unwind.for_each(context, start, all, &mut emit).map(|_| ())
            }
            Action::Keep(fields) => {
                let doc = context.document(|writer| fields.apply(context.root, writer, context))?;
                next(passed, &context.with_root(doc))
            }
            Action::Redact(redact) => match redact.apply(context)? {
                Some(doc) => next(passed, &context.with_root(doc)),
                None => Ok(()),
            },
        }
    }
}

/// Fails for a document that is too large for a reply.
///
/// # Errors
/// 10334 BSONObjectTooLarge.
pub fn check_size(doc: Doc<'_>) -> Result<()> {
    if doc.len() <= DOC_BYTES_MAX {
        return Ok(());
    }
    Err(quire_mql::too_large(doc.len(), doc.first()))
}

/// The operator of a chain.
pub(crate) struct ChainOp {
    input: BoxedOperator,
    chain: Chain,
    passed: StepCounts,
    arena: Bump,
    /// Rows of the input that have not been processed.
    waiting: VecDeque<Row>,
    ready: VecDeque<Row>,
    /// A document whose array is partly unwound.
    open: Option<(Row, Position)>,
    /// The number of array elements to unwind next. It follows the size of the last result
    /// documents, which can be far larger than the document they came from.
    elements: usize,
    done: bool,
    is_eof: bool,
}

impl ChainOp {
    /// Returns the operator of the chain above its input; several operators if it unwinds arrays.
    pub fn over(input: BoxedOperator, chain: Chain) -> BoxedOperator {
        chain.split().into_iter().fold(input, |input, chain| {
            Box::new(ChainOp {
                input,
                passed: chain.none_passed(),
                chain,
                arena: Bump::new(),
                waiting: VecDeque::new(),
                ready: VecDeque::new(),
                open: None,
                elements: ELEMENTS_FIRST,
                done: false,
                is_eof: false,
            })
        })
    }

    /// Processes a document from the position `start` on; a first `$unwind` unwinds at most `max`
    /// elements.
    fn expand(&mut self, row: Row, start: Position, max: usize, scope: Scope<'_>) -> Result<()> {
        let mut row = row;
        row.know_doc()?;
        let source = row.doc.clone().unwrap_or_default();
        let extra = row.extra.as_ref().filter(|_| self.chain.reads_metadata);
        let (ready, mut bytes_made) = (&mut self.ready, 0);
        let sent = Sent { row: &row, scope };
        let (arena, passed) = (&mut self.arena, &mut self.passed);
        let next = self.chain.run_some(sent, arena, (start, max), passed, &mut |context| {
            let bytes = context.root.as_bytes();
            let unchanged = bytes.as_ptr() == source.as_ptr() && bytes.len() == source.len();
            let doc = if unchanged { source.clone() } else { Bytes::copy_from_slice(bytes) };
            bytes_made += doc.len();
            ready.push_back(Row { record: row.record, doc: Some(doc), extra: extra.cloned() });
            Ok(())
        })?;
        reserve_built(bytes_made)?;
        if next.is_some() {
            let fit = max.saturating_mul(BATCH_BYTES) / bytes_made.max(1);
            self.elements = fit.clamp(1, max.saturating_mul(4));
        }
        self.open = next.map(|next| (row, next));
        Ok(())
    }
}

impl Operator for ChainOp {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let (mut rows, mut filling) = (Vec::new(), Filling::new(out, max));
        let scope = run.scope();
        loop {
            while !filling.is_full()
                && let Some(row) = self.ready.pop_front()
            {
                filling.push(row);
            }
            if filling.is_full() {
                return Ok(true);
            }
            let wanted = filling.rows_left().min(ROWS_MAX);
            let mut next = || self.waiting.pop_front().map(|row| (row, Position::default()));
            if let Some((row, start)) = self.open.take().or_else(&mut next) {
                // An `$unwind` may copy the whole document for each element.
                let fit = (BATCH_BYTES / row.size()).min(self.elements).clamp(1, wanted);
                self.expand(row, start, fit, scope)?;
                continue;
            }
            if self.done {
                self.is_eof = true;
                return Ok(false);
            }
            scope.env.check_interrupt()?;
            self.done = !self.input.next(run, wanted, &mut rows)?;
            self.waiting.extend(rows.drain(..));
            if self.waiting.is_empty() && run.nothing_yet.is_some() {
                return Ok(true);
            }
        }
    }

    fn restart(&mut self, rows: &mut Vec<Row>) -> bool {
        if !self.input.restart(rows) {
            return false;
        }
        self.waiting.clear();
        self.ready.clear();
        (self.open, self.done) = (None, false);
        true
    }

    fn rest(&mut self) {
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        let stats = self.chain.stats(&self.passed, self.input.stats());
        let open = self.open.as_ref().map(|(row, _)| row);
        let held = self.waiting.iter().chain(&self.ready).chain(open).map(Row::size).sum::<usize>();
        NodeStats { is_eof: self.is_eof, held_bytes: stats.held_bytes + held as u64, ..stats }
    }
}
