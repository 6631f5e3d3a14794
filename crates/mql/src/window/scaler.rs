//! `$minMaxScaler`: scales the current number by the smallest and the largest number of the window.

use super::contents::{Contents, Seen};
use super::extremes::BestOf;
use crate::accumulator::StringOrder;
use crate::context::EvalContext;
use crate::expression::{difference, product, quotient, total};
use quire_document::{Value, ValueBuf};
use quire_error::{Error, Result};
use std::cmp::Ordering;

/// The smallest and largest numbers in a window, and the range of the result.
#[derive(Debug)]
pub(super) struct Scaler {
    low: ValueBuf,
    high: ValueBuf,
    least: BestOf,
    greatest: BestOf,
}

impl Scaler {
    pub fn new(low: ValueBuf, high: ValueBuf) -> Self {
        let best = |better| BestOf::new(better, StringOrder::default());
        Scaler { low, high, least: best(Ordering::Less), greatest: best(Ordering::Greater) }
    }
}

impl Contents for Scaler {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        if value.is_none_or(|value| !value.is_number()) {
            let kind = value.map_or("missing", |value| value.type_name());
            let message = format!(
                "'input' argument to $minMaxScaler must evaluate to a numeric type, got {kind}"
            );
            return Err(Error::location(10487000, message));
        }
        self.least.add(value)?;
        self.greatest.add(value)
    }

    fn remove(&mut self, value: Option<Value<'_>>) -> Result<()> {
        self.least.remove(value)?;
        self.greatest.remove(value)
    }

    fn result<'a>(&self, seen: Seen<'_>, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        let current = seen.current.map(ValueBuf::as_value);
        let (Some(current), Some(least), Some(greatest)) =
            (current, self.least.best(), self.greatest.best())
        else {
            return Ok(Some(Value::Null));
        };
        let (low, high) = (self.low.as_value(), self.high.as_value());
        let width = difference(greatest, least)?;
        if quire_document::compare(width, Value::Int32(0), None).is_eq() {
            return cx.copy(low).map(Some);
        }
        let share = quotient(difference(current, least)?, width)?;
        let scaled = total(product(share, difference(high, low)?), low);
        cx.copy(scaled).map(Some)
    }

    fn size(&self) -> usize {
        self.least.size() + self.greatest.size()
    }
}
