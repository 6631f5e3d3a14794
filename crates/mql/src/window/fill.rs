//! `$locf`, `$linearFill`: fill null and missing values.

use super::contents::{Contents, Seen};
use super::partition::Evaluator;
use crate::context::EvalContext;
use crate::expression::{Expression, difference, product, quotient, total};
use quire_document::{Value, ValueBuf, compare};
use quire_error::{Error, Result};
use std::collections::VecDeque;
use std::sync::Arc;

/// `$locf`: the last value that was not null or missing.
#[derive(Debug, Default)]
pub(super) struct LastObservation(Option<ValueBuf>);

impl Contents for LastObservation {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        if let Some(value) = value.filter(|value| !value.is_nullish()) {
            self.0 = Some(ValueBuf::new(value));
        }
        Ok(())
    }

    fn remove(&mut self, _: Option<Value<'_>>) -> Result<()> {
        Ok(())
    }

    fn result<'a>(&self, _: Seen<'_>, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        cx.copy(self.0.as_ref().map_or(Value::Null, ValueBuf::as_value)).map(Some)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.0.as_ref().map_or(0, ValueBuf::size)
    }
}

/// The expressions of `$linearFill`.
#[derive(Debug)]
pub(super) struct FillSpec {
    /// The sort field.
    pub sorted_by: Expression,
    /// The values, some of which are null or missing.
    pub input: Expression,
}

/// `$linearFill`: linear interpolation between the known values.
#[derive(Debug)]
pub(super) struct LinearFill {
    spec: Arc<FillSpec>,
    /// The points without a result yet. The value of an unknown point is null.
    points: VecDeque<[ValueBuf; 2]>,
    /// The position of the first of them in the partition.
    first: u64,
    /// The last known point before them.
    left: Option<[ValueBuf; 2]>,
    /// The positions of the known points among them.
    known: VecDeque<u64>,
    last_place: Option<ValueBuf>,
    bytes: usize,
}

impl LinearFill {
    pub fn new(spec: Arc<FillSpec>) -> Self {
        LinearFill {
            spec,
            points: VecDeque::new(),
            first: 0,
            left: None,
            known: VecDeque::new(),
            last_place: None,
            bytes: 0,
        }
    }

    /// Fails for a sort value that is not a number or a date, or equals the one before.
    fn check_place(&mut self, place: &ValueBuf) -> Result<()> {
        let value = place.as_value();
        if !value.is_number() && !matches!(value, Value::Date(_)) {
            let message = format!(
                "$linearFill expects the sortBy field to be numeric or a Date, but it was {}",
                value.type_name()
            );
            return Err(Error::location(6050105, message));
        }
        let last = self.last_place.replace(place.clone());
        if last.is_some_and(|last| compare(last.as_value(), value, None).is_eq()) {
            let message = "There can be no repeated values in the sort field";
            return Err(Error::location(6050106, message));
        }
        Ok(())
    }
}

/// Returns the value at `place` on the line through two points.
fn between(
    left: &[ValueBuf; 2],
    right: &[ValueBuf; 2],
    place: Value<'_>,
) -> Result<Value<'static>> {
    let [[from, low], [to, high]] =
        [left, right].map(|point| point.each_ref().map(ValueBuf::as_value));
    let slope = quotient(difference(high, low)?, difference(to, from)?)?;
    Ok(total(low, product(difference(place, from)?, slope)))
}

impl Evaluator for LinearFill {
    fn push(&mut self, cx: &EvalContext<'_>) -> Result<()> {
        let spec = Arc::clone(&self.spec);
        let place = ValueBuf::new(spec.sorted_by.eval(cx)?.unwrap_or(Value::Null));
        self.check_place(&place)?;
        let value = spec.input.eval(cx)?.filter(|value| !value.is_nullish());
        if let Some(other) = value.filter(|value| !value.is_number()) {
            let message = format!(
                "Value to be filled must be numeric or nullish, but found {}",
                other.type_name()
            );
            return Err(Error::type_mismatch(message));
        }
        if value.is_some() {
            self.known.push_back(self.first + self.points.len() as u64);
        }
        let point = [place, ValueBuf::new(value.unwrap_or(Value::Null))];
        self.bytes += point.iter().map(ValueBuf::size).sum::<usize>();
        self.points.push_back(point);
        Ok(())
    }

    fn end(&mut self) {}

    fn is_ready(&mut self, _: u64) -> Result<bool> {
        Ok(!self.points.is_empty() && (self.left.is_none() || !self.known.is_empty()))
    }

    fn result<'a>(&mut self, at: u64, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        let Some(point) = self.points.pop_front() else { return Ok(Some(Value::Null)) };
        self.bytes -= point.iter().map(ValueBuf::size).sum::<usize>();
        self.first = at + 1;
        if self.known.pop_front_if(|known| *known == at).is_some() {
            let value = cx.copy(point[1].as_value())?;
            self.left = Some(point);
            return Ok(Some(value));
        }
        let next = self.known.front().map(|known| (known - self.first) as usize);
        let right = next.and_then(|next| self.points.get(next));
        match (&self.left, right) {
            (Some(left), Some(right)) => {
                cx.copy(between(left, right, point[0].as_value())?).map(Some)
            }
            _ => Ok(Some(Value::Null)),
        }
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.bytes
    }
}
