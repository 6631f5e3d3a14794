//! Stages that work on one document at a time, run as one: a document goes through all of them
//! without being copied in between.

use std::collections::VecDeque;

use bumpalo::Bump;
use bytes::Bytes;
use quire_document::{Doc, DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::EvalContext;
use quire_mql::filter::Filter;
use quire_mql::projection::Projection;
use quire_mql::stage::{Position, Redact, Stage, Transforms, Unwind};
use quire_planner::explain::NodeStats;

use crate::env::{Env, Run};
use crate::operators::filtering::renew;
use crate::operators::metadata::metadata_of;
use crate::operators::{BATCH_BYTES, BoxedOperator, Operator, over};
use crate::row::Row;

/// Largest document that may leave a pipeline. MongoDB: 16 MiB and 16 KiB
/// (10334 BSONObjectTooLarge).
const DOC_BYTES_MAX: usize = 16 * 1024 * 1024 + 16 * 1024;
/// Rows asked for at a time.
const ROWS_MAX: usize = 256;

/// One stage.
pub(crate) enum Step {
    Match(Filter),
    Transform(Transforms),
    Unwind(Unwind),
    Redact(Redact),
    /// Keeps the fields that are read later.
    Keep(Box<Projection>),
}

/// A row whose document is known on its way through a chain, with what evaluating needs.
#[derive(Clone, Copy)]
pub(crate) struct Sent<'s> {
    pub row: &'s Row,
    pub env: &'s Env,
    pub variables: &'s [Option<Value<'s>>],
}

/// Stages in a row.
#[derive(Default)]
pub(crate) struct Chain {
    steps: Vec<Step>,
    /// These steps or later ones read metadata of rows.
    pub reads_metadata: bool,
}

impl Chain {
    /// Takes a stage in, or gives it back if it is none of these.
    pub fn push(&mut self, stage: Stage) -> Option<Stage> {
        let step = match stage {
            Stage::Match(stage) => Step::Match(stage.filter().clone()),
            Stage::Transform(stage) => match self.steps.last_mut() {
                Some(Step::Transform(transforms)) => {
                    transforms.push(stage);
                    return None;
                }
                _ => Step::Transform(stage.into()),
            },
            Stage::Unwind(stage) => Step::Unwind(stage),
            Stage::Redact(stage) => Step::Redact(stage),
            other => return Some(other),
        };
        self.steps.push(step);
        None
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Begins with a document that has only the fields that are read later.
    pub fn keep(&mut self, fields: Projection) {
        self.steps.insert(0, Step::Keep(Box::new(fields)));
    }

    /// Sends a row's document through; `emit` gets everything that comes out, with its context.
    pub fn run(
        &self,
        sent: Sent<'_>,
        arena: &mut Bump,
        emit: &mut dyn FnMut(&EvalContext<'_>) -> Result<()>,
    ) -> Result<()> {
        self.run_some(sent, arena, (Position::default(), usize::MAX), emit).map(|_| ())
    }

    /// The same for a document of which nothing else is known.
    pub fn run_on(
        &self,
        context: &EvalContext<'_>,
        emit: &mut dyn FnMut(&EvalContext<'_>) -> Result<()>,
    ) -> Result<()> {
        step(&self.steps, context, emit)
    }

    /// The same where a first `$unwind` begins at some element and takes at most so many; the
    /// answer is where to go on.
    fn run_some(
        &self,
        sent: Sent<'_>,
        arena: &mut Bump,
        (start, max): (Position, usize),
        emit: &mut dyn FnMut(&EvalContext<'_>) -> Result<()>,
    ) -> Result<Option<Position>> {
        renew(arena, sent.env)?;
        let metadata = self.reads_metadata.then(|| metadata_of(sent.row)).transpose()?;
        let context = EvalContext::new(arena, sent.row.doc(), &sent.env.shared)
            .with_variables(sent.variables)
            .with_metadata(metadata.as_ref().map(DocBuf::as_doc));
        match self.steps.split_first() {
            Some((Step::Unwind(unwind), rest)) => {
                unwind.for_each(&context, start, max, &mut |inner| step(rest, inner, emit))
            }
            _ => step(&self.steps, &context, emit).map(|()| None),
        }
    }

    /// The same steps in several chains, each of which begins with at most one `$unwind`: what
    /// an array becomes can then be given piece by piece.
    fn split(self) -> Vec<Chain> {
        let reads_metadata = self.reads_metadata;
        let mut chains: Vec<Chain> = Vec::new();
        for step in self.steps {
            match chains.last_mut() {
                Some(chain) if !matches!(step, Step::Unwind(_)) => chain.steps.push(step),
                _ => {
                    let steps = vec![step];
                    chains.push(Chain { steps, reads_metadata });
                }
            }
        }
        chains
    }
}

fn step(
    steps: &[Step],
    context: &EvalContext<'_>,
    emit: &mut dyn FnMut(&EvalContext<'_>) -> Result<()>,
) -> Result<()> {
    let Some((first, rest)) = steps.split_first() else { return emit(context) };
    match first {
        Step::Match(filter) => {
            if filter.matches(context.root, context)? {
                step(rest, context, emit)?;
            }
            Ok(())
        }
        Step::Transform(transforms) => {
            let doc = transforms.apply(context)?;
            step(rest, &context.with_root(doc), emit)
        }
        Step::Unwind(unwind) => {
            let all = usize::MAX;
            unwind
                .for_each(context, Position::default(), all, &mut |inner| step(rest, inner, emit))
                .map(|_| ())
        }
        Step::Keep(fields) => {
            let doc = context.document(|writer| fields.apply(context.root, writer, context))?;
            step(rest, &context.with_root(doc), emit)
        }
        Step::Redact(redact) => match redact.apply(context)? {
            Some(doc) => step(rest, &context.with_root(doc), emit),
            None => Ok(()),
        },
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
    arena: Bump,
    /// What came from the input and has not been sent through.
    waiting: VecDeque<Row>,
    ready: VecDeque<Row>,
    /// A document whose array is not all taken apart yet.
    open: Option<(Row, Position)>,
    done: bool,
    stats: NodeStats,
}

impl ChainOp {
    /// The chain above its input; several stages where it takes arrays apart.
    pub fn over(input: BoxedOperator, chain: Chain) -> BoxedOperator {
        chain.split().into_iter().fold(input, |input, chain| {
            Box::new(ChainOp {
                input,
                chain,
                arena: Bump::new(),
                waiting: VecDeque::new(),
                ready: VecDeque::new(),
                open: None,
                done: false,
                stats: NodeStats::default(),
            })
        })
    }

    /// Sends a document through from `start` on, as far as `max` elements of a first `$unwind`.
    fn expand(
        &mut self,
        row: Row,
        start: Position,
        max: usize,
        env: &Env,
        variables: &[Option<Value<'_>>],
    ) -> Result<()> {
        let mut row = row;
        row.know_doc()?;
        let source = row.doc.clone().unwrap_or_default();
        let extra = row.extra.as_ref().filter(|_| self.chain.reads_metadata);
        let ready = &mut self.ready;
        let sent = Sent { row: &row, env, variables };
        let next = self.chain.run_some(sent, &mut self.arena, (start, max), &mut |context| {
            let bytes = context.root.as_bytes();
            let unchanged = bytes.as_ptr() == source.as_ptr() && bytes.len() == source.len();
            let doc = if unchanged { source.clone() } else { Bytes::copy_from_slice(bytes) };
            ready.push_back(Row { record: row.record, doc: Some(doc), extra: extra.cloned() });
            Ok(())
        })?;
        self.open = next.map(|next| (row, next));
        Ok(())
    }
}

impl Operator for ChainOp {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let limit = out.len() + max;
        let (mut rows, mut bytes) = (Vec::new(), 0);
        let env = run.env;
        let variables = env.variable_values();
        loop {
            while out.len() < limit
                && bytes < BATCH_BYTES
                && let Some(row) = self.ready.pop_front()
            {
                self.stats.returned += 1;
                bytes += row.size();
                out.push(row);
            }
            if out.len() == limit || bytes >= BATCH_BYTES {
                return Ok(true);
            }
            let wanted = (limit - out.len()).min(ROWS_MAX);
            let mut next = || self.waiting.pop_front().map(|row| (row, Position::default()));
            if let Some((row, start)) = self.open.take().or_else(&mut next) {
                // An `$unwind` may copy all of the document for each element.
                let fit = (BATCH_BYTES / row.size()).clamp(1, wanted);
                self.expand(row, start, fit, env, &variables)?;
                continue;
            }
            if self.done {
                self.stats.is_eof = true;
                return Ok(false);
            }
            env.check_interrupt()?;
            self.done = !self.input.next(run, wanted, &mut rows)?;
            self.waiting.extend(rows.drain(..));
        }
    }

    fn rest(&mut self) {
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        over(&self.input, &self.stats)
    }
}
