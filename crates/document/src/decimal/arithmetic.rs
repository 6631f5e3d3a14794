//! Exact decimal arithmetic, rounded once, half to even (IEEE 754-2008, sections 3.6 and 5.4).
//!
//! Exact results have the exponent that the standard prefers: `1.10 + 1.1` is `2.20`.

use super::wide::Wide;
use super::{DIGITS_MAX, EXPONENT_MAX, EXPONENT_MIN, Parts, Unpacked, digits};
use crate::Decimal128;

/// The rounding direction if digits are lost, for example in [`Decimal128::quantize`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Rounds to the nearest value; a tie goes to the even digit.
    HalfEven,
    /// Rounds towards zero.
    Truncate,
    /// Rounds towards negative infinity.
    Floor,
    /// Rounds towards positive infinity.
    Ceiling,
}

impl Decimal128 {
    /// Returns the number with the opposite sign.
    pub const fn negate(self) -> Self {
        Decimal128::from_bits(self.bits() ^ 1 << 127)
    }

    /// Returns the absolute value.
    pub const fn abs(self) -> Self {
        Decimal128::from_bits(self.bits() & !(1 << 127))
    }

    /// Returns `self + other`. Infinity - Infinity is NaN.
    #[allow(clippy::should_implement_trait)]
    pub fn add(self, other: Decimal128) -> Self {
        match (self.unpack(), other.unpack()) {
            (Unpacked::Nan, _) | (_, Unpacked::Nan) => Decimal128::NAN,
            (Unpacked::Finite(a), Unpacked::Finite(b)) => add(a, b),
            (Unpacked::Infinite { negative: a }, Unpacked::Infinite { negative: b }) if a != b => {
                Decimal128::NAN
            }
            (Unpacked::Infinite { negative }, _) | (_, Unpacked::Infinite { negative }) => {
                Decimal128::infinite(negative)
            }
        }
    }

    /// Returns `self - other`.
    pub fn subtract(self, other: Decimal128) -> Self {
        self.add(other.negate())
    }

    /// Returns `self * other`. Infinity * 0 is NaN.
    pub fn multiply(self, other: Decimal128) -> Self {
        let negative = self.is_negative() != other.is_negative();
        match (self.unpack(), other.unpack()) {
            (Unpacked::Nan, _) | (_, Unpacked::Nan) => Decimal128::NAN,
            (Unpacked::Finite(a), Unpacked::Finite(b)) => {
                let exponent = a.exponent + b.exponent;
                match a.coefficient.checked_mul(b.coefficient) {
                    Some(coefficient) if digits(coefficient) <= 38 => {
                        Decimal128::round(Parts { negative, coefficient, exponent }, false).0
                    }
                    _ => {
                        Wide::product(a.coefficient, b.coefficient).round(negative, exponent, false)
                    }
                }
            }
            _ if self.is_zero() || other.is_zero() => Decimal128::NAN,
            _ => Decimal128::infinite(negative),
        }
    }

    /// Returns `self / other`. A number divided by 0 is an infinity; 0 / 0 and Infinity / Infinity
    /// are NaN.
    pub fn divide(self, other: Decimal128) -> Self {
        let negative = self.is_negative() != other.is_negative();
        match (self.unpack(), other.unpack()) {
            (Unpacked::Nan, _) | (_, Unpacked::Nan) => Decimal128::NAN,
            (Unpacked::Infinite { .. }, Unpacked::Infinite { .. }) => Decimal128::NAN,
            (Unpacked::Infinite { .. }, _) => Decimal128::infinite(negative),
            (_, Unpacked::Infinite { .. }) => {
                Decimal128::pack(Parts { negative, coefficient: 0, exponent: EXPONENT_MIN })
            }
            (Unpacked::Finite(a), Unpacked::Finite(b)) => match (a.coefficient, b.coefficient) {
                (0, 0) => Decimal128::NAN,
                (_, 0) => Decimal128::infinite(negative),
                _ => divide(a, b, negative),
            },
        }
    }

    /// Returns the remainder of the division truncated to an integer. It has the sign of the
    /// dividend.
    pub fn remainder(self, other: Decimal128) -> Self {
        match (self.unpack(), other.unpack()) {
            (Unpacked::Finite(a), Unpacked::Finite(b)) if b.coefficient != 0 => remainder(a, b),
            (Unpacked::Finite(_), Unpacked::Infinite { .. }) => self,
            _ => Decimal128::NAN,
        }
    }

    /// Returns the square root, correctly rounded. It is NaN for a negative number, and -0 for -0.
    pub fn sqrt(self) -> Self {
        match self.unpack() {
            Unpacked::Infinite { negative: false } => self,
            Unpacked::Finite(parts) if parts.coefficient == 0 => {
                let exponent = parts.exponent.div_euclid(2);
                Decimal128::pack(Parts { exponent, ..parts })
            }
            Unpacked::Finite(parts) if !parts.negative => square_root(parts),
            _ => Decimal128::NAN,
        }
    }

    /// Returns the number with this exponent; NaN if that needs more than 34 digits, and for
    /// infinities.
    pub fn quantize(self, exponent: i32, rounding: Rounding) -> Self {
        let Some(parts) = self.parts() else {
            return Decimal128::NAN;
        };
        if !(EXPONENT_MIN..=EXPONENT_MAX).contains(&exponent) {
            return Decimal128::NAN;
        }
        let coefficient = match exponent - parts.exponent {
            _ if parts.coefficient == 0 => Some(0),
            up @ 0.. => Some(drop_digits(parts, up as u32, rounding)),
            down => 10u128.checked_pow(down.unsigned_abs()).and_then(|scale| {
                let coefficient = parts.coefficient.checked_mul(scale)?;
                (digits(coefficient) <= DIGITS_MAX).then_some(coefficient)
            }),
        };
        match coefficient {
            Some(coefficient) => Decimal128::pack(Parts { coefficient, exponent, ..parts }),
            None => Decimal128::NAN,
        }
    }

    /// Rounds to `place` digits after the point (before it, if `place` is negative), as `$round`
    /// and `$trunc` do. Returns infinities and NaN unchanged, and numbers that would need more than
    /// 34 digits with 34 digits.
    pub fn round_to_place(self, place: i32, rounding: Rounding) -> Self {
        let rounded = self.quantize(place.saturating_neg(), rounding);
        if rounded.is_nan() { self.padded() } else { rounded }
    }

    /// Returns the number with 34 digits, zeros at the end if necessary.
    pub(super) fn padded(self) -> Self {
        // Adding the smallest zero appends the zeros, and turns -0 into 0.
        self.add(Decimal128::pack(Parts {
            negative: false,
            coefficient: 0,
            exponent: EXPONENT_MIN,
        }))
    }

    /// Returns the smallest integer that is not less, as `$ceil` does (NaN for infinities and
    /// beyond 34 digits).
    pub fn ceil(self) -> Self {
        self.quantize(0, Rounding::Ceiling)
    }

    /// Returns the largest integer that is not greater, as `$floor` does.
    pub fn floor(self) -> Self {
        self.quantize(0, Rounding::Floor)
    }
}

fn add(a: Parts, b: Parts) -> Decimal128 {
    let (a, b) = if a.exponent >= b.exponent { (a, b) } else { (b, a) };
    let gap = (a.exponent - b.exponent) as u32;
    if let Some(sum) = add_small(a, b, gap) {
        return sum;
    }
    // Scales `a` to the exponent of `b`, or as far as 76 digits allow, and then truncates `b`.
    let room = 75 - digits(a.coefficient);
    let (shift, cut) = (gap.min(room), gap - gap.min(room));
    if a.coefficient == 0 {
        let negative = b.negative && (a.negative || b.coefficient != 0);
        return Decimal128::round(Parts { negative, ..b }, false).0;
    }
    let large = Wide::new(a.coefficient).times_ten_to(shift);
    let (small, sticky) = match 10u128.checked_pow(cut) {
        Some(scale) => (b.coefficient / scale, b.coefficient % scale != 0),
        None => (0, b.coefficient != 0),
    };
    let (small, exponent) = (Wide::new(small), a.exponent - shift as i32);
    if a.negative == b.negative {
        return large.plus(small).round(a.negative, exponent, sticky);
    }
    match large >= small {
        true => {
            // If digits of `b` are lost, the difference is slightly smaller.
            let less = Wide::new(sticky as u128);
            let difference = large.minus(small).minus(less);
            let negative = a.negative && (sticky || !difference.is_zero());
            difference.round(negative, exponent, sticky)
        }
        false => small.minus(large).round(b.negative, exponent, false),
    }
}

/// The fast path: adds if everything fits in 38 digits.
fn add_small(a: Parts, b: Parts, gap: u32) -> Option<Decimal128> {
    let scaled = a.coefficient.checked_mul(10u128.checked_pow(gap)?)?;
    if scaled > 10u128.pow(37) {
        return None;
    }
    let signed =
        |parts: Parts, size: u128| if parts.negative { -(size as i128) } else { size as i128 };
    let sum = signed(a, scaled) + signed(b, b.coefficient);
    let negative = if sum == 0 { a.negative && b.negative } else { sum < 0 };
    let parts = Parts { negative, coefficient: sum.unsigned_abs(), exponent: b.exponent };
    Some(Decimal128::round(parts, false).0)
}

fn divide(a: Parts, b: Parts, negative: bool) -> Decimal128 {
    let preferred = a.exponent - b.exponent;
    if a.coefficient == 0 {
        return Decimal128::round(Parts { negative, coefficient: 0, exponent: preferred }, false).0;
    }
    // A quotient of 36 or 37 digits is precise enough to be rounded once.
    let shift = (36 + digits(b.coefficient)).saturating_sub(digits(a.coefficient));
    let (quotient, rest) = Wide::new(a.coefficient).times_ten_to(shift).divide(b.coefficient);
    let mut exponent = preferred - shift as i32;
    let Some(mut coefficient) = quotient.small() else {
        return quotient.round(negative, exponent, rest != 0);
    };
    if rest == 0 {
        while exponent < preferred && coefficient.is_multiple_of(10) {
            coefficient /= 10;
            exponent += 1;
        }
    }
    Decimal128::round(Parts { negative, coefficient, exponent }, rest != 0).0
}

fn remainder(a: Parts, b: Parts) -> Decimal128 {
    let exponent = a.exponent.min(b.exponent);
    let coefficient = if a.exponent >= b.exponent {
        let scale = power_of_ten_modulo((a.exponent - b.exponent) as u32, b.coefficient);
        Wide::product(a.coefficient % b.coefficient, scale).divide(b.coefficient).1
    } else {
        let scale = 10u128.checked_pow((b.exponent - a.exponent) as u32);
        match scale.and_then(|scale| b.coefficient.checked_mul(scale)) {
            Some(divisor) => a.coefficient % divisor,
            None => a.coefficient,
        }
    };
    Decimal128::pack(Parts { negative: a.negative, coefficient, exponent })
}

fn power_of_ten_modulo(mut power: u32, modulus: u128) -> u128 {
    let times = |a: u128, b: u128| Wide::product(a, b).divide(modulus).1;
    let (mut result, mut square) = (1 % modulus, 10 % modulus);
    while power > 0 {
        if power & 1 == 1 {
            result = times(result, square);
        }
        square = times(square, square);
        power >>= 1;
    }
    result
}

fn square_root(parts: Parts) -> Decimal128 {
    let preferred = parts.exponent.div_euclid(2);
    // An even exponent and at least 71 digits give a root of at least 36 digits.
    let mut shift = 72 - digits(parts.coefficient);
    if (parts.exponent - shift as i32).rem_euclid(2) != 0 {
        shift += 1;
    }
    let (mut coefficient, exact) = Wide::new(parts.coefficient).times_ten_to(shift).square_root();
    let mut exponent = (parts.exponent - shift as i32) / 2;
    if exact {
        while exponent < preferred && coefficient.is_multiple_of(10) {
            coefficient /= 10;
            exponent += 1;
        }
    }
    Decimal128::round(Parts { negative: false, coefficient, exponent }, !exact).0
}

/// Returns the coefficient without its last `count` digits, rounded.
fn drop_digits(parts: Parts, count: u32, rounding: Rounding) -> u128 {
    let (kept, rest, half) = match 10u128.checked_pow(count) {
        Some(scale) => (parts.coefficient / scale, parts.coefficient % scale, scale / 2),
        None => (0, parts.coefficient, u128::MAX),
    };
    let up = match rounding {
        Rounding::HalfEven => rest > half || count > 0 && rest == half && kept % 2 == 1,
        Rounding::Truncate => false,
        Rounding::Floor => parts.negative && rest != 0,
        Rounding::Ceiling => !parts.negative && rest != 0,
    };
    kept + up as u128
}

#[cfg(test)]
mod tests {
    use super::*;

    fn d(text: &str) -> Decimal128 {
        Decimal128::parse(text).unwrap()
    }

    fn check(result: Decimal128, text: &str) {
        assert_eq!(result.to_string(), text);
    }

    #[test]
    fn sums() {
        check(d("1.10").add(d("1.1")), "2.20");
        check(d("1").add(d("-1")), "0");
        check(d("-0").add(d("-0")), "-0");
        check(d("0E+36").add(d("-0E-33")), "0E-33");
        check(d("8").add(d("0E-6176")), "8.000000000000000000000000000000000");
        check(d("0").add(d("1E+3")), "1000");
        check(d("1E+50").add(d("1")), "1.000000000000000000000000000000000E+50");
        check(d("1E+34").subtract(d("1E-50")), "1.000000000000000000000000000000000E+34");
        check(d("1E+33").subtract(d("1E-10")), "1000000000000000000000000000000000");
        check(d("1E+33").subtract(d("0.6")), "999999999999999999999999999999999.4");
        check(
            d("9999999999999999999999999999999999").add(d("1")),
            "1.000000000000000000000000000000000E+34",
        );
        check(d("Infinity").add(d("-Infinity")), "NaN");
        check(d("9.999999999999999999999999999999999E+6144").add(d("9E+6144")), "Infinity");
        check(d("5E-1").subtract(d("0.3")), "0.2");
        check(d("1E+6000").add(d("-1E-6000")), "1.000000000000000000000000000000000E+6000");
        check(d("0.3").subtract(d("1E+40")), "-1.000000000000000000000000000000000E+40");
    }

    #[test]
    fn products_and_quotients() {
        check(d("1.20").multiply(d("3")), "3.60");
        check(
            d("1234567890123456789012345678901234").multiply(d("9")),
            "1.111111101111111110111111111011111E+34",
        );
        check(d("Infinity").multiply(d("0")), "NaN");
        check(d("-2").multiply(d("Infinity")), "-Infinity");
        check(d("1E-6000").multiply(d("1E-6000")), "0E-6176");
        check(d("1").divide(d("3")), "0.3333333333333333333333333333333333");
        check(d("2").divide(d("3")), "0.6666666666666666666666666666666667");
        check(d("6").divide(d("3")), "2");
        check(d("6.00").divide(d("3")), "2.00");
        check(d("1").divide(d("8")), "0.125");
        check(d("1E+3").divide(d("10")), "1E+2");
        check(d("0").divide(d("7.0")), "0E+1");
        check(d("1").divide(d("0")), "Infinity");
        check(d("0").divide(d("0")), "NaN");
        check(d("1").divide(d("-Infinity")), "-0E-6176");
        check(d("1E-6176").divide(d("2")), "0E-6176");
        check(d("3E-6176").divide(d("2")), "2E-6176");
        check(
            d("9999999999999999999999999999999999").divide(d("1E-34")),
            "9.999999999999999999999999999999999E+67",
        );
    }

    #[test]
    fn remainders() {
        check(d("10.5").remainder(d("3")), "1.5");
        check(d("-7").remainder(d("3")), "-1");
        check(d("7").remainder(d("-3")), "1");
        check(d("1E+6144").remainder(d("3")), "1");
        check(d("9.999999999999999999999999999999999E+6144").remainder(d("3")), "0");
        check(d("1E-6143").remainder(d("3")), "1E-6143");
        check(d("10").remainder(d("Infinity")), "10");
        check(d("Infinity").remainder(d("3")), "NaN");
        check(d("10.5").remainder(d("3.2")), "0.9");
    }

    #[test]
    fn roots() {
        for (number, root) in [
            ("10", "3.162277660168379331998893544432719"),
            ("0.1", "0.3162277660168379331998893544432719"),
            (
                "9.999999999999999999999999999999999E+6144",
                "3.162277660168379331998893544432718E+3072",
            ),
            ("1E-6143", "3.162277660168379331998893544432719E-3072"),
            ("1E-6176", "1E-3088"),
            ("1E+6144", "1.00000000000000000E+3072"),
            ("1.0", "1.0"),
            ("1.00000000000000000000000000000000", "1.0000000000000000"),
            ("0.5000000000000000000000000000000001", "0.7071067811865475244008443621048491"),
            ("0.25", "0.5"),
            ("-0", "-0"),
            ("-1", "NaN"),
        ] {
            check(d(number).sqrt(), root);
        }
    }

    #[test]
    fn places() {
        use Rounding::{HalfEven, Truncate};
        for (number, place, rounding, text) in [
            ("2.015", 2, HalfEven, "2.02"),
            ("1.005", 2, HalfEven, "1.00"),
            ("23.298", -1, HalfEven, "2E+1"),
            (
                "1.123456789012345678901234567890123",
                34,
                HalfEven,
                "1.123456789012345678901234567890123",
            ),
            ("1.1", 33, Truncate, "1.100000000000000000000000000000000"),
            (
                "9.999999999999999999999999999999999E+6144",
                0,
                HalfEven,
                "9.999999999999999999999999999999999E+6144",
            ),
            ("Infinity", 0, Truncate, "Infinity"),
            ("1E-6143", 0, HalfEven, "0"),
            ("-2.7", 0, Truncate, "-2"),
            ("0.5", 0, HalfEven, "0"),
            ("1.5", 0, HalfEven, "2"),
        ] {
            check(d(number).round_to_place(place, rounding), text);
        }
        check(d("1E-6143").ceil(), "1");
        check(d("-1.5").ceil(), "-1");
        check(d("-1.5").floor(), "-2");
        check(d("-0.5").ceil(), "-0");
        check(d("1E+6144").floor(), "NaN");
        check(d("Infinity").ceil(), "NaN");
        check(d("1E+3").ceil(), "1000");
    }
}
