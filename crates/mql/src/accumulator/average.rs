//! `$avg`: the mean of the numbers; null if there are none.

use super::State;
use super::registry::Accumulator;
use super::sum::Sum;
use crate::context::EvalContext;
use quire_document::{Value, ValueBuf, array};
use quire_error::Result;

pub(super) const AVG: Accumulator = Accumulator::unary(
    "$avg",
    "1.0",
    "The mean of the numbers: a double, or a decimal if one is among them; null for none.",
    |_| Box::new(Average::default()),
);

/// The mean of numbers of all types.
#[derive(Clone, Debug, Default)]
pub struct Average {
    sum: Sum,
    count: i64,
}

impl Average {
    /// Adds a value if it is a number.
    #[inline]
    pub fn push(&mut self, value: Value<'_>) {
        if value.is_number() {
            self.sum.push(value);
            self.count += 1;
        }
    }

    /// The mean; null if nothing was added.
    pub fn value(&self) -> Value<'static> {
        if self.count == 0 { Value::Null } else { self.sum.mean(self.count) }
    }
}

impl State for Average {
    #[inline]
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        if let Some(value) = value {
            self.push(value);
        }
        Ok(())
    }

    fn add_f64(&mut self, number: f64) -> Result<()> {
        self.push(Value::Double(number));
        Ok(())
    }

    fn result<'a>(&self, _: &EvalContext<'a>) -> Result<Value<'a>> {
        Ok(self.value())
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }

    fn save(&self) -> ValueBuf {
        let sum = self.sum.to_saved();
        array![self.count, &sum].into()
    }

    fn merge(&mut self, saved: Value<'_>) -> Result<()> {
        let mut parts = super::elements(saved);
        if let (Some(Value::Int64(count)), Some(sum)) = (parts.next(), parts.next()) {
            self.count += count;
            self.sum.merge_saved(sum);
        }
        Ok(())
    }
}
