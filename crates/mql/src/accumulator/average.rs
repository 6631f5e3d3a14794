//! `$avg`: the mean of the numbers; null if there are none.

use super::State;
use super::registry::Accumulator;
use super::sum::add_decimal;
use super::summation::DoubleDouble;
use crate::context::EvalContext;
use quire_document::{Decimal128, Value, ValueBuf, array};
use quire_error::Result;

pub(super) const AVG: Accumulator = Accumulator::unary(
    "$avg",
    "1.0",
    "The mean of the numbers: a double, or a decimal if one is among them; null for none.",
    |_| Box::new(Average { exact: true, ..Average::default() }),
);

/// The mean of numbers of all types.
#[derive(Clone, Debug, Default)]
pub struct Average {
    /// Longs are summed exactly, as mongod's `$group` does; its expression rounds.
    exact: bool,
    longs: i128,
    total: DoubleDouble,
    decimals: Option<Decimal128>,
    count: i64,
}

impl Average {
    /// Adds a value if it is a number.
    #[inline]
    pub fn push(&mut self, value: Value<'_>) {
        match value {
            Value::Int32(number) => self.total.add(f64::from(number)),
            Value::Int64(number) if self.exact => self.longs += i128::from(number),
            Value::Int64(number) => self.total.add_halves(number),
            Value::Double(number) => self.total.add(number),
            Value::Decimal(number) => self.decimals = Some(add_decimal(self.decimals, number)),
            _ => return,
        }
        self.count += 1;
    }

    /// All but the decimals.
    fn sum(&self) -> DoubleDouble {
        let mut sum = self.total;
        let rounded = self.longs as f64;
        sum.add(rounded);
        sum.add((self.longs - rounded as i128) as f64);
        sum
    }

    /// The mean; null if nothing was added.
    pub fn value(&self) -> Value<'static> {
        match self.decimals {
            _ if self.count == 0 => Value::Null,
            None => Value::Double(self.sum().value() / self.count as f64),
            Some(decimals) if decimals.is_nan() => Value::Decimal(decimals),
            Some(decimals) => {
                let sum = decimals.add(self.sum().to_decimal());
                Value::Decimal(sum.divide(Decimal128::from_i64(self.count)))
            }
        }
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
        let [sum, addend, special] = self.total.to_raw();
        let decimals = self.decimals.map_or(Value::Null, Value::Decimal);
        let (high, low) = ((self.longs >> 64) as i64, self.longs as i64);
        array![self.count, sum, addend, special, high, low, decimals].into()
    }

    fn merge(&mut self, saved: Value<'_>) -> Result<()> {
        let parts: Vec<Value<'_>> = super::elements(saved).collect();
        let [
            Value::Int64(count),
            Value::Double(sum),
            Value::Double(addend),
            Value::Double(special),
            Value::Int64(high),
            Value::Int64(low),
            decimals,
        ] = parts[..]
        else {
            return Ok(());
        };
        self.count += count;
        self.longs += i128::from(high) << 64 | i128::from(low as u64);
        self.total.merge(DoubleDouble::from_raw([sum, addend, special]));
        if let Value::Decimal(number) = decimals {
            self.decimals = Some(add_decimal(self.decimals, number));
        }
        Ok(())
    }
}
