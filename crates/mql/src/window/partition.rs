//! The window functions of a stage, evaluated for one partition.

use super::Output;
use crate::context::EvalContext;
use quire_document::Value;
use quire_error::Result;
use std::fmt;

/// The state of a window function for a partition. Documents are pushed in order. Results are taken
/// in the same order, each as soon as the function has seen enough of the later documents.
pub(super) trait Evaluator: Send + fmt::Debug {
    /// Adds the next document, `cx.root`.
    fn push(&mut self, cx: &EvalContext<'_>) -> Result<()>;

    /// Ends the partition.
    fn end(&mut self);

    /// Returns true if the result for document `at`, which was pushed, does not depend on later
    /// documents. Called only before the end.
    fn is_ready(&mut self, at: u64) -> Result<bool>;

    /// Returns the result for document `at`; `None` is a missing value.
    fn result<'a>(&mut self, at: u64, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>>;

    /// Returns the memory in bytes.
    fn size(&self) -> usize;
}

/// The state of all window functions of a stage for one partition.
#[derive(Debug)]
pub struct Partition {
    evaluators: Vec<Box<dyn Evaluator>>,
    pushed: u64,
    given: u64,
    ended: bool,
}

impl Partition {
    /// Returns the state for a partition without documents yet.
    ///
    /// # Errors
    /// Errors of evaluating the functions' constant arguments.
    pub(crate) fn new(outputs: &[Output], cx: &EvalContext<'_>) -> Result<Self> {
        let evaluators = outputs.iter().map(|output| output.evaluator(cx));
        Ok(Partition {
            evaluators: evaluators.collect::<Result<_>>()?,
            pushed: 0,
            given: 0,
            ended: false,
        })
    }

    /// Adds the next document, `cx.root`.
    pub fn push(&mut self, cx: &EvalContext<'_>) -> Result<()> {
        self.pushed += 1;
        self.evaluators.iter_mut().try_for_each(|evaluator| evaluator.push(cx))
    }

    /// Ends the partition.
    pub fn end(&mut self) {
        self.ended = true;
        self.evaluators.iter_mut().for_each(|evaluator| evaluator.end());
    }

    /// Returns true if the partition has ended and all results were taken.
    pub fn is_finished(&self) -> bool {
        self.ended && self.given == self.pushed
    }

    /// Returns true if the results for the next document can be taken.
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

    /// Returns the results for the next document, one for each output, in the context's arena.
    pub(crate) fn results<'a>(&mut self, cx: &EvalContext<'a>) -> Result<&'a [Option<Value<'a>>]> {
        let at = self.given;
        self.given += 1;
        let results = cx.arena.alloc_slice_fill_copy(self.evaluators.len(), None);
        for (result, evaluator) in results.iter_mut().zip(&mut self.evaluators) {
            *result = evaluator.result(at, cx)?;
        }
        Ok(results)
    }

    /// Returns the memory of all functions in bytes.
    pub fn size(&self) -> usize {
        self.evaluators.iter().map(|evaluator| evaluator.size()).sum()
    }

    /// Returns the memory of each function in bytes.
    pub fn sizes(&self) -> impl Iterator<Item = usize> {
        self.evaluators.iter().map(|evaluator| evaluator.size())
    }
}
