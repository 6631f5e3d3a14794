//! `$first`, `$last`: the value of the first or last document; null if it is missing.

use super::State;
use super::registry::Accumulator;
use super::table::States;
use crate::context::EvalContext;
use quire_document::{Value, ValueBuf, array};
use quire_error::Result;

pub(super) const FIRST: Accumulator = Accumulator::unary(
    "$first",
    "1.0",
    "The first document's value; null if it is missing.",
    |_| Box::new(Edge::first()),
)
.with_table(|_| Box::new(States::new(|_| Edge::first())));

pub(super) const LAST: Accumulator =
    Accumulator::unary("$last", "1.0", "The last document's value; null if it is missing.", |_| {
        Box::new(Edge::last())
    })
    .with_table(|_| Box::new(States::new(|_| Edge::last())));

#[derive(Debug)]
struct Edge {
    /// The first value stays, or each takes the place of the one before.
    keeps_first: bool,
    value: Option<ValueBuf>,
}

impl Edge {
    fn first() -> Self {
        Edge { keeps_first: true, value: None }
    }

    fn last() -> Self {
        Edge { keeps_first: false, value: None }
    }
}

impl State for Edge {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        if !self.is_complete() {
            self.value = Some(ValueBuf::new(value.unwrap_or(Value::Null)));
        }
        Ok(())
    }

    fn result<'a>(&self, cx: &EvalContext<'a>) -> Result<Value<'a>> {
        self.value.as_ref().map_or(Ok(Value::Null), |value| cx.copy(value.as_value()))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.value.as_ref().map_or(0, ValueBuf::size)
    }

    /// An array with the value, or an empty one.
    fn save(&self) -> ValueBuf {
        match &self.value {
            Some(value) => array![value].into(),
            None => array![].into(),
        }
    }

    fn merge(&mut self, saved: Value<'_>) -> Result<()> {
        super::elements(saved).try_for_each(|value| self.add(Some(value)))
    }

    fn is_complete(&self) -> bool {
        self.keeps_first && self.value.is_some()
    }
}
