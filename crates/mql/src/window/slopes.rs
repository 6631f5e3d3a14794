//! `$derivative`, `$integral`: slopes and areas of numbers over the sort field.
//!
//! The values are pairs of the sort value and the input.

use super::contents::{Contents, Seen};
use super::sums::RemovableSum;
use crate::context::EvalContext;
use crate::expression::{difference, product, quotient, total};
use quire_document::{Value, ValueBuf, compare};
use quire_error::{Error, Result};
use std::collections::VecDeque;

/// Returns the two values of a pair, with null for missing ones.
fn pair(value: Option<Value<'_>>) -> [Value<'_>; 2] {
    let elements = value.and_then(|value| value.as_array()).map(|array| array.to_vec());
    elements.and_then(|elements| elements.try_into().ok()).unwrap_or([Value::Null; 2])
}

/// `$derivative`: the slope between the first and the last document of the window.
#[derive(Debug)]
pub(super) struct Derivative {
    /// The length of the unit of dates in milliseconds.
    pub unit_millis: Option<i64>,
}

impl Derivative {
    fn check(&self, at: Value<'_>) -> Result<()> {
        match (self.unit_millis, at) {
            (Some(_), Value::Date(_)) => Ok(()),
            (Some(_), _) => Err(Error::location(
                5624900,
                "$derivative with 'unit' expects the sortBy field to be a Date",
            )),
            (None, Value::Date(_)) => Err(Error::location(
                5624901,
                "$derivative where the sortBy is a Date requires a 'unit'",
            )),
            (None, at) if at.is_number() => Ok(()),
            (None, _) => Err(Error::location(
                5624902,
                "$derivative (with no 'unit') expects the sortBy field to be numeric",
            )),
        }
    }
}

impl Contents for Derivative {
    fn add(&mut self, _: Option<Value<'_>>) -> Result<()> {
        Ok(())
    }

    fn remove(&mut self, _: Option<Value<'_>>) -> Result<()> {
        Ok(())
    }

    fn result<'a>(&self, seen: Seen<'_>, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        let (Some(first), Some(last)) = (seen.window.first(), seen.window.last()) else {
            return Ok(Some(Value::Null));
        };
        let ([from, low], [to, high]) = (pair(first), pair(last));
        self.check(from)?;
        self.check(to)?;
        let mut run = difference(to, from)?;
        if let Some(unit) = self.unit_millis {
            run = quotient(run, Value::Int64(unit))?;
        }
        let rise = difference(high, low)?;
        if compare(run, Value::Int32(0), None).is_eq() {
            return Ok(Some(Value::Null));
        }
        cx.copy(quotient(rise, run)?).map(Some)
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

/// `$integral`: the area below the window's points, by the trapezoidal rule.
#[derive(Debug)]
pub(super) struct Integral {
    unit_millis: Option<i64>,
    area: RemovableSum,
    /// The points of the window; only the last one if no value leaves.
    points: VecDeque<[ValueBuf; 2]>,
    only_grows: bool,
    bytes: usize,
}

impl Integral {
    pub fn new(unit_millis: Option<i64>, only_grows: bool) -> Self {
        let (area, points) = (RemovableSum::default(), VecDeque::new());
        Integral { unit_millis, area, points, only_grows, bytes: 0 }
    }

    fn check(&self, [at, value]: [Value<'_>; 2]) -> Result<()> {
        let refuse = |number, message| Err(Error::location(number, message));
        match (self.unit_millis, at) {
            _ if !value.is_number() => refuse(
                5423900,
                "The input value of $integral window function must be a vector of 2 value, the first value must be numeric or date type and the second must be numeric.",
            ),
            (Some(_), Value::Date(_)) => Ok(()),
            (Some(_), _) => {
                refuse(5423901, "$integral with 'unit' expects the sortBy field to be a Date")
            }
            (None, at) if at.is_number() => Ok(()),
            (None, _) => {
                refuse(5423902, "$integral (with no 'unit') expects the sortBy field to be numeric")
            }
        }
    }

    fn drop_first(&mut self) {
        if let Some(point) = self.points.pop_front() {
            self.bytes -= point.iter().map(ValueBuf::size).sum::<usize>();
        }
    }
}

/// Returns the area between two points.
fn trapezoid(left: &[ValueBuf; 2], right: &[ValueBuf; 2]) -> Result<Value<'static>> {
    let [[from, low], [to, high]] =
        [left, right].map(|point| point.each_ref().map(ValueBuf::as_value));
    quotient(product(difference(to, from)?, total(low, high)), Value::Int32(2))
}

impl Contents for Integral {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        let point = pair(value);
        self.check(point)?;
        let point = point.map(ValueBuf::new);
        if let Some(last) = self.points.back() {
            self.area.add(trapezoid(last, &point)?);
        }
        if self.only_grows {
            self.drop_first();
        }
        self.bytes += point.iter().map(ValueBuf::size).sum::<usize>();
        self.points.push_back(point);
        Ok(())
    }

    fn remove(&mut self, _: Option<Value<'_>>) -> Result<()> {
        if let (Some(first), Some(second)) = (self.points.front(), self.points.get(1)) {
            self.area.remove(trapezoid(first, second)?);
        }
        self.drop_first();
        Ok(())
    }

    fn result<'a>(&self, _: Seen<'_>, _: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        Ok(Some(match self.unit_millis {
            _ if self.points.is_empty() => Value::Null,
            Some(unit) => quotient(self.area.value(), Value::Int64(unit))?,
            None => self.area.value(),
        }))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.bytes
    }
}
