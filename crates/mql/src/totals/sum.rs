//! Sums of numbers of all types.

use super::FixedState;
use super::summation::Total;
use quire_document::{ArrayBuf, Decimal128, Value, array};

/// The sum of numbers of all types.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    total: Total,
    widest: Widest,
    decimals: Option<Decimal128>,
}

/// The widest type so far, not counting decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Widest {
    #[default]
    Int,
    Long,
    Double,
}

impl Sum {
    /// Adds a value if it is a number, and ignores it otherwise.
    #[inline]
    pub fn push(&mut self, value: Value<'_>) {
        match value {
            Value::Int32(number) => self.total.add_int(number),
            Value::Int64(number) => {
                self.widest = self.widest.max(Widest::Long);
                self.total.add_long(number);
            }
            Value::Double(number) => {
                self.widest = Widest::Double;
                self.total.add_double(number);
            }
            Value::Decimal(number) => self.add_decimal(number),
            _ => {}
        }
    }

    /// Adds an int or a long `count` times, if that takes one addition. Returns false otherwise, and adds nothing.
    fn push_repeated(&mut self, value: Value<'_>, count: u32) -> bool {
        let (number, widest) = match value {
            Value::Int32(number) => (i64::from(number), Widest::Int),
            Value::Int64(number) => (number, Widest::Long),
            _ => return false,
        };
        let is_added = count > 0 && self.total.add_repeated(number, count);
        if is_added {
            self.widest = self.widest.max(widest);
        }
        is_added
    }

    /// Adds doubles one after the other, with the result of [`push`](Self::push) for each.
    pub(super) fn push_doubles(&mut self, numbers: &[f64]) {
        if !numbers.is_empty() {
            self.widest = Widest::Double;
            self.total.add_doubles(numbers);
        }
    }

    /// Adds doubles to each of four sums.
    pub(super) fn push_doubles_to_four(sums: [&mut Sum; 4], numbers: [&[f64]; 4]) {
        let is_all = numbers.iter().all(|numbers| !numbers.is_empty());
        if !is_all {
            sums.into_iter().zip(numbers).for_each(|(sum, numbers)| sum.push_doubles(numbers));
            return;
        }
        let totals = sums.map(|sum| {
            sum.widest = Widest::Double;
            &mut sum.total
        });
        Total::add_doubles_to_four(totals, numbers);
    }

    /// Adds a decimal. The first NaN is kept with its sign.
    fn add_decimal(&mut self, number: Decimal128) {
        self.decimals = Some(match self.decimals {
            Some(total) if total.is_nan() => total,
            _ if number.is_nan() => number,
            total => total.unwrap_or(Decimal128::ZERO).add(number),
        });
    }

    /// Returns the sum of ints and longs if it fits in a long.
    fn as_long(&self) -> Option<i64> {
        if self.widest == Widest::Double { None } else { self.total.as_long() }
    }

    /// Returns the sum without the decimals, rounded at each addition.
    pub(super) fn rounded(&self) -> f64 {
        self.total.doubles().value()
    }

    /// Returns the sum without the decimals. A sum of ints and longs is rounded once.
    pub(super) fn binary(&self) -> f64 {
        self.as_long().map_or_else(|| self.rounded(), |long| long as f64)
    }

    /// Returns the sum if decimals are among the numbers.
    pub(super) fn decimal(&self) -> Option<Decimal128> {
        let decimals = self.decimals?;
        Some(match self.as_long() {
            _ if decimals.is_nan() => decimals,
            Some(long) => decimals.add(Decimal128::from_i64(long)),
            None => decimals.add(self.total.doubles().to_decimal()),
        })
    }

    /// Returns the sum so far.
    pub fn value(&self) -> Value<'static> {
        if let Some(decimal) = self.decimal() {
            return Value::Decimal(decimal);
        }
        let Some(long) = self.as_long() else { return Value::Double(self.rounded()) };
        match i32::try_from(long) {
            Ok(int) if self.widest == Widest::Int => Value::Int32(int),
            _ => Value::Int64(long),
        }
    }
}

impl FixedState for Sum {
    #[inline]
    fn take(&mut self, value: Value<'_>) {
        self.push(value);
    }

    fn take_repeated(&mut self, value: Value<'_>, count: u32) {
        if !self.push_repeated(value, count) {
            (0..count).for_each(|_| self.push(value));
        }
    }

    fn take_doubles(&mut self, numbers: &[f64]) {
        self.push_doubles(numbers);
    }

    fn take_doubles_of_four(states: [&mut Self; 4], numbers: [&[f64]; 4]) {
        Sum::push_doubles_to_four(states, numbers);
    }

    fn current(&self) -> Value<'static> {
        self.value()
    }

    fn parts(&self) -> ArrayBuf {
        let [sum, addend, special] = self.total.save();
        let decimals = self.decimals.map_or(Value::Null, Value::Decimal);
        array![self.widest as i32, sum, addend, special, decimals]
    }

    fn join(&mut self, parts: &[Value<'_>]) {
        let [Value::Int32(widest), Value::Double(sum), Value::Double(addend), rest @ ..] = parts
        else {
            return;
        };
        let [Value::Double(special), decimals] = rest else { return };
        self.total.merge([*sum, *addend, *special]);
        self.widest = self.widest.max(match widest {
            0 => Widest::Int,
            1 => Widest::Long,
            _ => Widest::Double,
        });
        if let Value::Decimal(number) = decimals {
            self.add_decimal(*number);
        }
    }
}
