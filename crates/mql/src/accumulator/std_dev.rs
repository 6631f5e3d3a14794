//! `$stdDevPop`, `$stdDevSamp`: standard deviations, by Welford's method.

use super::fixed_state::FixedState;
use super::registry::Accumulator;
use super::table::States;
use quire_document::{ArrayBuf, Value, array};

pub(super) const STD_DEV_POP: Accumulator = Accumulator::unary(
    "$stdDevPop",
    "3.2",
    "The standard deviation of the numbers as a whole population; null if there are none.",
    |_| Box::new(Deviation::new(false)),
)
.with_table(|_| Box::new(States::new(|_| Deviation::new(false))));

pub(super) const STD_DEV_SAMP: Accumulator = Accumulator::unary(
    "$stdDevSamp",
    "3.2",
    "The standard deviation of the numbers as a sample; null if there are fewer than two.",
    |_| Box::new(Deviation::new(true)),
)
.with_table(|_| Box::new(States::new(|_| Deviation::new(true))));

/// A standard deviation that is updated with each number.
#[derive(Clone, Debug)]
pub struct Deviation {
    sample: bool,
    count: i64,
    mean: f64,
    squares: f64,
}

impl Deviation {
    /// Returns the state for a sample, or for a whole population.
    pub fn new(sample: bool) -> Self {
        Deviation { sample, count: 0, mean: 0.0, squares: 0.0 }
    }

    /// Adds a value if it is a number, and ignores it otherwise.
    pub fn push(&mut self, value: Value<'_>) {
        let number = match value {
            Value::Int32(number) => f64::from(number),
            Value::Int64(number) => number as f64,
            Value::Double(number) => number,
            Value::Decimal(number) => number.to_f64(),
            _ => return,
        };
        self.count += 1;
        let delta = number - self.mean;
        if delta != 0.0 {
            self.mean += delta / self.count as f64;
            self.squares += delta * (number - self.mean);
        }
    }

    /// Returns the deviation; null if there are too few numbers.
    pub fn value(&self) -> Value<'static> {
        let divisor = self.count - i64::from(self.sample);
        if divisor <= 0 {
            return Value::Null;
        }
        Value::Double((self.squares / divisor as f64).sqrt())
    }
}

impl FixedState for Deviation {
    #[inline]
    fn take(&mut self, value: Value<'_>) {
        self.push(value);
    }

    fn current(&self) -> Value<'static> {
        self.value()
    }

    fn parts(&self) -> ArrayBuf {
        array![self.count, self.mean, self.squares]
    }

    fn join(&mut self, parts: &[Value<'_>]) {
        let [Value::Int64(count), Value::Double(mean), Value::Double(squares)] = *parts else {
            return;
        };
        if count == 0 {
            return;
        }
        let (ours, theirs) = (self.count as f64, count as f64);
        let (delta, all) = (mean - self.mean, ours + theirs);
        self.mean = (ours * self.mean + theirs * mean) / all;
        self.squares += squares + delta * delta * (ours * theirs / all);
        self.count += count;
    }
}
