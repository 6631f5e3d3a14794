//! Intervals of key values, and ordered lists of them: the part of an index that a scan reads, for
//! one field.

use quire_document::{ArrayBuf, Binary, Value, ValueBuf, compare};
use std::cmp::Ordering;
use std::sync::Arc;

/// A range of values between two ends. Each end is included or excluded.
#[derive(Debug, Clone)]
pub struct Interval {
    /// The lower end.
    pub low: ValueBuf,
    /// True if the lower end is included.
    pub low_inclusive: bool,
    /// The upper end.
    pub high: ValueBuf,
    /// True if the upper end is included.
    pub high_inclusive: bool,
}

/// Disjoint intervals in ascending order. An empty list means that nothing can match. Copies share
/// one list, because an `$in` can have a million values and each plan for it has its own copy.
#[derive(Debug, Clone, Default)]
pub struct Intervals(pub Arc<Vec<Interval>>);

impl From<Vec<Interval>> for Intervals {
    fn from(intervals: Vec<Interval>) -> Self {
        Intervals(Arc::new(intervals))
    }
}

fn order(a: &ValueBuf, b: &ValueBuf) -> Ordering {
    compare(a.as_value(), b.as_value(), None)
}

impl Interval {
    /// Returns an interval with these ends.
    pub fn new<'v>(
        low: impl Into<Value<'v>>,
        low_inclusive: bool,
        high: impl Into<Value<'v>>,
        high_inclusive: bool,
    ) -> Self {
        let (low, high) = (ValueBuf::new(low), ValueBuf::new(high));
        Interval { low, low_inclusive, high, high_inclusive }
    }

    /// Returns the interval of a single value.
    pub fn point<'v>(value: impl Into<Value<'v>>) -> Self {
        let value = ValueBuf::new(value);
        Interval { low: value.clone(), low_inclusive: true, high: value, high_inclusive: true }
    }

    /// Returns true if the interval contains exactly one value.
    pub fn is_point(&self) -> bool {
        self.low_inclusive && self.high_inclusive && order(&self.low, &self.high).is_eq()
    }

    /// Returns true if the interval contains no value.
    pub fn is_empty(&self) -> bool {
        match order(&self.low, &self.high) {
            Ordering::Less => false,
            Ordering::Equal => !(self.low_inclusive && self.high_inclusive),
            Ordering::Greater => true,
        }
    }

    /// Returns true for `[MinKey, MaxKey]`.
    pub fn is_all(&self) -> bool {
        self.low_inclusive
            && self.high_inclusive
            && matches!(self.low.as_value(), Value::MinKey)
            && matches!(self.high.as_value(), Value::MaxKey)
    }

    fn low_order(&self, other: &Interval) -> Ordering {
        order(&self.low, &other.low).then(other.low_inclusive.cmp(&self.low_inclusive))
    }

    fn high_order(&self, other: &Interval) -> Ordering {
        order(&self.high, &other.high).then(self.high_inclusive.cmp(&other.high_inclusive))
    }

    /// Returns true if `next`, which does not begin before this interval, overlaps or touches it.
    fn touches(&self, next: &Interval) -> bool {
        match order(&self.high, &next.low) {
            Ordering::Greater => true,
            Ordering::Equal => self.high_inclusive || next.low_inclusive,
            Ordering::Less => false,
        }
    }

    fn intersect(&self, other: &Interval) -> Interval {
        let low = if self.low_order(other).is_ge() { self } else { other };
        let high = if self.high_order(other).is_le() { self } else { other };
        Interval {
            low: low.low.clone(),
            low_inclusive: low.low_inclusive,
            high: high.high.clone(),
            high_inclusive: high.high_inclusive,
        }
    }

    /// Returns the interval as explain prints it; with `reversed`, as for a scan in descending
    /// order.
    pub fn text(&self, reversed: bool) -> String {
        let low = crate::debug_value(self.low.as_value());
        let high = crate::debug_value(self.high.as_value());
        let (first, first_in, last, last_in) = if reversed {
            (high, self.high_inclusive, low, self.low_inclusive)
        } else {
            (low, self.low_inclusive, high, self.high_inclusive)
        };
        let open = if first_in { '[' } else { '(' };
        let close = if last_in { ']' } else { ')' };
        format!("{open}{first}, {last}{close}")
    }
}

impl Intervals {
    /// Returns `[MinKey, MaxKey]`, which contains every value.
    pub fn all() -> Self {
        Intervals::from(vec![Interval::new(Value::MinKey, true, Value::MaxKey, true)])
    }

    /// Returns the empty list.
    pub fn none() -> Self {
        Intervals::default()
    }

    /// Returns a list of one interval, or the empty list if the interval is empty.
    pub fn of(interval: Interval) -> Self {
        Intervals::from(if interval.is_empty() { Vec::new() } else { vec![interval] })
    }

    /// Returns the interval of a single value.
    pub fn point<'v>(value: impl Into<Value<'v>>) -> Self {
        Intervals::from(vec![Interval::point(value)])
    }

    /// Returns true for `[MinKey, MaxKey]`.
    pub fn is_all(&self) -> bool {
        matches!(self.0.as_slice(), [only] if only.is_all())
    }

    /// Returns true if the list is a single value.
    pub fn is_point(&self) -> bool {
        matches!(self.0.as_slice(), [only] if only.is_point())
    }

    /// Returns true if the list is one or more single values.
    pub fn is_points(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(Interval::is_point)
    }

    /// Returns true if the list may contain strings, or documents and arrays, which may contain
    /// strings. These types are adjacent in MongoDB's order.
    pub fn hold_strings(&self) -> bool {
        let behind = Value::Binary(Binary { subtype: 0, bytes: &[] });
        let strings = Interval::new(Value::String(""), true, behind, false);
        self.0.iter().any(|interval| !interval.intersect(&strings).is_empty())
    }

    /// Returns the union of both.
    #[must_use]
    pub fn union(self, other: Intervals) -> Self {
        Intervals::union_of([self, other])
    }

    /// Returns the union of all, with one sort.
    #[must_use]
    pub fn union_of(all: impl IntoIterator<Item = Intervals>) -> Self {
        let mut parts: Vec<Interval> =
            all.into_iter().flat_map(|one| Arc::unwrap_or_clone(one.0)).collect();
        parts.sort_by(|a, b| a.low_order(b).then_with(|| b.high_order(a)));
        let mut merged: Vec<Interval> = Vec::with_capacity(parts.len());
        for next in parts {
            match merged.last_mut() {
                Some(last) if last.touches(&next) => {
                    if last.high_order(&next).is_lt() {
                        last.high = next.high;
                        last.high_inclusive = next.high_inclusive;
                    }
                }
                _ => merged.push(next),
            }
        }
        Intervals::from(merged)
    }

    /// Returns the intersection of both.
    #[must_use]
    pub fn intersect(&self, other: &Intervals) -> Self {
        if self.is_all() {
            return other.clone();
        }
        let mut out = Vec::new();
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            let both = a.intersect(b);
            if !both.is_empty() {
                out.push(both);
            }
            if a.high_order(b).is_lt() {
                left.next();
            } else {
                right.next();
            }
        }
        Intervals::from(out)
    }

    /// Returns the complement.
    #[must_use]
    pub fn complement(&self) -> Self {
        let mut out = Vec::new();
        let (mut low, mut low_inclusive) = (ValueBuf::new(Value::MinKey), true);
        for interval in self.0.iter() {
            let gap = Interval {
                low,
                low_inclusive,
                high: interval.low.clone(),
                high_inclusive: !interval.low_inclusive,
            };
            // No value sorts between undefined and null.
            let nothing = matches!(gap.low.as_value(), Value::Undefined)
                && matches!(gap.high.as_value(), Value::Null)
                && !gap.low_inclusive
                && !gap.high_inclusive;
            if !gap.is_empty() && !nothing {
                out.push(gap);
            }
            low = interval.high.clone();
            low_inclusive = !interval.high_inclusive;
        }
        let high = ValueBuf::new(Value::MaxKey);
        let rest = Interval { low, low_inclusive, high, high_inclusive: true };
        if !rest.is_empty() {
            out.push(rest);
        }
        Intervals::from(out)
    }

    /// Returns the intervals as explain prints them, in the order in which a scan reads them.
    pub fn print(&self, reversed: bool) -> ArrayBuf {
        let texts: Vec<String> = if reversed {
            self.0.iter().rev().map(|interval| interval.text(true)).collect()
        } else {
            self.0.iter().map(|interval| interval.text(false)).collect()
        };
        texts.iter().map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(low: i32, low_in: bool, high: i32, high_in: bool) -> Intervals {
        Intervals::of(Interval::new(low, low_in, high, high_in))
    }

    fn text(intervals: &Intervals) -> Vec<String> {
        intervals.0.iter().map(|interval| interval.text(false)).collect()
    }

    #[test]
    fn union_merges_adjacent_intervals() {
        let union = range(1, true, 2, false).union(range(2, true, 3, true));
        assert_eq!(text(&union), ["[1, 3]"]);
        let union = range(1, true, 2, false).union(range(2, false, 3, true));
        assert_eq!(text(&union), ["[1, 2)", "(2, 3]"]);
        let union = range(5, true, 9, true).union(range(1, true, 7, true));
        assert_eq!(text(&union), ["[1, 9]"]);
    }

    #[test]
    fn intersection_and_complement() {
        let points = Intervals::point(1).union(Intervals::point(5)).union(Intervals::point(9));
        assert_eq!(text(&points.intersect(&range(1, false, 9, true))), ["[5, 5]", "[9, 9]"]);
        assert_eq!(text(&points.complement()), ["[MinKey, 1)", "(1, 5)", "(5, 9)", "(9, MaxKey]"]);
        assert!(Intervals::all().complement().0.is_empty());
        assert!(Intervals::none().complement().is_all());
        let nulls = Intervals::point(Value::Undefined).union(Intervals::point(Value::Null));
        assert_eq!(text(&nulls.complement()), ["[MinKey, undefined)", "(null, MaxKey]"]);
    }
}
