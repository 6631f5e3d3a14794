//! `$sum`, `$avg`, `$stdDevPop`, `$stdDevSamp` for windows that values leave: a value is added when
//! it enters and subtracted when it leaves. The exact error of each rounding is kept.

use super::contents::{Contents, Seen};
use crate::context::EvalContext;
use crate::totals::Sum;
use quire_document::{Decimal128, Value};
use quire_error::Result;

/// A sum from which values can be removed. It is an int or a long, whichever fits, unless a double or
/// a decimal is in the window.
/// Infinities and NaN are counted separately, because they cannot be subtracted.
#[derive(Clone, Debug, Default)]
pub(super) struct RemovableSum {
    finite: Sum,
    doubles: i64,
    decimals: i64,
    nans: i64,
    positive: i64,
    negative: i64,
}

impl RemovableSum {
    pub fn add(&mut self, value: Value<'_>) {
        self.update(value, 1);
    }

    pub fn remove(&mut self, value: Value<'_>) {
        self.update(value, -1);
    }

    fn update(&mut self, value: Value<'_>, times: i64) {
        let special = match value {
            Value::Int32(_) | Value::Int64(_) => None,
            Value::Double(number) => {
                self.doubles += times;
                (!number.is_finite()).then_some(number)
            }
            Value::Decimal(number) => {
                self.decimals += times;
                (number.is_nan() || number.is_infinite()).then(|| number.to_f64())
            }
            _ => return,
        };
        match special {
            Some(number) if number.is_nan() => self.nans += times,
            Some(number) if number > 0.0 => self.positive += times,
            Some(_) => self.negative += times,
            None if times > 0 => self.finite.push(value),
            // The opposite of the smallest long is no long, so it is added in two parts.
            None if matches!(value, Value::Int64(i64::MIN)) => {
                self.finite.push(Value::Int64(i64::MAX));
                self.finite.push(Value::Int64(1));
            }
            None => self.finite.push(negated(value)),
        }
    }

    /// Returns the sum; the int 0 if there are no numbers.
    pub fn value(&self) -> Value<'static> {
        if let Some(special) = self.special() {
            return match self.decimals {
                0 => Value::Double(special),
                _ => Value::Decimal(Decimal128::from_f64(special)),
            };
        }
        let sum = self.finite.value();
        match (self.decimals, self.doubles) {
            (1.., _) => Value::Decimal(decimal(sum)),
            (_, 1..) => Value::Double(double(sum)),
            _ => match whole(sum) {
                Some(number) => i32::try_from(number).map_or(Value::Int64(number), Value::Int32),
                None => sum,
            },
        }
    }

    /// Returns the sum as a double.
    pub fn double(&self) -> f64 {
        self.special().unwrap_or_else(|| double(self.finite.value()))
    }

    fn special(&self) -> Option<f64> {
        match [self.nans, self.positive, self.negative].map(|count| count > 0) {
            [false, false, false] => None,
            [false, true, false] => Some(f64::INFINITY),
            [false, false, true] => Some(f64::NEG_INFINITY),
            _ => Some(f64::NAN),
        }
    }
}

/// Returns the number with the opposite sign, in a type that can represent it.
fn negated(value: Value<'_>) -> Value<'static> {
    match value {
        Value::Int32(number) => match number.checked_neg() {
            Some(number) => Value::Int32(number),
            None => Value::Int64(-i64::from(number)),
        },
        Value::Int64(number) => Value::Int64(number.wrapping_neg()),
        Value::Decimal(number) => Value::Decimal(number.negate()),
        other => Value::Double(-double(other)),
    }
}

fn double(value: Value<'_>) -> f64 {
    value.to_f64().unwrap_or(0.0)
}

fn decimal(value: Value<'_>) -> Decimal128 {
    match value {
        Value::Decimal(number) => number,
        Value::Int32(number) => Decimal128::from_i32(number),
        Value::Int64(number) => Decimal128::from_i64(number),
        other => Decimal128::from_f64_exact(double(other)),
    }
}

/// Returns the nearest long, if it is in range.
fn whole(value: Value<'_>) -> Option<i64> {
    const TWO_63: f64 = 9_223_372_036_854_775_808.0;
    match value {
        Value::Int32(number) => Some(number.into()),
        Value::Int64(number) => Some(number),
        other => {
            let number = double(other).round();
            (-TWO_63..TWO_63).contains(&number).then_some(number as i64)
        }
    }
}

impl Contents for RemovableSum {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        value.into_iter().for_each(|value| self.update(value, 1));
        Ok(())
    }

    fn remove(&mut self, value: Option<Value<'_>>) -> Result<()> {
        value.into_iter().for_each(|value| self.update(value, -1));
        Ok(())
    }

    fn result<'a>(&self, _: Seen<'_>, _: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        Ok(Some(self.value()))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

/// The state of `$avg` for a window.
#[derive(Debug, Default)]
pub(super) struct RemovableAverage {
    sum: RemovableSum,
    count: i64,
}

impl Contents for RemovableAverage {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        if let Some(value) = value.filter(Value::is_number) {
            self.sum.add(value);
            self.count += 1;
        }
        Ok(())
    }

    fn remove(&mut self, value: Option<Value<'_>>) -> Result<()> {
        if let Some(value) = value.filter(Value::is_number) {
            self.sum.remove(value);
            self.count -= 1;
        }
        Ok(())
    }

    fn result<'a>(&self, _: Seen<'_>, _: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        Ok(Some(match self.sum.value() {
            _ if self.count == 0 => Value::Null,
            Value::Decimal(sum) => Value::Decimal(sum.divide(Decimal128::from_i64(self.count))),
            sum => Value::Double(double(sum) / self.count as f64),
        }))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

/// `$stdDevPop`, `$stdDevSamp`: Welford's method for adding and removing values (Knuth, TAOCP
/// volume 2, section 4.2.2). The result is null while an infinity or NaN is in the window.
#[derive(Debug)]
pub(super) struct RemovableDeviation {
    sample: bool,
    sum: RemovableSum,
    squares: RemovableSum,
    count: i64,
    special: i64,
}

impl RemovableDeviation {
    pub fn new(sample: bool) -> Self {
        let (sum, squares) = (RemovableSum::default(), RemovableSum::default());
        RemovableDeviation { sample, sum, squares, count: 0, special: 0 }
    }

    fn update(&mut self, value: Option<Value<'_>>, times: i64) {
        let Some((value, number)) = value.and_then(|value| Some((value, value.to_f64()?))) else {
            return;
        };
        if !number.is_finite() {
            self.special += times;
            return;
        }
        if self.count + times == 0 {
            *self = RemovableDeviation { special: self.special, ..Self::new(self.sample) };
            return;
        }
        if self.count > 0 {
            let distance = self.count as f64 * number - self.sum.double();
            let (before, after) = (self.count as f64, (self.count + times) as f64);
            let square = distance * distance * times as f64 / (after * before);
            self.squares.add(Value::Double(square));
        }
        self.count += times;
        self.sum.update(value, times);
    }
}

impl Contents for RemovableDeviation {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        self.update(value, 1);
        Ok(())
    }

    fn remove(&mut self, value: Option<Value<'_>>) -> Result<()> {
        self.update(value, -1);
        Ok(())
    }

    fn result<'a>(&self, _: Seen<'_>, _: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        let divisor = self.count - i64::from(self.sample);
        if self.special > 0 || divisor <= 0 {
            return Ok(Some(Value::Null));
        }
        let squares = self.squares.double();
        // Rounding may make the sum negative. mongod then returns an int, as for a single number.
        if self.count == 1 || squares < 0.0 {
            return Ok(Some(Value::Int32(0)));
        }
        Ok(Some(Value::Double((squares / divisor as f64).sqrt())))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}
