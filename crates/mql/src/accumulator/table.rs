//! The states of one accumulator for all groups of a stage.

use super::State;
use crate::column::Column;
use crate::context::EvalContext;
use quire_document::{Value, ValueBuf};
use quire_error::Result;
use std::fmt;

/// The states of one accumulator, one for each group. Groups are numbered from 0.
pub trait Table: Send + fmt::Debug {
    /// Appends the state of a new group; `n` is 0 for an accumulator without n.
    fn open(&mut self, n: usize);

    /// Adds a value to a group.
    fn add(&mut self, group: usize, value: Option<Value<'_>>) -> Result<()>;

    /// Adds the value of each row to the group that `groups` has for the row.
    fn add_column(&mut self, groups: &[u32], column: &Column<'_>) -> Result<()>;

    /// Returns the state of a group.
    fn state(&self, group: usize) -> Option<&dyn State>;

    /// Returns the approximate memory of all states in bytes.
    fn bytes(&self) -> usize;

    /// Removes all groups.
    fn clear(&mut self);
}

/// A table of states of one type.
pub(super) struct States<S, F> {
    states: Vec<S>,
    make: F,
    /// The memory in bytes of the states whose size depends on their values.
    bytes: usize,
}

impl<S: State, F: Fn(usize) -> S> States<S, F> {
    pub(super) fn new(make: F) -> Self {
        States { states: Vec::new(), make, bytes: 0 }
    }
}

impl<S: State, F: Fn(usize) -> S + Send> Table for States<S, F> {
    fn open(&mut self, n: usize) {
        let state = (self.make)(n);
        self.bytes += state.size();
        self.states.push(state);
    }

    #[inline]
    fn add(&mut self, group: usize, value: Option<Value<'_>>) -> Result<()> {
        let Some(state) = self.states.get_mut(group) else { return Ok(()) };
        if S::is_fixed() {
            return state.add(value);
        }
        let before = state.size();
        let added = state.add(value);
        self.bytes = (self.bytes + state.size()).saturating_sub(before);
        added
    }

    fn add_column(&mut self, groups: &[u32], column: &Column<'_>) -> Result<()> {
        let mut add = |group: &u32, value| self.add(*group as usize, value);
        match column {
            Column::Int(all) => {
                groups.iter().zip(all).try_for_each(|(at, n)| add(at, Some(Value::Int32(*n))))
            }
            Column::Long(all) => {
                groups.iter().zip(all).try_for_each(|(at, n)| add(at, Some(Value::Int64(*n))))
            }
            Column::Double(all) => {
                groups.iter().zip(all).try_for_each(|(at, n)| add(at, Some(Value::Double(*n))))
            }
            Column::Same(value, _) => groups.iter().try_for_each(|at| add(at, *value)),
            other => groups.iter().enumerate().try_for_each(|(row, at)| add(at, other.get(row))),
        }
    }

    fn state(&self, group: usize) -> Option<&dyn State> {
        self.states.get(group).map(|state| state as &dyn State)
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn clear(&mut self) {
        self.states = Vec::new();
        self.bytes = 0;
    }
}

impl<S: fmt::Debug, F> fmt::Debug for States<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.states.fmt(f)
    }
}

impl State for Box<dyn State> {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        (**self).add(value)
    }

    fn result<'a>(&self, cx: &EvalContext<'a>) -> Result<Value<'a>> {
        (**self).result(cx)
    }

    fn size(&self) -> usize {
        (**self).size()
    }

    fn save(&self) -> ValueBuf {
        (**self).save()
    }

    fn merge(&mut self, saved: Value<'_>) -> Result<()> {
        (**self).merge(saved)
    }

    fn is_complete(&self) -> bool {
        (**self).is_complete()
    }
}
