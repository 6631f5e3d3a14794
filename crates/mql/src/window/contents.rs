//! What a window function keeps of the values in its window.

use crate::accumulator::{State, outside_group};
use crate::context::EvalContext;
use quire_document::{Value, ValueBuf};
use quire_error::Result;
use std::collections::VecDeque;
use std::fmt;

/// What a window function keeps of the values in a window. Values enter at the window's end and
/// leave at its beginning; a window that only grows calls no `remove`.
pub(super) trait Contents: Send + fmt::Debug {
    /// Takes the value that enters; `None` is missing.
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()>;

    /// Lets go of the value that leaves: the one that entered first of those still there.
    fn remove(&mut self, value: Option<Value<'_>>) -> Result<()>;

    /// Returns the result for a window; `None` is missing.
    fn result<'a>(&self, seen: Seen<'_>, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>>;

    /// Returns the bytes that it holds besides the window's values.
    fn size(&self) -> usize;
}

/// The values that a result may look at.
#[derive(Clone, Copy)]
pub(super) struct Seen<'w> {
    /// The values of the window, if the function asked to have them kept.
    pub window: Values<'w>,
    /// The value of the current document, if the function asked to have it kept.
    pub current: Option<&'w ValueBuf>,
}

/// The values of the documents of a window, in order.
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

    /// The number of documents.
    pub fn len(self) -> usize {
        self.to - self.from
    }

    /// The value of the first document; the outer `None` if the window is empty.
    pub fn first(self) -> Option<Option<Value<'w>>> {
        self.iter().next()
    }

    /// The value of the last document; the outer `None` if the window is empty.
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
