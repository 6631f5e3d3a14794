//! The window functions of a stage at work on one partition.

use super::Output;
use crate::context::EvalContext;
use quire_document::Value;
use quire_error::Result;
use std::fmt;

/// One window function at work. Documents are pushed in order; results are taken in the same
/// order, each once the function has seen enough of the documents behind it.
pub(super) trait Evaluator: Send + fmt::Debug {
    /// Takes the next document, `cx.root`.
    fn push(&mut self, cx: &EvalContext<'_>) -> Result<()>;

    /// Notes that no document follows.
    fn end(&mut self);

    /// True if the result for document `at`, which was pushed, depends on no document to come.
    /// Asked only before the end.
    fn is_ready(&mut self, at: u64) -> Result<bool>;

    /// Returns the result for document `at`; `None` is missing.
    fn result<'a>(&mut self, at: u64, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>>;

    /// Returns the bytes that it holds.
    fn size(&self) -> usize;
}

/// The window functions of a stage at work on one partition.
#[derive(Debug)]
pub struct Partition {
    evaluators: Vec<Box<dyn Evaluator>>,
    pushed: u64,
    given: u64,
    ended: bool,
}

impl Partition {
    /// Starts a partition without documents.
    ///
    /// # Errors
    /// What evaluating the constant arguments of the functions answers.
    pub(crate) fn new(outputs: &[Output], cx: &EvalContext<'_>) -> Result<Self> {
        let evaluators = outputs.iter().map(|output| output.evaluator(cx));
        Ok(Partition {
            evaluators: evaluators.collect::<Result<_>>()?,
            pushed: 0,
            given: 0,
            ended: false,
        })
    }

    /// Takes the next document, `cx.root`.
    pub fn push(&mut self, cx: &EvalContext<'_>) -> Result<()> {
        self.pushed += 1;
        self.evaluators.iter_mut().try_for_each(|evaluator| evaluator.push(cx))
    }

    /// Notes that no document follows.
    pub fn end(&mut self) {
        self.ended = true;
        self.evaluators.iter_mut().for_each(|evaluator| evaluator.end());
    }

    /// True if it has ended and all results were taken.
    pub fn is_finished(&self) -> bool {
        self.ended && self.given == self.pushed
    }

    /// True if the results for the next document can be taken.
    pub fn is_ready(&mut self) -> Result<bool> {
        if self.given == self.pushed {
            return Ok(false);
        }
        if self.ended {
            return Ok(true);
        }
        for evaluator in &mut self.evaluators {
            if !evaluator.is_ready(self.given)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the results for the next document, one for each output.
    pub(crate) fn results<'a>(&mut self, cx: &EvalContext<'a>) -> Result<Vec<Option<Value<'a>>>> {
        let at = self.given;
        self.given += 1;
        self.evaluators.iter_mut().map(|evaluator| evaluator.result(at, cx)).collect()
    }

    /// Returns the bytes that the functions hold.
    pub fn size(&self) -> usize {
        self.evaluators.iter().map(|evaluator| evaluator.size()).sum()
    }

    /// Returns the bytes that each function holds.
    pub fn sizes(&self) -> impl Iterator<Item = usize> {
        self.evaluators.iter().map(|evaluator| evaluator.size())
    }
}
