//! Conversions between decimals and the other numeric types.

use super::{Parts, Rounding, Unpacked};
use crate::Decimal128;

impl Decimal128 {
    /// Returns an integer, with exponent 0.
    pub const fn from_i64(number: i64) -> Self {
        Decimal128::pack(Parts::from_i64(number))
    }

    /// Returns an integer, with exponent 0.
    pub const fn from_i32(number: i32) -> Self {
        Decimal128::from_i64(number as i64)
    }

    /// Returns a double rounded to 15 significant digits, as MongoDB does: 0.1 becomes
    /// `0.100000000000000`, and 0 becomes `0`.
    pub fn from_f64(number: f64) -> Self {
        Self::from_f64_digits(number, 14)
    }

    /// Returns a double rounded to 34 significant digits, without trailing zeros.
    pub fn from_f64_exact(number: f64) -> Self {
        let rounded = Self::from_f64_digits(number, 33);
        match rounded.parts() {
            Some(parts) if parts.coefficient != 0 => Decimal128::pack(parts.without_zeros()),
            _ => rounded,
        }
    }

    fn from_f64_digits(number: f64, after_first: usize) -> Self {
        if number == 0.0 {
            return if number.is_sign_negative() {
                Decimal128::ZERO.negate()
            } else {
                Decimal128::ZERO
            };
        }
        if number.is_infinite() {
            return Decimal128::infinite(number < 0.0);
        }
        Decimal128::parse(&format!("{number:.after_first$e}")).unwrap_or(Decimal128::NAN)
    }

    /// Returns the nearest double; an infinity for a number beyond all doubles.
    pub fn to_f64(self) -> f64 {
        match self.unpack() {
            Unpacked::Nan => f64::NAN,
            Unpacked::Infinite { negative } => infinity(negative),
            Unpacked::Finite(Parts { negative, coefficient, exponent }) => {
                let size = if coefficient < 1 << 53 && (-22..=22).contains(&exponent) {
                    // Both operands are exact, so this single operation rounds correctly.
                    let scale = 10f64.powi(exponent.abs());
                    let coefficient = coefficient as f64;
                    if exponent < 0 { coefficient / scale } else { coefficient * scale }
                } else {
                    format!("{coefficient}e{exponent}").parse().unwrap_or(f64::NAN)
                };
                if negative { -size } else { size }
            }
        }
    }

    /// Truncates to a long (5.9 is 5). Returns `None` for numbers out of range and for NaN.
    pub fn to_i64_truncated(self) -> Option<i64> {
        self.to_i64_rounded(Rounding::Truncate)
    }

    /// Rounds to a long. Returns `None` for numbers out of range and for NaN.
    pub fn to_i64_rounded(self, rounding: Rounding) -> Option<i64> {
        let parts = self.parts()?;
        match parts.exponent {
            0.. => parts.exact_i64(),
            _ => self.quantize(0, rounding).parts()?.exact_i64(),
        }
    }
}

impl Parts {
    /// Removes trailing zeros while the exponent is below 0.
    pub(super) fn without_zeros(mut self) -> Parts {
        while self.exponent < 0 && self.coefficient != 0 && self.coefficient.is_multiple_of(10) {
            self.coefficient /= 10;
            self.exponent += 1;
        }
        self
    }
}

/// Returns the infinity with this sign as a double.
pub(crate) const fn infinity(negative: bool) -> f64 {
    if negative { f64::NEG_INFINITY } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_doubles() {
        for (number, text) in [
            (2.5, "2.50000000000000"),
            (-0.0, "-0"),
            (0.0, "0"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
            (1e16, "1.00000000000000E+16"),
            (1.2345678901234568, "1.23456789012346"),
            (9007199254740991.0, "9.00719925474099E+15"),
            (5e-324, "4.94065645841247E-324"),
            (f64::MAX, "1.79769313486232E+308"),
        ] {
            assert_eq!(Decimal128::from_f64(number).to_string(), text);
        }
        assert_eq!(Decimal128::from_f64_exact(0.5).to_string(), "0.5");
        assert_eq!(Decimal128::from_f64_exact(100.0).to_string(), "100");
        assert_eq!(
            Decimal128::from_f64_exact(0.1).to_string(),
            "0.1000000000000000055511151231257827"
        );
    }

    #[test]
    fn to_others() {
        let d = |text: &str| Decimal128::parse(text).unwrap();
        for (text, number) in
            [("0.1", 0.1), ("1E+400", f64::INFINITY), ("-2.5", -2.5), ("1E-400", 0.0)]
        {
            assert_eq!(d(text).to_f64(), number);
        }
        assert_eq!(d("12345678901234567890123E-5").to_f64(), 123456789012345678.90123);
        assert_eq!(d("5.9").to_i64_truncated(), Some(5));
        assert_eq!(d("-5.9").to_i64_truncated(), Some(-5));
        assert_eq!(d("1E+18").to_i64_truncated(), Some(1_000_000_000_000_000_000));
        assert_eq!(d("1E+19").to_i64_truncated(), None);
        assert_eq!(d("9223372036854775807.9").to_i64_truncated(), Some(i64::MAX));
        assert_eq!(d("1E-6176").to_i64_truncated(), Some(0));
        assert_eq!(d("2.5").to_i64_rounded(Rounding::HalfEven), Some(2));
    }
}
