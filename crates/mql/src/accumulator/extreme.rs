//! `$min`, `$max`: the smallest and the largest value in BSON order; null and missing values are
//! ignored.

use super::registry::Accumulator;
use super::table::States;
use super::{State, StringOrder, Table};
use crate::context::EvalContext;
use crate::totals::replaces;
use quire_document::{Value, ValueBuf};
use quire_error::Result;
use std::cmp::Ordering;

pub(super) const MIN: Accumulator = Accumulator::unary(
    "$min",
    "1.0",
    "The smallest value in BSON order; null and missing values are ignored.",
    |collation| Box::new(Extreme::new(Ordering::Less, collation)),
)
.with_table(|collation| table(Ordering::Less, collation));

pub(super) const MAX: Accumulator = Accumulator::unary(
    "$max",
    "1.0",
    "The largest value in BSON order; null and missing values are ignored.",
    |collation| Box::new(Extreme::new(Ordering::Greater, collation)),
)
.with_table(|collation| table(Ordering::Greater, collation));

#[derive(Debug)]
struct Extreme {
    replaces_when: Ordering,
    best: Option<ValueBuf>,
    collation: StringOrder,
}

impl Extreme {
    fn new(replaces_when: Ordering, collation: StringOrder) -> Self {
        Extreme { replaces_when, best: None, collation }
    }
}

fn table(replaces_when: Ordering, collation: StringOrder) -> Box<dyn Table> {
    Box::new(States::new(move |_| Extreme::new(replaces_when, collation.clone())))
}

impl State for Extreme {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        let Some(value) = value else { return Ok(()) };
        let best = self.best.as_ref().map(ValueBuf::as_value);
        if replaces(value, best, self.replaces_when, self.collation.as_deref()) {
            self.best = Some(ValueBuf::new(value));
        }
        Ok(())
    }

    fn result<'a>(&self, cx: &EvalContext<'a>) -> Result<Value<'a>> {
        self.best.as_ref().map_or(Ok(Value::Null), |best| cx.copy(best.as_value()))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.best.as_ref().map_or(0, ValueBuf::size)
    }

    fn save(&self) -> ValueBuf {
        self.best.clone().unwrap_or_else(|| ValueBuf::new(Value::Null))
    }

    fn merge(&mut self, saved: Value<'_>) -> Result<()> {
        self.add(Some(saved))
    }
}
