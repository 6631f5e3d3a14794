//! Summation of doubles as mongod does it: Kahan's compensated summation, with the error of each
//! addition taken exactly (Knuth, TAOCP volume 2, section 4.2.2, theorem B).

use quire_document::{Decimal128, Value};

/// A sum of doubles and the error that rounding has made in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct DoubleDouble {
    sum: f64,
    addend: f64,
    /// The plain sum: what counts once NaN or an infinity is among the numbers.
    special: f64,
}

impl DoubleDouble {
    /// Adds a double.
    #[inline]
    pub fn add(&mut self, number: f64) {
        self.special += number;
        (self.sum, self.addend) = two_sum(self.sum, number + self.addend);
    }

    /// Adds a long in two halves, each of which is exactly a double.
    #[inline]
    pub fn add_halves(&mut self, number: i64) {
        const HALF: i64 = 1 << 32;
        let high = number / HALF * HALF;
        self.add((number - high) as f64);
        self.add(high as f64);
    }

    /// Adds what another one has summed up.
    pub fn merge(&mut self, other: DoubleDouble) {
        let special = self.special + other.special;
        self.add(other.sum);
        self.add(other.addend);
        self.special = special;
    }

    /// The sum rounded to a double.
    pub fn value(&self) -> f64 {
        let (sum, addend) = self.parts();
        sum + addend
    }

    /// The sum as two doubles, the second less than half a unit in the last place of the first.
    pub fn parts(&self) -> (f64, f64) {
        let sum = self.sum + self.addend;
        if !sum.is_finite() {
            return (self.special, 0.0);
        }
        (sum, self.addend - (sum - self.sum))
    }

    /// The sum as a decimal.
    pub fn to_decimal(&self) -> Decimal128 {
        let (sum, addend) = self.parts();
        Decimal128::from_f64_exact(sum).add(Decimal128::from_f64_exact(addend))
    }

    /// The three numbers it consists of, to be saved.
    pub fn to_raw(&self) -> [f64; 3] {
        [self.sum, self.addend, self.special]
    }

    /// The inverse of `to_raw`.
    pub fn from_raw([sum, addend, special]: [f64; 3]) -> Self {
        DoubleDouble { sum, addend, special }
    }
}

/// A sum of numbers of all types: what `$sum` and `$avg` have in common.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mixed {
    /// Whole numbers, exactly.
    pub(super) whole: i128,
    pub(super) doubles: DoubleDouble,
    pub(super) decimals: Option<Decimal128>,
}

impl Mixed {
    /// All but the decimals.
    pub(super) fn binary(&self) -> DoubleDouble {
        let mut total = self.doubles;
        let rounded = self.whole as f64;
        total.add(rounded);
        total.add((self.whole - rounded as i128) as f64);
        total
    }

    /// Adds a decimal; the first NaN stays as it is, with its sign.
    pub(super) fn add_decimal(&mut self, number: Decimal128) {
        self.decimals = Some(match self.decimals {
            Some(total) if total.is_nan() => total,
            _ if number.is_nan() => number,
            total => total.unwrap_or(Decimal128::ZERO).add(number),
        });
    }

    /// The values that `merge` takes.
    pub(super) fn save(&self) -> [Value<'static>; 6] {
        let [sum, addend, special] = self.doubles.to_raw().map(Value::Double);
        let (high, low) = ((self.whole >> 64) as i64, self.whole as i64);
        let decimals = self.decimals.map_or(Value::Null, Value::Decimal);
        [sum, addend, special, Value::Int64(high), Value::Int64(low), decimals]
    }

    /// Adds what another one has saved; nothing of anything else.
    pub(super) fn merge(&mut self, saved: &[Value<'_>]) {
        let [
            Value::Double(sum),
            Value::Double(addend),
            Value::Double(special),
            Value::Int64(high),
            Value::Int64(low),
            decimals,
        ] = saved
        else {
            return;
        };
        self.doubles.merge(DoubleDouble::from_raw([*sum, *addend, *special]));
        self.whole += i128::from(*high) << 64 | i128::from(*low as u64);
        if let Value::Decimal(number) = decimals {
            self.add_decimal(*number);
        }
    }
}

/// The rounded sum and its exact error.
#[inline]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    let a_part = sum - b_part;
    (sum, (a - a_part) + (b - b_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_errors_add_up() {
        let mut sum = DoubleDouble::default();
        for number in [0.1, 0.2, 0.3] {
            sum.add(number);
        }
        assert_eq!(sum.value(), 0.6);
        let mut sum = DoubleDouble::default();
        for number in [1e100, 1.0, -1e100] {
            sum.add(number);
        }
        assert_eq!(sum.value(), 0.0);
    }

    #[test]
    fn infinities_and_nan() {
        let mut sum = DoubleDouble::default();
        sum.add(f64::INFINITY);
        sum.add(1.0);
        assert_eq!(sum.value(), f64::INFINITY);
        sum.add(f64::NEG_INFINITY);
        assert!(sum.value().is_nan());
    }
}
