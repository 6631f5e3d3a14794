//! `$avg`: the mean of the numbers; null if there are none.

use super::registry::Accumulator;
use super::running::Running;
use super::summation::Mixed;
use super::table::States;
use quire_document::{ArrayBuf, Decimal128, Value};

pub(super) const AVG: Accumulator = Accumulator::unary(
    "$avg",
    "1.0",
    "The mean of the numbers: a double, or a decimal if one is among them; null for none.",
    |_| Box::new(Average::exact()),
)
.with_table(|_| Box::new(States::new(|_| Average::exact())));

/// The mean of numbers of all types.
#[derive(Clone, Debug, Default)]
pub struct Average {
    /// Longs are summed exactly, as mongod's `$group` does; its expression rounds.
    exact: bool,
    total: Mixed,
    count: i64,
}

impl Average {
    /// A mean that sums longs exactly.
    fn exact() -> Self {
        Average { exact: true, ..Average::default() }
    }

    /// Adds a value if it is a number.
    #[inline]
    pub fn push(&mut self, value: Value<'_>) {
        match value {
            Value::Int32(number) => self.total.doubles.add(f64::from(number)),
            Value::Int64(number) if self.exact => self.total.whole += i128::from(number),
            Value::Int64(number) => self.total.doubles.add_halves(number),
            Value::Double(number) => self.total.doubles.add(number),
            Value::Decimal(number) => self.total.add_decimal(number),
            _ => return,
        }
        self.count += 1;
    }

    /// The mean; null if nothing was added.
    pub fn value(&self) -> Value<'static> {
        match self.total.decimals {
            _ if self.count == 0 => Value::Null,
            None => Value::Double(self.total.binary().value() / self.count as f64),
            Some(decimals) if decimals.is_nan() => Value::Decimal(decimals),
            Some(decimals) => {
                let sum = decimals.add(self.total.binary().to_decimal());
                Value::Decimal(sum.divide(Decimal128::from_i64(self.count)))
            }
        }
    }
}

impl Running for Average {
    #[inline]
    fn take(&mut self, value: Value<'_>) {
        self.push(value);
    }

    fn current(&self) -> Value<'static> {
        self.value()
    }

    fn parts(&self) -> ArrayBuf {
        let count = Value::Int64(self.count);
        std::iter::once(count).chain(self.total.save()).collect()
    }

    fn join(&mut self, parts: &[Value<'_>]) {
        let [Value::Int64(count), total @ ..] = parts else { return };
        self.total.merge(total);
        self.count += count;
    }
}
