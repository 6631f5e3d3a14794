//! Stages that work on one document at a time, run as one: a document goes through all of them
//! without being copied in between.

use std::collections::VecDeque;
use std::sync::Arc;

use bumpalo::Bump;
use bytes::Bytes;
use quire_document::{Doc, DocBuf};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::EvalContext;
use quire_mql::projection::Projection;
use quire_mql::stage::{Match, Position, Redact, Stage, Transforms, Unwind};
use quire_planner::explain::NodeStats;
use smallvec::SmallVec;

use crate::env::{Run, Scope};
use crate::operators::filtering::renew;
use crate::operators::metadata::metadata_of;
use crate::operators::{BATCH_BYTES, BoxedOperator, Filling, Operator};
use crate::row::Row;

/// Largest document that may leave a pipeline. MongoDB: 16 MiB and 16 KiB
/// (10334 BSONObjectTooLarge).
const DOC_BYTES_MAX: usize = 16 * 1024 * 1024 + 16 * 1024;
/// Rows asked for at a time.
const ROWS_MAX: usize = 256;

/// Elements of an array that are taken apart at first.
const ELEMENTS_FIRST: usize = 16;

/// What is done with each document.
enum Action {
    Match(Arc<Match>),
    Transform(Transforms),
    Unwind(Arc<Unwind>),
    Redact(Arc<Redact>),
    /// Keeps the fields that are read later.
    Keep(Arc<Projection>),
}

struct Step {
    action: Action,
    /// The number of the plan's nodes that it stands for: several transforms run as one.
    nodes: usize,
}

/// How many documents each step of a chain has let through.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passed(SmallVec<[u64; 4]>);

impl Passed {
    fn count(&mut self, step: usize) {
        if let Some(count) = self.0.get_mut(step) {
            *count += 1;
        }
    }

    /// Adds what the same steps have let through elsewhere.
    pub fn add(&mut self, other: &Passed) {
        self.0.iter_mut().zip(&other.0).for_each(|(count, more)| *count += more);
    }
}

/// A row whose document is known on its way through a chain, with what evaluating needs.
#[derive(Clone, Copy)]
pub(crate) struct Sent<'s> {
    pub row: &'s Row,
    pub scope: Scope<'s>,
}

/// Stages in a row.
#[derive(Default)]
pub(crate) struct Chain {
    steps: Vec<Step>,
    /// These steps or later ones read metadata of rows.
    pub reads_metadata: bool,
}

impl Chain {
    /// Takes a stage in, or gives it back if it does not handle each document by itself.
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

    /// Begins with a document that has only the fields that are read later.
    pub fn keep(&mut self, fields: Arc<Projection>) {
        self.steps.insert(0, Step { action: Action::Keep(fields), nodes: 1 });
    }

    /// Returns counters for its steps, all of them 0.
    pub fn none_passed(&self) -> Passed {
        Passed(SmallVec::from_elem(0, self.steps.len()))
    }

    /// Returns the statistics of the plan's nodes that it stands for, above those of its input.
    pub fn stats(&self, passed: &Passed, input: NodeStats) -> NodeStats {
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

    /// Sends a row's document through; `emit` gets everything that comes out, with its context.
    pub fn run(
        &self,
        sent: Sent<'_>,
        arena: &mut Bump,
        passed: &mut Passed,
        emit: &mut dyn FnMut(&EvalContext<'_>) -> Result<()>,
    ) -> Result<()> {
        let all = (Position::default(), usize::MAX);
        self.run_some(sent, arena, all, passed, emit).map(|_| ())
    }

    /// Sends the document of a context through.
    pub fn run_on(
        &self,
        context: &EvalContext<'_>,
        passed: &mut Passed,
        emit: &mut dyn FnMut(&EvalContext<'_>) -> Result<()>,
    ) -> Result<()> {
        self.step(0, context, passed, emit)
    }

    /// As `run`, where a first `$unwind` begins at the element `start` and takes at most `max`;
    /// returns where to go on.
    fn run_some(
        &self,
        sent: Sent<'_>,
        arena: &mut Bump,
        (start, max): (Position, usize),
        passed: &mut Passed,
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

    /// The same steps in several chains, each of which begins with at most one `$unwind`: what
    /// an array becomes can then be given piece by piece.
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

    /// Sends the document of a context through the steps from number `at` on.
    fn step(
        &self,
        at: usize,
        context: &EvalContext<'_>,
        passed: &mut Passed,
        emit: &mut dyn FnMut(&EvalContext<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some(step) = self.steps.get(at) else { return emit(context) };
        let mut next = |passed: &mut Passed, context: &EvalContext<'_>| {
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

/// Fails for a document that no reply can hold.
pub(crate) fn check_size(doc: Doc<'_>) -> Result<()> {
    if doc.len() <= DOC_BYTES_MAX {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::BSONObjectTooLarge,
        format!(
            "BSONObj size: {} is invalid. Size must be between 0 and {DOC_BYTES_MAX}",
            doc.len()
        ),
    ))
}

/// A chain as a stage of its own.
pub(crate) struct ChainOp {
    input: BoxedOperator,
    chain: Chain,
    passed: Passed,
    arena: Bump,
    /// What came from the input and has not been sent through.
    waiting: VecDeque<Row>,
    ready: VecDeque<Row>,
    /// A document whose array is not all taken apart yet.
    open: Option<(Row, Position)>,
    /// Elements of an array that are taken apart next. Follows the size of the documents that the
    /// last ones became, which can be far larger than the document they came from.
    elements: usize,
    done: bool,
    is_eof: bool,
}

impl ChainOp {
    /// Returns the chain above its input; several stages where it takes arrays apart.
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

    /// Sends a document through from `start` on, as far as `max` elements of a first `$unwind`.
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
                // An `$unwind` may copy all of the document for each element.
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
        }
    }

    fn rest(&mut self) {
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        let stats = self.chain.stats(&self.passed, self.input.stats());
        NodeStats { is_eof: self.is_eof, ..stats }
    }
}
