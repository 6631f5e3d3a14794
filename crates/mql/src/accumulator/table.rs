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

    /// Adds the values of rows run by run: those of the first run, then those of the second one, and so on. The runs
    /// have as many rows together as the column.
    fn add_runs(&mut self, runs: &[GroupRun], column: &Column<'_>) -> Result<()>;

    /// Returns the state of a group.
    fn state(&self, group: usize) -> Option<&dyn State>;

    /// Returns the approximate memory of all states in bytes.
    fn bytes(&self) -> usize;

    /// Removes all groups.
    fn clear(&mut self);
}

/// Rows after one another that belong to the same group.
#[derive(Clone, Copy, Debug)]
pub struct GroupRun {
    /// The number of the group.
    pub group: u32,
    /// The number of rows.
    pub rows: u32,
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

    /// Changes the state of a group.
    #[inline]
    fn change(&mut self, group: u32, change: impl FnOnce(&mut S) -> Result<()>) -> Result<()> {
        let Some(state) = self.states.get_mut(group as usize) else { return Ok(()) };
        if S::is_fixed() {
            return change(state);
        }
        let before = state.size();
        let changed = change(state);
        self.bytes = (self.bytes + state.size()).saturating_sub(before);
        changed
    }

    /// Adds doubles run by run. Several runs of different groups are added at a time if the states can do that.
    fn add_doubles(&mut self, runs: &[GroupRun], mut numbers: &[f64]) -> Result<()> {
        let mut take = |run: &GroupRun| {
            let (taken, rest) = numbers.split_at(numbers.len().min(run.rows as usize));
            numbers = rest;
            taken
        };
        let mut left = runs;
        while let Some((four, rest)) = left.split_first_chunk::<4>()
            && S::is_fixed()
        {
            let numbers = four.each_ref().map(&mut take);
            match self.states.get_disjoint_mut(four.map(|run| run.group as usize)) {
                Ok(states) => S::add_doubles_to_four(states, numbers)?,
                Err(_) => {
                    for (run, numbers) in four.iter().zip(numbers) {
                        self.change(run.group, |state| state.add_doubles(numbers))?;
                    }
                }
            }
            left = rest;
        }
        left.iter().try_for_each(|run| {
            let numbers = take(run);
            self.change(run.group, |state| state.add_doubles(numbers))
        })
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
        self.change(group as u32, |state| state.add(value))
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

    fn add_runs(&mut self, runs: &[GroupRun], column: &Column<'_>) -> Result<()> {
        if let Column::Double(all) = column {
            return self.add_doubles(runs, all);
        }
        let mut row = 0;
        runs.iter().try_for_each(|run| {
            let rows = row..row + run.rows as usize;
            row = rows.end;
            self.change(run.group, |state| match column {
                Column::Same(value, _) => state.add_repeated(*value, run.rows),
                Column::Int(all) => all
                    .get(rows)
                    .unwrap_or_default()
                    .iter()
                    .try_for_each(|n| state.add(Some(Value::Int32(*n)))),
                other => rows.into_iter().try_for_each(|row| state.add(other.get(row))),
            })
        })
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
