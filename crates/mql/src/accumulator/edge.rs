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
    |_| Box::new(First { value: None }),
)
.with_table(|_| Box::new(States::new(|_| First { value: None })));

pub(super) const LAST: Accumulator =
    Accumulator::unary("$last", "1.0", "The last document's value; null if it is missing.", |_| {
        Box::new(Last { value: None })
    })
    .with_table(|_| Box::new(States::new(|_| Last { value: None })));

#[derive(Debug)]
struct First {
    value: Option<ValueBuf>,
}

#[derive(Debug)]
struct Last {
    value: Option<ValueBuf>,
}

fn or_null(value: Option<Value<'_>>) -> ValueBuf {
    ValueBuf::new(value.unwrap_or(Value::Null))
}

fn result<'a>(value: &Option<ValueBuf>, cx: &EvalContext<'a>) -> Result<Value<'a>> {
    value.as_ref().map_or(Ok(Value::Null), |value| cx.copy(value.as_value()))
}

/// Returns an array with the value, or an empty array.
fn saved(value: &Option<ValueBuf>) -> ValueBuf {
    match value {
        Some(value) => array![value].into(),
        None => array![].into(),
    }
}

impl State for First {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        if self.value.is_none() {
            self.value = Some(or_null(value));
        }
        Ok(())
    }

    fn result<'a>(&self, cx: &EvalContext<'a>) -> Result<Value<'a>> {
        result(&self.value, cx)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.value.as_ref().map_or(0, ValueBuf::size)
    }

    fn save(&self) -> ValueBuf {
        saved(&self.value)
    }

    fn merge(&mut self, saved: Value<'_>) -> Result<()> {
        super::elements(saved).try_for_each(|value| self.add(Some(value)))
    }

    fn is_complete(&self) -> bool {
        self.value.is_some()
    }
}

impl State for Last {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        self.value = Some(or_null(value));
        Ok(())
    }

    fn result<'a>(&self, cx: &EvalContext<'a>) -> Result<Value<'a>> {
        result(&self.value, cx)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.value.as_ref().map_or(0, ValueBuf::size)
    }

    fn save(&self) -> ValueBuf {
        saved(&self.value)
    }

    fn merge(&mut self, saved: Value<'_>) -> Result<()> {
        super::elements(saved).try_for_each(|value| self.add(Some(value)))
    }
}
