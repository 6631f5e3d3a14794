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
