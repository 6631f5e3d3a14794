//! Decimal128: its parts, its classes, and its comparison with the other numeric types.
//!
//! The wire form is the binary integer decimal (BID) of IEEE 754-2008: sign, 14-bit biased
//! exponent, 113-bit coefficient. A coefficient of more than 34 digits is not canonical and reads
//! as zero.

mod arithmetic;
mod convert;
mod fast;
mod fixed;
mod functions;
mod text;
mod truncate;
mod wide;

use crate::Decimal128;
use std::cmp::Ordering;

pub use arithmetic::Rounding;
pub(crate) use convert::infinity;
pub use text::Parsed;
pub(crate) use truncate::truncate_to_f64;

/// The most decimal digits of a coefficient.
pub const DIGITS_MAX: u32 = 34;
/// The largest coefficient: 34 nines.
pub const COEFFICIENT_MAX: u128 = 10u128.pow(DIGITS_MAX) - 1;
/// The smallest exponent of the coefficient's last digit.
pub const EXPONENT_MIN: i32 = -6176;
/// The largest exponent of the coefficient's last digit.
pub const EXPONENT_MAX: i32 = 6111;

/// A finite decimal: `coefficient * 10^exponent` with a sign. Zero has a sign too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parts {
    /// True for numbers less than zero and for -0.
    pub negative: bool,
    /// At most [`COEFFICIENT_MAX`] if the parts come from a decimal's bits.
    pub coefficient: u128,
    /// The power of ten of the coefficient's last digit.
    pub exponent: i32,
}

/// A decimal, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unpacked {
    /// A finite number.
    Finite(Parts),
    /// Positive or negative infinity.
    Infinite {
        /// True for -Infinity.
        negative: bool,
    },
    /// Not a number. Its sign, payload and signaling bit have no meaning.
    Nan,
}

impl Decimal128 {
    /// Zero with exponent 0.
    pub const ZERO: Decimal128 = Decimal128::from_bits(6176 << 113);
    /// One with exponent 0.
    pub const ONE: Decimal128 = Decimal128::from_bits((6176 << 113) | 1);
    /// The canonical quiet NaN.
    pub const NAN: Decimal128 = Decimal128::from_bits(0x1f << 122);
    /// The positive infinity.
    pub const INFINITY: Decimal128 = Decimal128::from_bits(0x1e << 122);
    /// The negative infinity.
    pub const NEG_INFINITY: Decimal128 = Decimal128::from_bits(0x3e << 122);
    /// The largest finite number.
    pub const MAX: Decimal128 = Decimal128::from_bits((12287 << 113) | COEFFICIENT_MAX);

    /// Decodes the bits.
    pub const fn unpack(self) -> Unpacked {
        let bits = self.bits();
        let negative = bits >> 127 != 0;
        match (bits >> 122) as u32 & 0x1f {
            0x1f => return Unpacked::Nan,
            0x1e => return Unpacked::Infinite { negative },
            _ => {}
        }
        if (bits >> 125) & 3 == 3 {
            // The large form, whose coefficient always has more than 34 digits.
            let exponent = ((bits >> 111) & 0x3fff) as i32 + EXPONENT_MIN;
            return Unpacked::Finite(Parts { negative, coefficient: 0, exponent });
        }
        let exponent = ((bits >> 113) & 0x3fff) as i32 + EXPONENT_MIN;
        let coefficient = bits & ((1 << 113) - 1);
        let coefficient = if coefficient > COEFFICIENT_MAX { 0 } else { coefficient };
        Unpacked::Finite(Parts { negative, coefficient, exponent })
    }

    /// Returns the parts of a finite number; `None` for NaN and the infinities.
    pub const fn parts(self) -> Option<Parts> {
        match self.unpack() {
            Unpacked::Finite(parts) => Some(parts),
            _ => None,
        }
    }

    /// Encodes parts whose coefficient and exponent are within their limits.
    pub const fn pack(parts: Parts) -> Self {
        let exponent = (parts.exponent - EXPONENT_MIN) as u128;
        let sign = (parts.negative as u128) << 127;
        Decimal128::from_bits(sign | exponent << 113 | parts.coefficient)
    }

    /// Returns true for every NaN.
    pub const fn is_nan(self) -> bool {
        matches!(self.unpack(), Unpacked::Nan)
    }

    /// Returns true for both infinities.
    pub const fn is_infinite(self) -> bool {
        matches!(self.unpack(), Unpacked::Infinite { .. })
    }

    /// Returns true for numbers that are neither NaN nor infinite.
    pub const fn is_finite(self) -> bool {
        matches!(self.unpack(), Unpacked::Finite(_))
    }

    /// Returns true for zero of either sign and any exponent.
    pub const fn is_zero(self) -> bool {
        matches!(self.unpack(), Unpacked::Finite(Parts { coefficient: 0, .. }))
    }

    /// Returns true if the sign bit is set.
    pub const fn is_negative(self) -> bool {
        self.bits() >> 127 != 0
    }

    /// Compares in MongoDB's order: NaN equals NaN and is the smallest, -0 equals 0, exponents do
    /// not matter.
    pub fn compare(self, other: Decimal128) -> Ordering {
        match (self.unpack(), other.unpack()) {
            (Unpacked::Nan, Unpacked::Nan) => Ordering::Equal,
            (Unpacked::Nan, _) => Ordering::Less,
            (_, Unpacked::Nan) => Ordering::Greater,
            (Unpacked::Finite(a), Unpacked::Finite(b)) => a.compare(b),
            (a, b) => a.infinity().cmp(&b.infinity()),
        }
    }
}

impl Unpacked {
    /// Returns -1 or 1 for an infinity, and 0 for any other number.
    const fn infinity(self) -> i8 {
        match self {
            Unpacked::Infinite { negative: true } => -1,
            Unpacked::Infinite { negative: false } => 1,
            _ => 0,
        }
    }
}

impl Parts {
    /// Returns the parts of an integer.
    pub const fn from_i64(number: i64) -> Self {
        let coefficient = number.unsigned_abs() as u128;
        Parts { negative: number < 0, coefficient, exponent: 0 }
    }

    /// Compares as mathematical values.
    pub fn compare(self, other: Parts) -> Ordering {
        match (self.signum(), other.signum()) {
            (1, 1) => self.compare_magnitude(other),
            (-1, -1) => other.compare_magnitude(self),
            (a, b) => a.cmp(&b),
        }
    }

    /// Returns -1, 0 or 1.
    pub const fn signum(self) -> i8 {
        match (self.coefficient, self.negative) {
            (0, _) => 0,
            (_, true) => -1,
            (_, false) => 1,
        }
    }

    /// Returns the exponent of the first digit. The number must not be zero.
    pub(crate) fn adjusted_exponent(self) -> i32 {
        self.exponent + digits(self.coefficient) as i32 - 1
    }

    /// Compares without signs. Neither number may be zero.
    fn compare_magnitude(self, other: Parts) -> Ordering {
        let by_size = self.adjusted_exponent().cmp(&other.adjusted_exponent());
        if by_size != Ordering::Equal {
            return by_size;
        }
        // Both have the same first digit's exponent: scaled to the smaller exponent, both have less
        // than 39 digits.
        let smaller = self.exponent.min(other.exponent);
        let aligned =
            |parts: Parts| parts.coefficient * 10u128.pow((parts.exponent - smaller) as u32);
        aligned(self).cmp(&aligned(other))
    }

    /// Returns the same number without trailing zeros in the coefficient. (Zero gets exponent 0.)
    pub(crate) fn stripped(mut self) -> Parts {
        if self.coefficient == 0 {
            return Parts { exponent: 0, ..self };
        }
        while self.coefficient.is_multiple_of(10) {
            self.coefficient /= 10;
            self.exponent += 1;
        }
        self
    }
}

/// Returns the number of decimal digits; 0 for zero.
pub(crate) const fn digits(number: u128) -> u32 {
    match number.checked_ilog10() {
        Some(log) => log + 1,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(negative: bool, coefficient: u128, exponent: i32) -> Decimal128 {
        Decimal128::pack(Parts { negative, coefficient, exponent })
    }

    #[test]
    fn order_of_decimals() {
        let rising = [
            Decimal128::NAN,
            Decimal128::NEG_INFINITY,
            decimal(true, COEFFICIENT_MAX, EXPONENT_MAX),
            decimal(true, 11, -1),
            decimal(true, 1, EXPONENT_MIN),
            Decimal128::ZERO,
            decimal(false, 1, EXPONENT_MIN),
            decimal(false, 1, -1),
            decimal(false, 11, -1),
            decimal(false, 1, 3),
            Decimal128::MAX,
            Decimal128::INFINITY,
        ];
        for (i, a) in rising.iter().enumerate() {
            for (j, b) in rising.iter().enumerate() {
                assert_eq!(a.compare(*b), i.cmp(&j), "{a:?} {b:?}");
            }
        }
        assert_eq!(decimal(false, 10, -1).compare(Decimal128::ONE), Ordering::Equal);
        assert_eq!(decimal(true, 0, 7).compare(Decimal128::ZERO), Ordering::Equal);
        assert_eq!(
            decimal(false, 1, 33).compare(decimal(false, 10u128.pow(33), 0)),
            Ordering::Equal
        );
    }

    #[test]
    fn not_canonical_reads_as_zero() {
        assert!(Decimal128::from_bits((6176 << 113) | (COEFFICIENT_MAX + 1)).is_zero());
        assert!(Decimal128::from_bits(3 << 125).is_zero());
        assert!(Decimal128::from_bits(0x7f << 120).is_nan());
    }
}
