//! The state of a window function: what it keeps of the values in its window.

use crate::accumulator::{State, outside_group};
use crate::context::EvalContext;
use quire_document::{Value, ValueBuf};
use quire_error::Result;
use std::collections::VecDeque;
use std::fmt;

/// The state of a window function. Values enter at the end of the window and leave at its start.
/// `remove` is never called for a window that only grows.
pub(super) trait Contents: Send + fmt::Debug {
    /// Adds a value that enters the window; `None` is a missing value.
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()>;

    /// Removes the value that leaves the window: the oldest one in it.
    fn remove(&mut self, value: Option<Value<'_>>) -> Result<()>;

    /// Returns the result for a window; `None` is a missing value.
    fn result<'a>(&self, seen: Seen<'_>, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>>;

    /// Returns the memory in bytes, without the window's values.
    fn size(&self) -> usize;
}

/// The values that a result may use.
#[derive(Clone, Copy)]
pub(super) struct Seen<'w> {
    /// The values of the window, if the function requires that they are kept.
    pub window: Values<'w>,
    /// The value of the current document, if the function requires that it is kept.
    pub current: Option<&'w ValueBuf>,
}

/// The values of the documents in a window, in order.
#[derive(Clone, Copy)]
pub(super) struct Values<'w> {
    queue: &'w VecDeque<Option<ValueBuf>>,
    from: usize,
    to: usize,
}

impl<'w> Values<'w> {
    pub fn new(queue: &'w VecDeque<Option<ValueBuf>>, from: usize, to: usize) -> Self {
        let to = to.min(queue.len());
        Values { queue, from: from.min(to), to }
    }

    /// Returns the number of documents.
    pub fn len(self) -> usize {
        self.to - self.from
    }

    /// Returns the value of the first document. The outer `None` means that the window is empty.
    pub fn first(self) -> Option<Option<Value<'w>>> {
        self.iter().next()
    }

    /// Returns the value of the last document. The outer `None` means that the window is empty.
    pub fn last(self) -> Option<Option<Value<'w>>> {
        self.iter().next_back()
    }

    pub fn iter(self) -> impl DoubleEndedIterator<Item = Option<Value<'w>>> + ExactSizeIterator {
        self.queue.range(self.from..self.to).map(|value| value.as_ref().map(ValueBuf::as_value))
    }
}

/// An accumulator of `$group`, for windows that only grow.
#[derive(Debug)]
pub(super) struct Growing(pub Box<dyn State>);

impl Contents for Growing {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        self.0.add(value).map_err(outside_group)
    }

    fn remove(&mut self, _: Option<Value<'_>>) -> Result<()> {
        Ok(())
    }

    fn result<'a>(&self, _: Seen<'_>, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        self.0.result(cx).map(Some)
    }

    fn size(&self) -> usize {
        self.0.size()
    }
}
