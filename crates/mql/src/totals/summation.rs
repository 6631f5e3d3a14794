//! Compensated summation of binary numbers, as mongod does it: a double, and the exact rounding
//! error of each addition (Knuth, TAOCP volume 2, section 4.2.2, theorem B).

use quire_document::Decimal128;

/// A sum of doubles and its rounding error (`addend`). As in mongod, the error is not part of the
/// result; it is added to the next number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DoubleDouble {
    sum: f64,
    addend: f64,
    /// The plain sum, which is the result if NaN or an infinity is among the numbers.
    special: f64,
}

impl DoubleDouble {
    /// Adds a double.
    #[inline]
    fn add(&mut self, number: f64) {
        self.special += number;
        let (number, lost) = fast_two_sum(number, self.addend);
        let (sum, rest) = two_sum(self.sum, number);
        self.sum = sum;
        self.addend = lost + rest;
    }

    /// Adds a long as two halves, each of which is an exact double.
    #[inline]
    fn add_halves(&mut self, number: i64) {
        const HALF: i64 = 1 << 32;
        let high = number / HALF * HALF;
        self.add((number - high) as f64);
        self.add(high as f64);
    }

    /// Adds another sum.
    fn merge(&mut self, other: DoubleDouble) {
        let special = self.special + other.special;
        self.add(other.sum);
        self.add(other.addend);
        self.special = special;
    }

    /// Returns the sum as a double.
    pub(super) fn value(&self) -> f64 {
        self.parts().0
    }

    /// Returns the sum and its rounding error.
    fn parts(&self) -> (f64, f64) {
        if self.sum.is_finite() { (self.sum, self.addend) } else { (self.special, 0.0) }
    }

    /// Returns the sum with its rounding error, as a decimal.
    pub(super) fn to_decimal(self) -> Decimal128 {
        let (sum, addend) = self.parts();
        Decimal128::from_f64_exact(sum).add(Decimal128::from_f64_exact(addend))
    }

    /// Returns the exact sum, if all numbers are integers.
    fn whole(&self) -> i128 {
        self.sum as i128 + self.addend as i128
    }
}

/// A sum of ints, longs and doubles.
#[derive(Clone, Copy, Debug)]
pub(super) enum Total {
    /// A sum of integers, while all doubles of its size are exact. Equals `Doubles`, but is faster.
    Whole(i64),
    Doubles(DoubleDouble),
}

/// The largest sum that is kept as `Whole`. One half of a long more is still exact.
const WHOLE_MAX: u64 = 1 << 52;

impl Total {
    /// Adds an int.
    #[inline]
    pub(super) fn add_int(&mut self, number: i32) {
        if !self.add_whole(number.into()) {
            self.add_double(number.into());
        }
    }

    /// Adds a long.
    #[inline]
    pub(super) fn add_long(&mut self, number: i64) {
        if !self.add_whole(number) {
            self.change(|doubles| doubles.add_halves(number));
        }
    }

    /// Adds a double.
    #[inline]
    pub(super) fn add_double(&mut self, number: f64) {
        self.change(|doubles| doubles.add(number));
    }

    /// Adds an integer `count` times, if the sum is a `Whole` and stays within its limit. Returns false otherwise, and
    /// adds nothing.
    pub(super) fn add_repeated(&mut self, number: i64, count: u32) -> bool {
        number.checked_mul(count.into()).is_some_and(|all| self.add_whole(all))
    }

    /// Adds doubles one after the other.
    pub(super) fn add_doubles(&mut self, numbers: &[f64]) {
        self.change(|doubles| numbers.iter().for_each(|number| doubles.add(*number)));
    }

    /// Adds doubles to each of four sums. An addition depends on the one before in the same sum only, so the processor
    /// works on four at a time.
    pub(super) fn add_doubles_to_four(totals: [&mut Total; 4], numbers: [&[f64]; 4]) {
        let mut sums = totals.each_ref().map(|total| total.doubles());
        let least = numbers.iter().map(|numbers| numbers.len()).min().unwrap_or(0);
        let [(a, x), (b, y), (c, z), (d, w)] = numbers.map(|numbers| numbers.split_at(least));
        for (((a, b), c), d) in a.iter().zip(b).zip(c).zip(d) {
            let next = [a, b, c, d];
            sums.iter_mut().zip(next).for_each(|(sum, number)| sum.add(*number));
        }
        for ((sum, rest), total) in sums.iter_mut().zip([x, y, z, w]).zip(totals) {
            rest.iter().for_each(|number| sum.add(*number));
            *total = Total::Doubles(*sum);
        }
    }

    /// Adds an integer, if the sum is a `Whole` and stays within its limit. Returns false
    /// otherwise.
    #[inline]
    fn add_whole(&mut self, number: i64) -> bool {
        let Total::Whole(total) = self else { return false };
        let sum = total.checked_add(number).filter(|sum| sum.unsigned_abs() <= WHOLE_MAX);
        if let Some(sum) = sum {
            *total = sum;
        }
        sum.is_some()
    }

    #[inline]
    fn change(&mut self, change: impl FnOnce(&mut DoubleDouble)) {
        let mut doubles = self.doubles();
        change(&mut doubles);
        *self = Total::Doubles(doubles);
    }

    /// Returns the sum as doubles.
    #[inline]
    pub(super) fn doubles(&self) -> DoubleDouble {
        match *self {
            Total::Whole(total) => {
                let sum = total as f64;
                DoubleDouble { sum, addend: 0.0, special: sum }
            }
            Total::Doubles(doubles) => doubles,
        }
    }

    /// Returns the sum of integers if it fits in a long.
    pub(super) fn as_long(&self) -> Option<i64> {
        match self {
            Total::Whole(total) => Some(*total),
            Total::Doubles(doubles) => i64::try_from(doubles.whole()).ok(),
        }
    }

    /// Returns the numbers that `merge` reads.
    pub(super) fn save(&self) -> [f64; 3] {
        let DoubleDouble { sum, addend, special } = self.doubles();
        [sum, addend, special]
    }

    /// Adds a saved sum. If nothing was added before, it becomes the sum unchanged.
    pub(super) fn merge(&mut self, [sum, addend, special]: [f64; 3]) {
        let saved = DoubleDouble { sum, addend, special };
        match self {
            Total::Whole(0) => *self = Total::Doubles(saved),
            _ => self.change(|doubles| doubles.merge(saved)),
        }
    }
}

impl Default for Total {
    fn default() -> Self {
        Total::Whole(0)
    }
}

/// Returns the rounded sum, and its exact error.
#[inline]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    let a_part = sum - b_part;
    (sum, (a - a_part) + (b - b_part))
}

/// Returns the rounded sum, and its error, which is exact if `b` is not larger than `a`. mongod uses
/// it although the error of a large sum may be larger than the next number.
#[inline]
fn fast_two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, b - (sum - a))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(numbers: &[f64]) -> DoubleDouble {
        let mut sum = DoubleDouble::default();
        numbers.iter().for_each(|number| sum.add(*number));
        sum
    }

    fn saved_and_merged(parts: &[&[f64]]) -> Total {
        let mut merged = Total::default();
        for part in parts {
            merged.merge(Total::Doubles(sum(part)).save());
        }
        merged
    }

    #[test]
    fn small_errors_add_up() {
        assert_eq!(sum(&[0.1, 0.2, 0.3]).value(), 0.6);
        assert_eq!(sum(&[1e100, 1.0, -1e100]).value(), 0.0);
        assert_eq!(sum(&[1e15, 1.0, -1e15]).value(), 1.0);
        assert_eq!(sum(&[0.1; 10]).value(), 1.0);
    }

    /// mongod 8.2 leaves the error of the last addition out of the result.
    #[test]
    fn the_last_rounding_error_is_not_part_of_the_sum() {
        let prices =
            [37.31, 69.1, 39.51, 32.56, 79.27, 28.91, 25.14, 51.23, 65.62, 7.19, 57.82, 53.77];
        assert_eq!(sum(&prices).value(), 547.43);
        const TWO_63: f64 = 9_223_372_036_854_775_808.0;
        let mut numbers = [-TWO_63, -TWO_63 - 2048.0, 41.13, TWO_63, TWO_63 + 2048.0, 5e-324];
        assert_eq!(sum(&numbers).value(), 41.13000000000011);
        numbers.reverse();
        assert_eq!(sum(&numbers).value(), 0.0);
        // The error is kept, though: for decimals, and when the sum is saved and merged.
        assert_eq!(sum(&numbers).addend, 41.13000000000011);
        assert_eq!(saved_and_merged(&[&numbers]).doubles().addend, 41.13000000000011);
        assert_eq!(saved_and_merged(&[&[1.0], &numbers]).doubles().value(), 42.13000000000011);
    }

    #[test]
    fn infinities_and_nan() {
        assert_eq!(sum(&[f64::INFINITY, 1.0]).value(), f64::INFINITY);
        assert!(sum(&[f64::INFINITY, 1.0, f64::NEG_INFINITY]).value().is_nan());
        assert_eq!(sum(&[f64::MAX, f64::MAX]).value(), f64::INFINITY);
        assert_eq!(sum(&[f64::MAX, f64::MAX, 1.0]).value(), f64::INFINITY);
    }

    #[test]
    fn whole_numbers_are_what_their_doubles_are() {
        let mut random = quire_document::testing::Generator::new(7);
        for _ in 0..2000 {
            let (mut total, mut doubles) = (Total::default(), DoubleDouble::default());
            for _ in 0..random.below(8) {
                let number = random.below(u64::MAX) as i64 >> random.below(64);
                total.add_long(number);
                doubles.add_halves(number);
            }
            assert_eq!(
                total.save().map(f64::to_bits),
                [doubles.sum.to_bits(), doubles.addend.to_bits(), doubles.special.to_bits(),]
            );
        }
    }
}
