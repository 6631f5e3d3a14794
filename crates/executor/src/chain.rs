//! Stages that work on one document at a time, run as one: a document goes through all of them
//! without being copied in between.

use bumpalo::Bump;
use bytes::Bytes;
use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::EvalContext;
use quire_mql::filter::Filter;
use quire_mql::stage::{Redact, Stage, Transform, Unwind};
use quire_planner::explain::NodeStats;

use crate::env::{Env, Run};
use crate::filtering::reset;
use crate::operator::{BoxedOperator, Operator};
use crate::row::Row;

/// Largest document that may leave a pipeline's stage. MongoDB: 16 MiB and 16 KiB
/// (10334 BSONObjectTooLarge).
const DOC_BYTES_MAX: usize = 16 * 1024 * 1024 + 16 * 1024;
/// Rows asked for at a time.
const ROWS_MAX: usize = 256;

/// One stage.
pub(crate) enum Step {
    Match(Filter),
    Transform(Transform),
    Unwind(Unwind),
    Redact(Redact),
}

/// Stages in a row.
#[derive(Default)]
pub(crate) struct Chain {
    steps: Vec<Step>,
    arena: Bump,
}

impl Chain {
    /// Takes a stage in, or gives it back if it is none of these.
    pub fn push(&mut self, stage: Stage) -> Option<Stage> {
        self.steps.push(match stage {
            Stage::Match(stage) => Step::Match(stage.filter().clone()),
            Stage::Transform(stage) => Step::Transform(stage),
            Stage::Unwind(stage) => Step::Unwind(stage),
            Stage::Redact(stage) => Step::Redact(stage),
            other => return Some(other),
        });
        None
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Sends a document through; `emit` gets what comes out, with its context.
    pub fn run(
        &mut self,
        doc: Doc<'_>,
        env: &Env,
        variables: &[Option<Value<'_>>],
        emit: &mut dyn FnMut(&EvalContext<'_>) -> Result<()>,
    ) -> Result<()> {
        reset(&mut self.arena);
        let context = EvalContext::new(&self.arena, doc, &env.shared).with_variables(variables);
        step(&self.steps, &context, emit)
    }
}

fn step<'a>(
    steps: &'a [Step],
    context: &EvalContext<'a>,
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
        Step::Transform(transform) => {
            let doc = transform.apply(context)?;
            check_size(doc)?;
            step(rest, &context.with_root(doc), emit)
        }
        Step::Unwind(unwind) => {
            unwind.for_each(context, &mut |doc| step(rest, &context.with_root(doc), emit))
        }
        Step::Redact(redact) => match redact.apply(context)? {
            Some(doc) => step(rest, &context.with_root(doc), emit),
            None => Ok(()),
        },
    }
}

fn check_size(doc: Doc<'_>) -> Result<()> {
    if doc.len() <= DOC_BYTES_MAX {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::BSONObjectTooLarge,
        format!("BSONObj size: {} is invalid. Size must be between 0 and {DOC_BYTES_MAX}", doc.len()),
    ))
}

/// A chain as a stage of its own.
pub(crate) struct ChainOp {
    pub input: BoxedOperator,
    pub chain: Chain,
    pub ready: std::collections::VecDeque<Row>,
    pub done: bool,
    pub stats: NodeStats,
}

impl ChainOp {
    pub fn new(input: BoxedOperator, chain: Chain) -> Self {
        ChainOp {
            input,
            chain,
            ready: std::collections::VecDeque::new(),
            done: false,
            stats: NodeStats::default(),
        }
    }
}

impl Operator for ChainOp {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let limit = out.len() + max;
        let mut rows = Vec::new();
        let env = run.env;
        let variables = env.variable_values();
        loop {
            while out.len() < limit
                && let Some(row) = self.ready.pop_front()
            {
                self.stats.returned += 1;
                out.push(row);
            }
            if out.len() == limit {
                return Ok(true);
            }
            if self.done {
                self.stats.is_eof = true;
                return Ok(false);
            }
            let wanted = (limit - out.len()).min(ROWS_MAX);
            self.done = !self.input.next(run, wanted, &mut rows)?;
            for row in rows.drain(..) {
                let source = row.doc_or_key()?;
                let (record, ready) = (row.record, &mut self.ready);
                let unchanged = source.as_ptr();
                self.chain.run(Doc::from_valid_bytes(&source), env, &variables, &mut |context| {
                    let bytes = context.root.as_bytes();
                    let doc = if bytes.as_ptr() == unchanged && bytes.len() == source.len() {
                        source.clone()
                    } else {
                        Bytes::copy_from_slice(bytes)
                    };
                    ready.push_back(Row::of_document(record, doc));
                    Ok(())
                })?;
            }
        }
    }

    fn stats(&self) -> NodeStats {
        NodeStats { inputs: vec![self.input.stats()], ..self.stats.clone() }
    }
}
