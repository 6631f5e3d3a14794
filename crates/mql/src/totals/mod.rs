//! Totals of many values, each kept in a fixed size: the accumulators of `$group`, the windows of
//! `$setWindowFields` and the expressions over arrays share them.

mod average;
mod deviation;
mod exact;
mod fixed_point;
mod sum;
mod summation;

pub(crate) use average::Average;
pub(crate) use deviation::Deviation;
pub(crate) use exact::ExactSum;
pub(crate) use sum::Sum;

use quire_document::{ArrayBuf, Collator, Value, compare};
use std::cmp::Ordering;
use std::fmt;

/// A state of fixed size, which each value updates.
pub(crate) trait FixedState: Send + fmt::Debug + Sized {
    /// Updates the state with a value.
    fn take(&mut self, value: Value<'_>);

    /// Updates the state with a value `count` times.
    fn take_repeated(&mut self, value: Value<'_>, count: u32) {
        (0..count).for_each(|_| self.take(value));
    }

    /// Updates the state with each of some doubles.
    fn take_doubles(&mut self, numbers: &[f64]) {
        numbers.iter().for_each(|number| self.take(Value::Double(*number)));
    }

    /// Updates each of four states with some doubles.
    fn take_doubles_of_four(states: [&mut Self; 4], numbers: [&[f64]; 4]) {
        states.into_iter().zip(numbers).for_each(|(state, numbers)| state.take_doubles(numbers));
    }

    /// Returns the result so far.
    fn current(&self) -> Value<'static>;

    /// Returns the numbers that another state needs to merge this one.
    fn parts(&self) -> ArrayBuf;

    /// Merges the numbers that another state returned from `parts`.
    fn join(&mut self, parts: &[Value<'_>]);
}

/// Returns true if a value replaces the best one so far. Null and missing values never do.
pub(crate) fn replaces(
    value: Value<'_>,
    best: Option<Value<'_>>,
    when: Ordering,
    collator: Option<&dyn Collator>,
) -> bool {
    !value.is_nullish() && best.is_none_or(|best| compare(value, best, collator) == when)
}
