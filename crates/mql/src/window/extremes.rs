//! `$min`, `$max` for windows that values leave. Only those values of the window are kept that may
//! still become the result (the ascending minima of a sliding window).

use super::contents::{Contents, Seen};
use crate::accumulator::StringOrder;
use crate::context::EvalContext;
use quire_document::{Value, ValueBuf, compare};
use quire_error::Result;
use std::cmp::Ordering;
use std::collections::VecDeque;

/// The best value of a window. Null and missing values are ignored.
#[derive(Debug)]
pub(super) struct BestOf {
    /// The order of a better value relative to a worse one.
    better: Ordering,
    collation: StringOrder,
    /// The candidates with their positions of entry, the best one first.
    candidates: VecDeque<(u64, ValueBuf)>,
    entered: u64,
    left: u64,
    bytes: usize,
}

impl BestOf {
    pub fn new(better: Ordering, collation: StringOrder) -> Self {
        let candidates = VecDeque::new();
        BestOf { better, collation, candidates, entered: 0, left: 0, bytes: 0 }
    }

    /// Returns the best value.
    pub fn best(&self) -> Option<Value<'_>> {
        self.candidates.front().map(|(_, value)| value.as_value())
    }

    /// Returns true if `known` cannot become the result while `value` is in the window. Of equal
    /// values `$min` returns the first and `$max` the last.
    fn is_beaten(&self, known: Value<'_>, value: Value<'_>) -> bool {
        let order = compare(value, known, self.collation.as_deref());
        order == self.better || (order.is_eq() && self.better.is_gt())
    }
}

impl Contents for BestOf {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        self.entered += 1;
        let Some(value) = value.filter(|value| !value.is_nullish()) else { return Ok(()) };
        while let Some((_, known)) = self.candidates.back()
            && self.is_beaten(known.as_value(), value)
        {
            self.bytes -= known.size();
            self.candidates.pop_back();
        }
        let value = ValueBuf::new(value);
        self.bytes += value.size();
        self.candidates.push_back((self.entered, value));
        Ok(())
    }

    fn remove(&mut self, _: Option<Value<'_>>) -> Result<()> {
        self.left += 1;
        let left = self.left;
        if let Some((_, value)) = self.candidates.pop_front_if(|(number, _)| *number <= left) {
            self.bytes -= value.size();
        }
        Ok(())
    }

    fn result<'a>(&self, _: Seen<'_>, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        cx.copy(self.best().unwrap_or(Value::Null)).map(Some)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.bytes
    }
}
