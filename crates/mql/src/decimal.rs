//! Decimal128 arithmetic: what IEEE 754-2008 demands of 34 digits, rounding half to even.
//!
//! Results have the standard's preferred exponent where they are exact. The four operations,
//! remainder, square root and rounding stand here; what needs series is in `functions`.

mod functions;

pub use functions::{Function, apply, atan2, logarithm, power};

use dashu_int::UBig;
use dashu_int::ops::{DivRem, SquareRoot};
use quire_document::Decimal128;
use quire_document::decimal::{DIGITS_MAX, EXPONENT_MAX, EXPONENT_MIN, Parts, Unpacked};

/// How digits that don't fit are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To nearest, a tie to the even digit.
    HalfEven,
    /// Towards zero.
    Truncate,
    /// Towards -Infinity.
    Floor,
    /// Towards Infinity.
    Ceiling,
}

/// A finite number with a coefficient of any length.
#[derive(Clone, Debug)]
struct Wide {
    negative: bool,
    coefficient: UBig,
    exponent: i64,
}

impl From<Parts> for Wide {
    fn from(parts: Parts) -> Self {
        Wide {
            negative: parts.negative,
            coefficient: UBig::from(parts.coefficient),
            exponent: i64::from(parts.exponent),
        }
    }
}

fn ten_to(power: u64) -> UBig {
    UBig::from(10u8).pow(power as usize)
}

fn digits(number: &UBig) -> i64 {
    match u128::try_from(number) {
        Ok(0) => 0,
        Ok(small) => i64::from(small.ilog10()) + 1,
        Err(_) => number.ilog(&UBig::from(10u8)) as i64 + 1,
    }
}

/// Packs parts that fit.
fn pack(negative: bool, coefficient: u128, exponent: i32) -> Decimal128 {
    let sign = u128::from(negative) << 127;
    let exponent = ((exponent - EXPONENT_MIN) as u128) << 113;
    Decimal128::from_bits(sign | exponent | coefficient)
}

/// An infinity of that sign.
pub fn infinity(negative: bool) -> Decimal128 {
    if negative { Decimal128::NEG_INFINITY } else { Decimal128::INFINITY }
}

impl Wide {
    /// Drops the last `count` digits.
    fn drop_digits(&mut self, count: i64, rounding: Rounding) {
        if count <= 0 {
            return;
        }
        self.exponent += count;
        if count > digits(&self.coefficient) + 1 {
            let rest = self.coefficient != UBig::ZERO;
            self.coefficient = UBig::from(u8::from(rest && self.rounds_away(rounding)));
            return;
        }
        let scale = ten_to(count as u64);
        let (kept, rest) = (&self.coefficient).div_rem(&scale);
        let twice = &rest * UBig::from(2u8);
        let up = match rounding {
            Rounding::HalfEven => twice > scale || (twice == scale && &kept % 2u8 == 1),
            other => rest != UBig::ZERO && self.rounds_away(other),
        };
        self.coefficient = if up { kept + UBig::ONE } else { kept };
    }

    /// True if a part below half a unit is rounded away from zero.
    fn rounds_away(&self, rounding: Rounding) -> bool {
        match rounding {
            Rounding::HalfEven | Rounding::Truncate => false,
            Rounding::Floor => self.negative,
            Rounding::Ceiling => !self.negative,
        }
    }

    /// Rounds half to even into 34 digits and the exponents that exist.
    fn round(mut self) -> Decimal128 {
        let excess = digits(&self.coefficient) - i64::from(DIGITS_MAX);
        self.drop_digits(excess.max(i64::from(EXPONENT_MIN) - self.exponent), Rounding::HalfEven);
        if digits(&self.coefficient) > i64::from(DIGITS_MAX) {
            self.drop_digits(1, Rounding::HalfEven);
        }
        let max = i64::from(EXPONENT_MAX);
        if self.coefficient == UBig::ZERO {
            let exponent = self.exponent.clamp(i64::from(EXPONENT_MIN), max);
            return pack(self.negative, 0, exponent as i32);
        }
        if self.exponent > max {
            let missing = self.exponent - max;
            if missing > i64::from(DIGITS_MAX) - digits(&self.coefficient) {
                return infinity(self.negative);
            }
            self.coefficient *= ten_to(missing as u64);
            self.exponent = max;
        }
        let coefficient = u128::try_from(&self.coefficient).unwrap_or(0);
        pack(self.negative, coefficient, self.exponent as i32)
    }

    /// Takes trailing zeros away until the exponent is `ideal`.
    fn strip_to(&mut self, ideal: i64) {
        let ten = UBig::from(10u8);
        while self.exponent < ideal && self.coefficient != UBig::ZERO {
            let (kept, rest) = (&self.coefficient).div_rem(&ten);
            if rest != UBig::ZERO {
                return;
            }
            self.coefficient = kept;
            self.exponent += 1;
        }
    }
}

/// The sum.
pub fn add(a: Decimal128, b: Decimal128) -> Decimal128 {
    match (a.unpack(), b.unpack()) {
        (Unpacked::Nan, _) | (_, Unpacked::Nan) => Decimal128::NAN,
        (Unpacked::Infinite { negative: x }, Unpacked::Infinite { negative: y }) if x != y => {
            Decimal128::NAN
        }
        (Unpacked::Infinite { negative }, _) | (_, Unpacked::Infinite { negative }) => {
            infinity(negative)
        }
        (Unpacked::Finite(a), Unpacked::Finite(b)) => {
            if a.exponent >= b.exponent { add_finite(a, b) } else { add_finite(b, a) }
        }
    }
}

/// `high` has the larger exponent.
fn add_finite(high: Parts, mut low: Parts) -> Decimal128 {
    // Beyond 75 digits the lower operand only says on which side of a tie the sum stands.
    const DISTANCE_MAX: i32 = 75;
    if high.coefficient == 0 && low.coefficient != 0 {
        return Wide::from(low).round();
    }
    if high.exponent - low.exponent > DISTANCE_MAX {
        low.coefficient = low.coefficient.min(1);
        low.exponent = high.exponent - DISTANCE_MAX;
    }
    if let Some(sum) = add_narrow(high, low) {
        return sum;
    }
    let scaled = UBig::from(high.coefficient) * ten_to((high.exponent - low.exponent) as u64);
    let other = UBig::from(low.coefficient);
    let exponent = i64::from(low.exponent);
    let (negative, coefficient) = if high.negative == low.negative {
        (high.negative, scaled + other)
    } else if scaled > other {
        (high.negative, scaled - other)
    } else if scaled < other {
        (low.negative, other - scaled)
    } else {
        (false, UBig::ZERO)
    };
    Wide { negative, coefficient, exponent }.round()
}

/// The sum where 128 bits hold everything: the usual case.
fn add_narrow(high: Parts, low: Parts) -> Option<Decimal128> {
    let scale = 10u128.checked_pow((high.exponent - low.exponent) as u32)?;
    let scaled = i128::try_from(high.coefficient.checked_mul(scale)?).ok()?;
    let signed = |number: i128, negative| if negative { -number } else { number };
    let sum = signed(scaled, high.negative)
        .checked_add(signed(low.coefficient as i128, low.negative))?;
    if sum.unsigned_abs() > quire_document::decimal::COEFFICIENT_MAX {
        return None;
    }
    let negative = if sum == 0 { high.negative && low.negative } else { sum < 0 };
    Some(pack(negative, sum.unsigned_abs(), low.exponent))
}

/// The difference.
pub fn subtract(a: Decimal128, b: Decimal128) -> Decimal128 {
    if b.is_nan() { Decimal128::NAN } else { add(a, negate(b)) }
}

/// The number with the other sign.
pub fn negate(number: Decimal128) -> Decimal128 {
    Decimal128::from_bits(number.bits() ^ (1 << 127))
}

/// The number without its sign.
pub fn abs(number: Decimal128) -> Decimal128 {
    if number.is_nan() { number } else { Decimal128::from_bits(number.bits() & !(1 << 127)) }
}

/// The product.
pub fn multiply(a: Decimal128, b: Decimal128) -> Decimal128 {
    let negative = a.is_negative() != b.is_negative();
    match (a.unpack(), b.unpack()) {
        (Unpacked::Nan, _) | (_, Unpacked::Nan) => Decimal128::NAN,
        (Unpacked::Finite(a), Unpacked::Finite(b)) => Wide {
            negative,
            coefficient: UBig::from(a.coefficient) * UBig::from(b.coefficient),
            exponent: i64::from(a.exponent) + i64::from(b.exponent),
        }
        .round(),
        _ if a.is_zero() || b.is_zero() => Decimal128::NAN,
        _ => infinity(negative),
    }
}

/// The quotient; a finite number by zero is infinite.
pub fn divide(a: Decimal128, b: Decimal128) -> Decimal128 {
    let negative = a.is_negative() != b.is_negative();
    let (a, b) = match (a.unpack(), b.unpack()) {
        (Unpacked::Nan, _) | (_, Unpacked::Nan) => return Decimal128::NAN,
        (Unpacked::Infinite { .. }, Unpacked::Infinite { .. }) => return Decimal128::NAN,
        (Unpacked::Infinite { .. }, _) => return infinity(negative),
        (_, Unpacked::Infinite { .. }) => return pack(negative, 0, EXPONENT_MIN),
        (Unpacked::Finite(a), Unpacked::Finite(b)) => (a, b),
    };
    let ideal = i64::from(a.exponent) - i64::from(b.exponent);
    if b.coefficient == 0 {
        return if a.coefficient == 0 { Decimal128::NAN } else { infinity(negative) };
    }
    if a.coefficient == 0 {
        return Wide { negative, coefficient: UBig::ZERO, exponent: ideal }.round();
    }
    let (dividend, divisor) = (UBig::from(a.coefficient), UBig::from(b.coefficient));
    let shift = (i64::from(DIGITS_MAX) + 2 + digits(&divisor) - digits(&dividend)).max(0);
    let (mut coefficient, rest) = (dividend * ten_to(shift as u64)).div_rem(&divisor);
    let mut exponent = ideal - shift;
    if rest != UBig::ZERO {
        coefficient = coefficient * UBig::from(10u8) + UBig::ONE;
        exponent -= 1;
    }
    let exact = rest == UBig::ZERO;
    let mut quotient = Wide { negative, coefficient, exponent };
    if exact {
        quotient.strip_to(ideal);
    }
    quotient.round()
}

/// The remainder with the sign of the dividend, as C's fmod.
pub fn remainder(a: Decimal128, b: Decimal128) -> Decimal128 {
    let (x, y) = match (a.unpack(), b.unpack()) {
        (Unpacked::Finite(_), Unpacked::Infinite { .. }) => return a,
        (Unpacked::Finite(x), Unpacked::Finite(y)) if y.coefficient != 0 => (x, y),
        _ => return Decimal128::NAN,
    };
    let exponent = x.exponent.min(y.exponent);
    let scaled = |parts: Parts| {
        UBig::from(parts.coefficient) * ten_to((parts.exponent - exponent) as u64)
    };
    let coefficient = scaled(x) % scaled(y);
    Wide { negative: x.negative, coefficient, exponent: i64::from(exponent) }.round()
}

/// The square root; NaN below zero.
pub fn sqrt(number: Decimal128) -> Decimal128 {
    let parts = match number.unpack() {
        Unpacked::Nan => return Decimal128::NAN,
        Unpacked::Infinite { negative } => {
            return if negative { Decimal128::NAN } else { number };
        }
        Unpacked::Finite(parts) => parts,
    };
    let ideal = i64::from(parts.exponent).div_euclid(2);
    if parts.coefficient == 0 {
        return pack(parts.negative, 0, ideal as i32);
    }
    if parts.negative {
        return Decimal128::NAN;
    }
    let mut wide = Wide::from(parts);
    let mut shift = 2 * i64::from(DIGITS_MAX) + 4 - digits(&wide.coefficient);
    shift += (wide.exponent - shift).rem_euclid(2);
    wide.coefficient *= ten_to(shift as u64);
    let root = wide.coefficient.sqrt();
    let exact = &root * &root == wide.coefficient;
    let exponent = (wide.exponent - shift) / 2;
    let mut result = Wide { negative: false, coefficient: root, exponent };
    if exact {
        result.strip_to(ideal);
    } else {
        result.coefficient = result.coefficient * UBig::from(10u8) + UBig::ONE;
        result.exponent -= 1;
    }
    result.round()
}

/// Rescales to `exponent`, dropping or appending digits; `None` where the number is not finite or
/// would need more than 34 digits.
pub fn quantize(number: Decimal128, exponent: i32, rounding: Rounding) -> Option<Decimal128> {
    let mut wide = Wide::from(number.parts()?);
    let target = i64::from(exponent);
    if wide.exponent > target && wide.coefficient != UBig::ZERO {
        if wide.exponent - target > i64::from(DIGITS_MAX) {
            return None;
        }
        wide.coefficient *= ten_to((wide.exponent - target) as u64);
    }
    let dropped = target - wide.exponent;
    wide.drop_digits(dropped, rounding);
    if digits(&wide.coefficient) > i64::from(DIGITS_MAX) {
        return None;
    }
    Some(pack(wide.negative, u128::try_from(&wide.coefficient).unwrap_or(0), exponent))
}

/// Rounds to an integer; infinities and NaN stay.
pub fn to_integral(number: Decimal128, rounding: Rounding) -> Decimal128 {
    match number.parts() {
        Some(parts) if parts.exponent < 0 => quantize(number, 0, rounding).unwrap_or(number),
        _ => number,
    }
}

/// The decimal of an integer.
pub fn from_i64(number: i64) -> Decimal128 {
    pack(number < 0, u128::from(number.unsigned_abs()), 0)
}

/// The decimal of a double with 15 digits, as MongoDB converts it.
pub fn from_f64(number: f64) -> Decimal128 {
    from_f64_digits(number, 15)
}

/// The decimal of a double with 34 digits.
pub fn from_f64_exact(number: f64) -> Decimal128 {
    from_f64_digits(number, DIGITS_MAX as usize)
}

fn from_f64_digits(number: f64, digits: usize) -> Decimal128 {
    if number.is_nan() {
        return Decimal128::NAN;
    }
    if number.is_infinite() {
        return infinity(number < 0.0);
    }
    if number == 0.0 {
        return pack(number.is_sign_negative(), 0, 0);
    }
    let text = format!("{number:.*e}", digits - 1);
    Decimal128::parse(&text).unwrap_or(Decimal128::NAN)
}

/// The nearest double.
pub fn to_f64(number: Decimal128) -> f64 {
    match number.unpack() {
        Unpacked::Nan => f64::NAN,
        Unpacked::Infinite { negative: true } => f64::NEG_INFINITY,
        Unpacked::Infinite { negative: false } => f64::INFINITY,
        Unpacked::Finite(parts) => {
            let sign = if parts.negative { "-" } else { "" };
            let text = format!("{sign}{}e{}", parts.coefficient, parts.exponent);
            text.parse().unwrap_or(f64::NAN)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dec(text: &str) -> Decimal128 {
        Decimal128::parse(text).unwrap()
    }

    #[test]
    fn four_operations() {
        assert_eq!(add(dec("1.0"), dec("2.00")), dec("3.00"));
        assert_eq!(add(dec("1E+40"), dec("1E-40")), dec("1.000000000000000000000000000000000E+40"));
        assert_eq!(add(dec("9999999999999999999999999999999999"), dec("1")), dec("1.000000000000000000000000000000000E+34"));
        assert_eq!(subtract(dec("5"), dec("5.0")), dec("0.0"));
        assert_eq!(multiply(dec("1.10"), dec("2.0")), dec("2.200"));
        assert_eq!(divide(dec("1"), dec("3")), dec("0.3333333333333333333333333333333333"));
        assert_eq!(divide(dec("10"), dec("4")), dec("2.5"));
        assert_eq!(divide(dec("2"), dec("3")), dec("0.6666666666666666666666666666666667"));
        assert_eq!(remainder(dec("-7.5"), dec("2")), dec("-1.5"));
        assert!(divide(dec("0"), dec("0")).is_nan());
    }

    #[test]
    fn roots_and_rounding() {
        assert_eq!(sqrt(dec("4")), dec("2"));
        assert_eq!(sqrt(dec("0.25")), dec("0.5"));
        assert_eq!(sqrt(dec("2")), dec("1.414213562373095048801688724209698"));
        assert_eq!(quantize(dec("2.5"), 0, Rounding::HalfEven), Some(dec("2")));
        assert_eq!(quantize(dec("3.5"), 0, Rounding::HalfEven), Some(dec("4")));
        assert_eq!(quantize(dec("-2.1"), 0, Rounding::Floor), Some(dec("-3")));
        assert_eq!(quantize(dec("2.1"), 0, Rounding::Ceiling), Some(dec("3")));
        assert_eq!(quantize(dec("1"), -40, Rounding::HalfEven), None);
        assert_eq!(from_f64(1.5), dec("1.50000000000000"));
        assert_eq!(to_f64(dec("0.1")), 0.1);
    }
}
