//! Means of numbers of all types.

use super::{FixedState, Sum};
use quire_document::{ArrayBuf, Decimal128, Value, array};

/// The mean of numbers of all types: their sum, divided by their count.
#[derive(Clone, Debug, Default)]
pub struct Average {
    /// True if a sum of integers is exact before the division, as in mongod's `$group`. As an
    /// expression `$avg` divides a sum of doubles, so that `[2^63 - 1, -2^63]` has the mean 0.
    exact: bool,
    sum: Sum,
    count: i64,
}

impl Average {
    /// Returns the mean as `$group` computes it.
    pub(crate) fn exact() -> Self {
        Average { exact: true, ..Average::default() }
    }

    /// Adds a value if it is a number, and ignores it otherwise.
    #[inline]
    pub fn push(&mut self, value: Value<'_>) {
        if value.is_number() {
            self.sum.push(value);
            self.count += 1;
        }
    }

    /// Returns the mean; null if no number was added.
    pub fn value(&self) -> Value<'static> {
        if self.count == 0 {
            return Value::Null;
        }
        match self.sum.decimal() {
            Some(decimal) if decimal.is_nan() => Value::Decimal(decimal),
            Some(decimal) => Value::Decimal(decimal.divide(Decimal128::from_i64(self.count))),
            None => {
                let sum = if self.exact { self.sum.binary() } else { self.sum.rounded() };
                Value::Double(sum / self.count as f64)
            }
        }
    }
}

impl FixedState for Average {
    #[inline]
    fn take(&mut self, value: Value<'_>) {
        self.push(value);
    }

    fn take_doubles(&mut self, numbers: &[f64]) {
        self.sum.push_doubles(numbers);
        self.count += numbers.len() as i64;
    }

    fn take_doubles_of_four(states: [&mut Self; 4], numbers: [&[f64]; 4]) {
        let mut numbers_left = numbers.iter();
        let sums = states.map(|state| {
            state.count += numbers_left.next().map_or(0, |numbers| numbers.len() as i64);
            &mut state.sum
        });
        Sum::push_doubles_to_four(sums, numbers);
    }

    fn current(&self) -> Value<'static> {
        self.value()
    }

    fn parts(&self) -> ArrayBuf {
        array![self.count, &self.sum.parts()]
    }

    fn join(&mut self, parts: &[Value<'_>]) {
        let [Value::Int64(count), Value::Array(sum)] = parts else { return };
        self.sum.join(&sum.to_vec());
        self.count += count;
    }
}
