//! A window that moves over the values of a partition, document by document.

use super::bounds::{Bound, Bounds};
use super::contents::{Contents, Seen, Values};
use super::partition::Evaluator;
use crate::accumulator::{Ranking, evaluate_n, outside_group};
use crate::context::EvalContext;
use crate::expression::{Expression, Extractor, Unit, moved_date, total};
use quire_document::{Doc, Value, ValueBuf, compare};
use quire_error::{Error, Result};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// Makes the state of a function. The number is its `n`, or 0.
pub(super) type Make = dyn Fn(&EvalContext<'_>, usize) -> Result<Box<dyn Contents>> + Send + Sync;

/// A window function that has a window.
pub(super) struct SlidingSpec {
    pub given: Given,
    pub bounds: Bounds,
    /// The `n` of a function that returns at most n values (`$firstN` and similar functions).
    pub n: Option<Expression>,
    pub make: Box<Make>,
    /// The sort field, for bounds by value.
    pub sorted_by: Option<Expression>,
    /// True if the result is computed from the window's values.
    pub reads_window: bool,
    /// True if the result depends on the current document's value.
    pub reads_current: bool,
}

/// The argument of a window function, evaluated for each document.
#[derive(Debug)]
pub(super) enum Given {
    /// The value of an expression.
    One(Expression),
    /// An array with the values of both expressions.
    Pair(Expression, Expression),
    /// A sort key and an output, for `$top` and similar functions.
    Ranked(Arc<Ranking>),
}

impl Given {
    fn eval<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        match self {
            Given::One(expression) => {
                cx.pass()?;
                expression.eval(cx)
            }
            Given::Ranked(ranking) => ranking.eval(cx).map(Some),
            Given::Pair(first, second) => {
                let values = [first.eval(cx)?, second.eval(cx)?];
                cx.array_of(values.map(|value| value.unwrap_or(Value::Null))).map(Some)
            }
        }
    }
}

impl SlidingSpec {
    /// Returns true if values enter when they are pushed and need not be kept.
    fn enters_at_once(&self) -> bool {
        self.bounds.is_whole() && !self.reads_window && !self.reads_current
    }

    /// Gives the paths that are read of each document to an extractor.
    pub fn attach(&mut self, extractor: &mut Extractor) {
        self.sorted_by.iter_mut().for_each(|sorted_by| extractor.attach(sorted_by));
        match &mut self.given {
            Given::One(given) => extractor.attach(given),
            Given::Pair(first, second) => {
                extractor.attach(first);
                extractor.attach(second);
            }
            Given::Ranked(_) => {}
        }
    }
}

impl fmt::Debug for SlidingSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlidingSpec")
            .field("given", &self.given)
            .field("bounds", &self.bounds)
            .finish()
    }
}

/// Positions of documents: the first one in the window, and the first one after it.
type Ends = (u64, u64);

/// The state of a window function with a window.
#[derive(Debug)]
pub(super) struct Sliding {
    spec: Arc<SlidingSpec>,
    contents: Box<dyn Contents>,
    /// The values that have not entered the window yet, and those that are needed again.
    values: VecDeque<Option<ValueBuf>>,
    /// The position of the first of `values`.
    first: u64,
    /// The number of documents that were pushed.
    pushed: u64,
    /// The window of the latest result.
    window: Ends,
    keys: Keys,
    bytes: usize,
    /// The result for a window that is the whole partition.
    whole: Option<Option<ValueBuf>>,
}

impl Sliding {
    /// Returns the state for a new partition.
    ///
    /// # Errors
    /// 5787908 for an `n` that is not an integer above 0. It cannot depend on documents.
    pub fn new(spec: &Arc<SlidingSpec>, cx: &EvalContext<'_>) -> Result<Self> {
        let n = match &spec.n {
            Some(n) => evaluate_n(n, &cx.with_root(Doc::empty())).map_err(outside_group)?,
            None => 0,
        };
        Ok(Sliding {
            spec: Arc::clone(spec),
            contents: (spec.make)(cx, n)?,
            values: VecDeque::new(),
            first: 0,
            pushed: 0,
            window: (0, 0),
            keys: Keys::default(),
            bytes: 0,
            whole: None,
        })
    }

    /// Returns the window of document `at`, as far as documents were pushed.
    fn ends(&mut self, at: u64) -> Result<Ends> {
        let pushed = self.pushed;
        let place = |bound: &Bound<i64>, unbounded: u64, behind: i64| match bound {
            Bound::Unbounded => unbounded,
            Bound::Current => at.saturating_add_signed(behind).min(pushed),
            Bound::Offset(offset) => {
                at.saturating_add_signed(offset.saturating_add(behind)).min(pushed)
            }
        };
        match &self.spec.bounds {
            Bounds::Documents(low, high) => Ok((place(low, 0, 0), place(high, pushed, 1))),
            Bounds::Range(low, high, unit) => {
                let base = self.keys.base(at, *unit)?;
                self.keys.advance(at, low, high, &base, *unit)
            }
        }
    }

    /// Moves the window: first values enter, then others leave.
    fn slide(&mut self, (from, to): Ends) -> Result<()> {
        let (old_from, old_to) = self.window;
        for number in old_to.max(from)..to {
            let place = (number - self.first) as usize;
            let value = self.values.get(place).and_then(Option::as_ref).map(ValueBuf::as_value);
            self.contents.add(value)?;
        }
        for number in old_from..from.min(old_to) {
            let place = (number - self.first) as usize;
            let value = self.values.get(place).and_then(Option::as_ref).map(ValueBuf::as_value);
            self.contents.remove(value)?;
        }
        self.window = (from, to.max(from));
        Ok(())
    }

    /// Discards values that no later window needs.
    fn forget(&mut self, at: u64) {
        let (from, to) = self.window;
        let only_grows = self.spec.bounds.only_grows() && !self.spec.reads_window;
        let mut needed = if only_grows { to } else { from };
        if self.spec.reads_current {
            needed = needed.min(at + 1);
        }
        while self.first < needed
            && let Some(value) = self.values.pop_front()
        {
            self.bytes -= size_of_value(&value);
            self.first += 1;
        }
        self.keys.forget(at, self.spec.bounds.only_grows());
    }
}

fn size_of_value(value: &Option<ValueBuf>) -> usize {
    value.as_ref().map_or(size_of::<Option<ValueBuf>>(), ValueBuf::size)
}

impl Evaluator for Sliding {
    fn push(&mut self, cx: &EvalContext<'_>) -> Result<()> {
        self.pushed += 1;
        if let (Bounds::Range(..), Some(sorted_by)) = (&self.spec.bounds, &self.spec.sorted_by) {
            self.keys.push(sorted_by.eval(cx)?);
        }
        let value = self.spec.given.eval(cx)?;
        if self.spec.enters_at_once() {
            return self.contents.add(value);
        }
        let value = value.map(ValueBuf::new);
        self.bytes += size_of_value(&value);
        self.values.push_back(value);
        Ok(())
    }

    fn end(&mut self) {}

    fn is_ready(&mut self, at: u64) -> Result<bool> {
        match &self.spec.bounds {
            Bounds::Documents(_, Bound::Unbounded) | Bounds::Range(_, Bound::Unbounded, _) => {
                Ok(false)
            }
            Bounds::Documents(_, Bound::Current) => Ok(self.pushed > at),
            Bounds::Documents(_, Bound::Offset(offset)) => {
                Ok(self.pushed > at.saturating_add_signed(*offset).max(at))
            }
            Bounds::Range(_, Bound::Current, unit) => {
                self.keys.base(at, *unit)?;
                Ok(self.pushed > at)
            }
            Bounds::Range(_, high, unit) => {
                let base = self.keys.base(at, *unit)?;
                self.keys.has_passed(high, &base, *unit)
            }
        }
    }

    fn result<'a>(&mut self, at: u64, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        if let Some(whole) = &self.whole {
            return whole.as_ref().map(|value| cx.copy(value.as_value())).transpose();
        }
        let is_whole = self.spec.bounds.is_whole();
        if !self.spec.enters_at_once() {
            let ends = self.ends(at)?;
            self.slide(ends)?;
        }
        let (from, to) = self.window;
        let place = |number: u64| number.saturating_sub(self.first) as usize;
        let window = match self.spec.reads_window {
            true => Values::new(&self.values, place(from), place(to)),
            false => Values::new(&self.values, 0, 0),
        };
        let current = match at.checked_sub(self.first) {
            Some(place) if self.spec.reads_current => self.values.get(place as usize),
            _ => None,
        };
        let seen = Seen { window, current: current.and_then(Option::as_ref) };
        let result = self.contents.result(seen, cx)?;
        if is_whole && !self.spec.reads_current {
            self.whole = Some(result.map(ValueBuf::new));
            self.values = VecDeque::new();
            self.bytes = 0;
        } else {
            self.forget(at);
        }
        Ok(result)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.bytes + self.contents.size() + self.keys.bytes
    }
}

/// The values of the sort field, for bounds by value.
#[derive(Debug, Default)]
struct Keys {
    keys: VecDeque<ValueBuf>,
    /// The position of the first of `keys`.
    first: u64,
    /// The first document that is not below the lower bound.
    from: u64,
    /// The first document that is above the upper bound.
    to: u64,
    bytes: usize,
}

impl Keys {
    fn push(&mut self, key: Option<Value<'_>>) {
        let key = ValueBuf::new(key.unwrap_or(Value::Null));
        self.bytes += key.size();
        self.keys.push_back(key);
    }

    fn get(&self, number: u64) -> Option<Value<'_>> {
        self.keys.get(number.checked_sub(self.first)? as usize).map(ValueBuf::as_value)
    }

    /// Returns the value of the current document. Fails with 5429513 if it is not a date and the
    /// bounds have a unit, and with 5429413 or 5429414 if it is not a number and they have none.
    fn base(&self, at: u64, unit: Option<Unit>) -> Result<ValueBuf> {
        let base = self.get(at).unwrap_or(Value::Null);
        let refuse = |number, message| Err(Error::location(number, message));
        match (unit, base) {
            (Some(_), Value::Date(_)) => {}
            (Some(_), other) => {
                let kind = other.type_name();
                return refuse(
                    5429513,
                    format!(
                        "Invalid range: Expected the sortBy field to be a Date, but it was {kind}"
                    ),
                );
            }
            (None, Value::Date(_)) => {
                return refuse(
                    5429413,
                    "For windows that involve date or time ranges, a unit must be provided."
                        .to_owned(),
                );
            }
            (None, other) if other.is_number() => {}
            (None, other) => {
                let kind = other.type_name();
                return refuse(
                    5429414,
                    format!(
                        "Invalid range: Expected the sortBy field to be a number, but it was {kind}"
                    ),
                );
            }
        }
        Ok(ValueBuf::new(base))
    }

    /// Returns true if a document is above the upper bound, so that no later one is in the window.
    fn has_passed(
        &self,
        high: &Bound<ValueBuf>,
        base: &ValueBuf,
        unit: Option<Unit>,
    ) -> Result<bool> {
        let Some(limit) = limit(high, base, unit)? else { return Ok(false) };
        let last = self.keys.back().map(ValueBuf::as_value);
        Ok(last.is_some_and(|last| compare(last, limit.as_value(), None).is_gt()))
    }

    /// Moves both ends to the window around document `at`, whose value is `base`. The bound
    /// `"current"` is that document alone, without others of the same value.
    fn advance(
        &mut self,
        at: u64,
        low: &Bound<ValueBuf>,
        high: &Bound<ValueBuf>,
        base: &ValueBuf,
        unit: Option<Unit>,
    ) -> Result<Ends> {
        let end = self.first + self.keys.len() as u64;
        match limit(high, base, unit)? {
            _ if *high == Bound::Current => self.to = at + 1,
            None => self.to = end,
            Some(limit) => {
                let is_within = |key: Value<'_>| compare(key, limit.as_value(), None).is_le();
                while self.get(self.to).is_some_and(is_within) {
                    self.to += 1;
                }
            }
        }
        if *low == Bound::Current {
            self.from = at;
        } else if let Some(limit) = limit(low, base, unit)? {
            let is_below = |key: Value<'_>| compare(key, limit.as_value(), None).is_lt();
            while self.get(self.from).is_some_and(is_below) {
                self.from += 1;
            }
        }
        Ok((self.from, self.to.max(self.from)))
    }

    fn forget(&mut self, at: u64, only_grows: bool) {
        let from = if only_grows { u64::MAX } else { self.from };
        let needed = (at + 1).min(from).min(self.to);
        while self.first < needed
            && let Some(key) = self.keys.pop_front()
        {
            self.bytes -= key.size();
            self.first += 1;
        }
    }
}

/// Returns the value at a bound; `None` if it is unbounded.
fn limit(bound: &Bound<ValueBuf>, base: &ValueBuf, unit: Option<Unit>) -> Result<Option<ValueBuf>> {
    let offset = match bound {
        Bound::Unbounded => return Ok(None),
        Bound::Current => return Ok(Some(base.clone())),
        Bound::Offset(offset) => offset.as_value(),
    };
    let moved = match (unit, base.as_value(), offset) {
        (Some(unit), Value::Date(date), Value::Int64(amount)) => {
            moved_date(date, unit, amount).map(Value::Date).ok_or_else(|| {
                Error::location(5166406, "the bound of a range is beyond the range of dates")
            })?
        }
        (_, base, offset) => total(base, offset),
    };
    Ok(Some(ValueBuf::new(moved)))
}
