//! Standard deviations by Welford's method.

use super::FixedState;
use quire_document::{ArrayBuf, Value, array};

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
        let Some(number) = value.to_f64() else { return };
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
