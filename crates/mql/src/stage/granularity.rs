//! The `granularity` of `$bucketAuto`: rounds the bounds of buckets to a series of preferred
//! numbers (the Renard series of ISO 3, the E series of IEC 60063, 1-2-5) or to powers of two.

use crate::text;
use quire_document::{Decimal128, Value};
use quire_error::{Error, Result};
use std::cmp::Ordering;

/// A series of preferred numbers for rounding bounds.
#[derive(Clone, Copy, Debug)]
pub struct Granularity(&'static Series);

/// A series: the numbers of one decade, or none for powers of two.
#[derive(Debug)]
struct Series {
    name: &'static str,
    decade: &'static [u16],
}

/// A number of decades that exceeds the range of doubles and decimals.
const DECADES_MAX: u32 = 6200;

impl Granularity {
    /// Parses the name of a series. Fails with 40261 if it is not a string, and with 40257 if it is
    /// unknown.
    pub(super) fn parse(value: Value<'_>) -> Result<Self> {
        let Value::String(name) = value else {
            let message = format!(
                "The $bucketAuto 'granularity' field must be a string, but found type: {}.",
                value.type_name()
            );
            return Err(Error::location(40261, message));
        };
        let series = SERIES.iter().find(|series| series.name == name);
        series
            .map(Granularity)
            .ok_or_else(|| Error::location(40257, format!("Unknown rounding granularity '{name}'")))
    }

    /// Returns the name of the series.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Fails for a value that cannot be rounded: 40258 not a number, 40259 NaN, 40260 below zero.
    pub fn check(self, value: Value<'_>) -> Result<()> {
        let Some(number) = value.to_f64() else {
            let message = format!(
                "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a value with type: {}",
                value.type_name()
            );
            return Err(Error::location(40258, message));
        };
        if number.is_nan() {
            let message = "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a NaN";
            return Err(Error::location(40259, message));
        }
        if number < 0.0 {
            let message = format!(
                "$bucketAuto can specify a 'granularity' with non-negative numbers only, but found a negative number: {}",
                text::value(value)
            );
            return Err(Error::location(40260, message));
        }
        Ok(())
    }

    /// Returns the smallest number of the series above `value`. Returns zero and infinity
    /// unchanged.
    pub fn round_up(self, value: Value<'_>) -> Value<'static> {
        self.rounded(value, Toward::Up)
    }

    /// Returns the largest number of the series below `value`. Returns zero and infinity unchanged.
    pub fn round_down(self, value: Value<'_>) -> Value<'static> {
        self.rounded(value, Toward::Down)
    }

    fn rounded(self, value: Value<'_>, toward: Toward) -> Value<'static> {
        let powers = self.0.decade.is_empty();
        match value {
            // Zero and infinity keep their type.
            Value::Int32(0) => Value::Int32(0),
            Value::Int64(0) => Value::Int64(0),
            Value::Decimal(number) if number.is_zero() => Value::Decimal(number),
            Value::Decimal(number) if number.is_nan() || number.is_infinite() => {
                Value::Decimal(number)
            }
            Value::Decimal(number) if powers => Value::Decimal(power_beside(number, toward)),
            Value::Decimal(number) => {
                Value::Decimal(preferred(number, self.0.decade, toward).unwrap_or(number))
            }
            other => {
                let number = other.to_f64().unwrap_or(0.0);
                match number {
                    0.0 => Value::Double(0.0),
                    infinite if !infinite.is_finite() => Value::Double(infinite),
                    _ if powers => two_to(exponent_beside(number, toward)),
                    _ => Value::Double(preferred(number, self.0.decade, toward).unwrap_or(number)),
                }
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Toward {
    Up,
    Down,
}

/// The operations of a numeric type that rounding to a series needs.
trait Scaled: Copy {
    const ONE: Self;
    fn order(self, other: Self) -> Ordering;
    fn of(number: u16) -> Self;
    fn times(self, other: Self) -> Self;
    fn tenfold(self) -> Self;
    fn tenth(self) -> Self;
}

impl Scaled for f64 {
    const ONE: f64 = 1.0;

    fn order(self, other: f64) -> Ordering {
        self.total_cmp(&other)
    }

    fn of(number: u16) -> f64 {
        number.into()
    }

    fn times(self, other: f64) -> f64 {
        self * other
    }

    fn tenfold(self) -> f64 {
        self * 10.0
    }

    fn tenth(self) -> f64 {
        self / 10.0
    }
}

impl Scaled for Decimal128 {
    const ONE: Decimal128 = Decimal128::ONE;

    fn order(self, other: Decimal128) -> Ordering {
        self.compare(other)
    }

    /// mongod's series are doubles, which become decimals of 15 digits: 16.0000000000000.
    fn of(number: u16) -> Decimal128 {
        Decimal128::from_f64(number.into())
    }

    fn times(self, other: Decimal128) -> Decimal128 {
        self.multiply(other)
    }

    fn tenfold(self) -> Decimal128 {
        self.multiply(Decimal128::from_i64(10))
    }

    fn tenth(self) -> Decimal128 {
        self.divide(Decimal128::from_i64(10))
    }
}

/// Returns the next number of the series above or below `number`, which must be positive. As in
/// mongod, the decade is scaled by powers of ten until it includes the number; the last digit of a
/// double depends on this. Returns `None` if the result is out of the type's range.
fn preferred<N: Scaled>(number: N, decade: &[u16], toward: Toward) -> Option<N> {
    let (first, last) = (N::of(*decade.first()?), N::of(*decade.last()?));
    let mut scale = N::ONE;
    let mut scaled = (0..DECADES_MAX).map(|_| ());
    if toward == Toward::Up {
        while number.order(last.times(scale)).is_ge() {
            scaled.next()?;
            scale = scale.tenfold();
        }
        while number.order(first.times(scale)).is_lt() {
            scaled.next()?;
            let above = first.times(scale);
            scale = scale.tenth();
            if number.order(last.times(scale)).is_ge() {
                return Some(above);
            }
        }
        return decade
            .iter()
            .map(|step| N::of(*step).times(scale))
            .find(|step| step.order(number).is_gt());
    }
    while number.order(first.times(scale)).is_le() {
        scaled.next()?;
        scale = scale.tenth();
    }
    while number.order(last.times(scale)).is_gt() {
        scaled.next()?;
        let below = last.times(scale);
        scale = scale.tenfold();
        if number.order(first.times(scale)).is_le() {
            return Some(below);
        }
    }
    decade
        .iter()
        .rev()
        .map(|step| N::of(*step).times(scale))
        .find(|step| step.order(number).is_lt())
}

/// Returns the exponent of the smallest power of two above `number`, or of the largest below it.
/// `number` must be positive.
fn exponent_beside(number: f64, toward: Toward) -> i32 {
    // The logarithm is rounded, so its floor may be too large by one.
    let mut exponent = number.log2().floor() as i32;
    while f64::from(exponent).exp2() > number {
        exponent -= 1;
    }
    let is_power = f64::from(exponent).exp2() == number;
    match toward {
        Toward::Up => exponent + 1,
        Toward::Down if is_power => exponent - 1,
        Toward::Down => exponent,
    }
}

/// Returns a power of two with the type of `$pow`: an int or a long if it fits, otherwise a double.
fn two_to(exponent: i32) -> Value<'static> {
    match exponent {
        0..=30 => Value::Int32(1 << exponent),
        31..=62 => Value::Int64(1 << exponent),
        _ => Value::Double(f64::from(exponent).exp2()),
    }
}

fn power_beside(number: Decimal128, toward: Toward) -> Decimal128 {
    let two = Decimal128::from_i64(2);
    let power = |exponent: i64| two.pow(Decimal128::from_i64(exponent));
    let guess = number.ln().divide(two.ln()).floor().to_i64_truncated().unwrap_or(0);
    let is_above = |exponent: i64| power(exponent).compare(number).is_gt();
    let floor = (guess - 1..=guess + 1).rev().find(|exponent| !is_above(*exponent));
    let floor = floor.unwrap_or(guess);
    match toward {
        Toward::Up => power(floor + 1),
        Toward::Down if power(floor).compare(number).is_eq() => power(floor - 1),
        Toward::Down => power(floor),
    }
}

/// All series, with MongoDB's names.
const SERIES: &[Series] = &[
    Series { name: "POWERSOF2", decade: &[] },
    Series { name: "1-2-5", decade: &[10, 20, 50] },
    Series { name: "R5", decade: &[10, 16, 25, 40, 63] },
    Series { name: "R10", decade: &[100, 125, 160, 200, 250, 315, 400, 500, 630, 800] },
    Series { name: "R20", decade: R20 },
    Series { name: "R40", decade: R40 },
    Series { name: "R80", decade: R80 },
    Series { name: "E6", decade: &[10, 15, 22, 33, 47, 68] },
    Series { name: "E12", decade: &[10, 12, 15, 18, 22, 27, 33, 39, 47, 56, 68, 82] },
    Series { name: "E24", decade: E24 },
    Series { name: "E48", decade: E48 },
    Series { name: "E96", decade: E96 },
    Series { name: "E192", decade: E192 },
];

const R20: &[u16] = &[
    100, 112, 125, 140, 160, 180, 200, 224, 250, 280, 315, 355, 400, 450, 500, 560, 630, 710, 800,
    900,
];

const R40: &[u16] = &[
    100, 106, 112, 118, 125, 132, 140, 150, 160, 170, 180, 190, 200, 212, 224, 236, 250, 265, 280,
    300, 315, 335, 355, 375, 400, 425, 450, 475, 500, 530, 560, 600, 630, 670, 710, 750, 800, 850,
    900, 950,
];

/// The numbers that R80 has in addition to R40. MongoDB's R80 has only these.
const R80: &[u16] = &[
    103, 109, 115, 122, 128, 136, 145, 155, 165, 175, 185, 195, 206, 218, 230, 243, 258, 272, 290,
    307, 325, 345, 365, 387, 412, 437, 462, 487, 515, 545, 575, 615, 650, 690, 730, 775, 825, 875,
    925, 975,
];

const E24: &[u16] = &[
    10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91,
];

const E48: &[u16] = &[
    100, 105, 110, 115, 121, 127, 133, 140, 147, 154, 162, 169, 178, 187, 196, 205, 215, 226, 237,
    249, 261, 274, 287, 301, 316, 332, 348, 365, 383, 402, 422, 442, 464, 487, 511, 536, 562, 590,
    619, 649, 681, 715, 750, 787, 825, 866, 909, 953,
];

const E96: &[u16] = &[
    100, 102, 105, 107, 110, 113, 115, 118, 121, 124, 127, 130, 133, 137, 140, 143, 147, 150, 154,
    158, 162, 165, 169, 174, 178, 182, 187, 191, 196, 200, 205, 210, 215, 221, 226, 232, 237, 243,
    249, 255, 261, 267, 274, 280, 287, 294, 301, 309, 316, 324, 332, 340, 348, 357, 365, 374, 383,
    392, 402, 412, 422, 432, 442, 453, 464, 475, 487, 499, 511, 523, 536, 549, 562, 576, 590, 604,
    619, 634, 649, 665, 681, 698, 715, 732, 750, 768, 787, 806, 825, 845, 866, 887, 909, 931, 953,
    976,
];

const E192: &[u16] = &[
    100, 101, 102, 104, 105, 106, 107, 109, 110, 111, 113, 114, 115, 117, 118, 120, 121, 123, 124,
    126, 127, 129, 130, 132, 133, 135, 137, 138, 140, 142, 143, 145, 147, 149, 150, 152, 154, 156,
    158, 160, 162, 164, 165, 167, 169, 172, 174, 176, 178, 180, 182, 184, 187, 189, 191, 193, 196,
    198, 200, 203, 205, 208, 210, 213, 215, 218, 221, 223, 226, 229, 232, 234, 237, 240, 243, 246,
    249, 252, 255, 258, 261, 264, 267, 271, 274, 277, 280, 284, 287, 291, 294, 298, 301, 305, 309,
    312, 316, 320, 324, 328, 332, 336, 340, 344, 348, 352, 357, 361, 365, 370, 374, 379, 383, 388,
    392, 397, 402, 407, 412, 417, 422, 427, 432, 437, 442, 448, 453, 459, 464, 470, 475, 481, 487,
    493, 499, 505, 511, 517, 523, 530, 536, 542, 549, 556, 562, 569, 576, 583, 590, 597, 604, 612,
    619, 626, 634, 642, 649, 657, 665, 673, 681, 690, 698, 706, 715, 723, 732, 741, 750, 759, 768,
    777, 787, 796, 806, 816, 825, 835, 845, 856, 866, 876, 887, 898, 909, 920, 931, 942, 953, 965,
    976, 988,
];

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::ValueBuf;

    fn rounded(name: &str, value: impl Into<Value<'static>>) -> [ValueBuf; 2] {
        let series = Granularity::parse(Value::String(name)).unwrap();
        let value = value.into();
        [series.round_down(value), series.round_up(value)].map(ValueBuf::new)
    }

    fn both<V: Into<Value<'static>>>(low: V, high: V) -> [ValueBuf; 2] {
        [low.into(), high.into()].map(ValueBuf::new)
    }

    #[test]
    fn the_neighbours_in_a_series() {
        assert_eq!(rounded("R5", 1), both(0.63, 1.6));
        assert_eq!(rounded("R5", 100), both(63.0, 160.0));
        assert_eq!(rounded("R5", 97.5), both(63.0, 100.0));
        assert_eq!(rounded("E6", 15), both(10.0, 22.0));
        assert_eq!(rounded("1-2-5", 0.3), both(0.2, 0.5));
        assert_eq!(rounded("R80", 100), both(97.5, 103.0));
        let decimal = |text| Decimal128::parse(text).unwrap();
        let found = rounded("R5", decimal("100"));
        assert_eq!(found, both(decimal("63.0000000000000"), decimal("160.0000000000000")));
    }

    #[test]
    fn powers_of_two_are_as_pow_gives_them() {
        assert_eq!(rounded("POWERSOF2", 1), [ValueBuf::new(0.5), ValueBuf::new(2)]);
        assert_eq!(rounded("POWERSOF2", 100), both(64, 128));
        assert_eq!(rounded("POWERSOF2", 3e10), both(1i64 << 34, 1 << 35));
        let decimal = Decimal128::from_i64;
        let doubles = |values: [ValueBuf; 2]| values.map(|value| value.as_value().to_f64());
        assert_eq!(doubles(rounded("POWERSOF2", decimal(64))), [Some(32.0), Some(128.0)]);
        assert_eq!(doubles(rounded("POWERSOF2", decimal(65))), [Some(64.0), Some(128.0)]);
    }

    #[test]
    fn every_number_has_neighbours() {
        let ends = [5e-324, 1e-300, 1.0, 1e308, f64::MAX];
        for series in SERIES {
            for number in ends {
                let [low, high] =
                    rounded(series.name, number).map(|value| value.as_value().to_f64().unwrap());
                assert!(low <= number && high >= number, "{} {number}", series.name);
            }
            assert_eq!(rounded(series.name, 0.0), both(0.0, 0.0));
            assert_eq!(rounded(series.name, 0), both(0, 0));
            assert_eq!(rounded(series.name, 0_i64), both(0_i64, 0_i64));
            assert_eq!(rounded(series.name, f64::INFINITY), both(f64::INFINITY, f64::INFINITY));
            for text in ["9.999E+6144", "1E-6176"] {
                rounded(series.name, Decimal128::parse(text).unwrap());
            }
        }
    }
}
