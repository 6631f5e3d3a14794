//! The text of a Decimal128, by the BSON decimal128 specification.

use super::{DIGITS_MAX, EXPONENT_MAX, EXPONENT_MIN, Parts, Unpacked, digits};
use crate::Decimal128;
use std::fmt;

/// A parsed decimal, and whether the text denotes exactly this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The number, rounded half to even.
    pub decimal: Decimal128,
    /// False if digits were rounded away or the number did not fit.
    pub exact: bool,
}

/// What becomes of digits that a decimal has no room for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Digits {
    Rounded,
    Truncated,
}

impl Decimal128 {
    /// Parses a number, `Infinity`, `inf` or `NaN` (in any case, with an optional sign), and rounds
    /// it half to even.
    pub fn parse(text: &str) -> Option<Self> {
        Self::parse_exact(text).map(|parsed| parsed.decimal)
    }

    /// Parses like [`Decimal128::parse`], but leaves out the digits behind the 34th, as `$toDecimal`
    /// does.
    pub fn parse_truncated(text: &str) -> Option<Self> {
        parse(text, Digits::Truncated).map(|parsed| parsed.decimal)
    }

    /// Parses like [`Decimal128::parse`], and also tells whether the number was rounded.
    pub fn parse_exact(text: &str) -> Option<Parsed> {
        parse(text, Digits::Rounded)
    }

    pub(crate) const fn infinite(negative: bool) -> Self {
        if negative { Decimal128::NEG_INFINITY } else { Decimal128::INFINITY }
    }

    /// Rounds `coefficient * 10^exponent` (at most 38 digits) half to even to a decimal. `sticky`
    /// tells that the true value is slightly larger. Returns whether the result is exact.
    pub(crate) fn round(mut parts: Parts, sticky: bool) -> (Decimal128, bool) {
        let excess = digits(parts.coefficient) as i32 - DIGITS_MAX as i32;
        let drop = excess.max(EXPONENT_MIN.saturating_sub(parts.exponent)).max(0);
        let mut exact = !sticky;
        if drop > 0 {
            exact &= parts.drop_digits(drop as u32, sticky);
        }
        if parts.coefficient == 0 {
            parts.exponent = parts.exponent.clamp(EXPONENT_MIN, EXPONENT_MAX);
            return (Decimal128::pack(parts), exact);
        }
        let excess = parts.exponent.saturating_sub(EXPONENT_MAX);
        if excess > 0 {
            if excess as u32 > DIGITS_MAX - digits(parts.coefficient) {
                return (Decimal128::infinite(parts.negative), false);
            }
            parts.coefficient *= 10u128.pow(excess as u32);
            parts.exponent = EXPONENT_MAX;
        }
        (Decimal128::pack(parts), exact)
    }
}

impl Parts {
    /// Divides the coefficient by 10^count, rounding half to even. Returns true if nothing was
    /// lost. If rounding makes 35 digits, reduces them to 34.
    fn drop_digits(&mut self, count: u32, sticky: bool) -> bool {
        let was_zero = self.coefficient == 0;
        self.exponent = self.exponent.saturating_add(count as i32);
        let Some(scale) = 10u128.checked_pow(count) else {
            self.coefficient = 0;
            return was_zero;
        };
        let (kept, rest) = (self.coefficient / scale, self.coefficient % scale);
        let half = scale / 2;
        let up = rest > half || rest == half && (sticky || kept % 2 == 1);
        self.coefficient = kept + up as u128;
        if digits(self.coefficient) > DIGITS_MAX {
            self.coefficient /= 10;
            self.exponent += 1;
        }
        rest == 0
    }
}

fn parse(text: &str, how: Digits) -> Option<Parsed> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let special = |decimal| Some(Parsed { decimal, exact: true });
    match unsigned {
        word if word.eq_ignore_ascii_case("nan") && negative => special(Decimal128::NAN.negate()),
        word if word.eq_ignore_ascii_case("nan") => special(Decimal128::NAN),
        word if ["infinity", "inf"].iter().any(|inf| word.eq_ignore_ascii_case(inf)) => {
            special(Decimal128::infinite(negative))
        }
        _ => parse_finite(negative, unsigned.as_bytes(), how),
    }
}

fn parse_finite(negative: bool, text: &[u8], how: Digits) -> Option<Parsed> {
    let (mantissa, exponent) = match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (text.get(..at)?, parse_exponent(text.get(at + 1..)?)?),
        None => (text, 0),
    };
    let (mut coefficient, mut shift) = (0u128, 0i64);
    let (mut kept, mut sticky, mut any, mut point) = (0, false, false, false);
    for &byte in mantissa {
        match byte {
            b'.' if !point => point = true,
            b'0'..=b'9' => {
                any = true;
                shift -= point as i64;
                if kept < 38 {
                    coefficient = coefficient * 10 + (byte - b'0') as u128;
                    kept += (coefficient != 0) as u32;
                } else {
                    shift += 1;
                    sticky |= byte != b'0';
                }
            }
            _ => return None,
        }
    }
    if !any {
        return None;
    }
    let exponent = exponent.saturating_add(shift).clamp(-1_000_000, 1_000_000) as i32;
    let mut parts = Parts { negative, coefficient, exponent };
    if how == Digits::Truncated {
        sticky = false;
        let excess = digits(coefficient) as i32 - DIGITS_MAX as i32;
        let drop = excess.max(EXPONENT_MIN.saturating_sub(exponent)).max(0);
        let scale = 10u128.checked_pow(drop as u32);
        parts.coefficient = scale.map_or(0, |scale| coefficient / scale);
        parts.exponent = exponent.saturating_add(drop);
    }
    let (decimal, exact) = Decimal128::round(parts, sticky);
    Some(Parsed { decimal, exact })
}

/// Parses a signed integer of any length; a value out of range saturates.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let size = digits.iter().fold(0i64, |number, digit| {
        number.saturating_mul(10).saturating_add((digit - b'0') as i64)
    });
    Some(if negative { -size } else { size })
}

impl fmt::Display for Decimal128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = match self.unpack() {
            Unpacked::Nan => return f.write_str("NaN"),
            Unpacked::Infinite { negative } => {
                return f.write_str(if negative { "-Infinity" } else { "Infinity" });
            }
            Unpacked::Finite(parts) => parts,
        };
        if parts.negative {
            f.write_str("-")?;
        }
        let text = parts.coefficient.to_string();
        let scientific = parts.exponent + text.len() as i32 - 1;
        if parts.exponent > 0 || scientific < -6 {
            let (first, rest) = text.split_at(1);
            f.write_str(first)?;
            if !rest.is_empty() {
                write!(f, ".{rest}")?;
            }
            return write!(f, "E{scientific:+}");
        }
        let after_point = -parts.exponent as usize;
        match text.len().checked_sub(after_point) {
            _ if after_point == 0 => f.write_str(&text),
            Some(before @ 1..) => write!(f, "{}.{}", &text[..before], &text[before..]),
            _ => write!(f, "0.{text:0>after_point$}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_texts() {
        for text in [
            "0",
            "-0",
            "1",
            "1.10",
            "0.001",
            "0.000001",
            "1E-7",
            "1.23E-8",
            "0E+3",
            "0E-7",
            "1E+3",
            "12.34",
            "-123",
            "NaN",
            "Infinity",
            "-Infinity",
            "1E-6176",
            "0.1234",
            "1234567890123456789012345678901234",
            "0E-6176",
            "0E+6111",
            "1.000000000000000E-10",
            "9.999999999999999999999999999999999E+6144",
        ] {
            assert_eq!(Decimal128::parse(text).unwrap().to_string(), text, "{text}");
        }
    }

    #[test]
    fn other_spellings() {
        for (text, canonical) in [
            ("+1.5", "1.5"),
            (".5", "0.5"),
            ("5.", "5"),
            ("1e3", "1E+3"),
            ("inF", "Infinity"),
            ("-nan", "NaN"),
            ("1E6112", "1.0E+6112"),
            ("1E6144", "1.000000000000000000000000000000000E+6144"),
            ("1E6145", "Infinity"),
            ("-1E99999999999999999999", "-Infinity"),
            ("1E-6177", "0E-6176"),
            ("6E-6177", "1E-6176"),
            ("0E-99999", "0E-6176"),
            ("0E+99999", "0E+6111"),
            ("00000000000000000000000000000000000000000000001", "1"),
            ("12345678901234567890123456789012345", "1.234567890123456789012345678901234E+34"),
            ("12345678901234567890123456789012355", "1.234567890123456789012345678901236E+34"),
            ("99999999999999999999999999999999999", "1.000000000000000000000000000000000E+35"),
        ] {
            assert_eq!(Decimal128::parse(text).unwrap().to_string(), canonical, "{text}");
        }
        for text in ["", "-", ".", "e5", "1e", "1e+", "1.2.3", "x", "1 ", "0x1", "infinit"] {
            assert_eq!(Decimal128::parse(text), None, "{text}");
        }
        let nines = "1.00000000000000000000000000000000099999";
        let rounded = Decimal128::parse(nines).unwrap();
        assert_eq!(rounded.to_string(), "1.000000000000000000000000000000001");
        let truncated = Decimal128::parse_truncated(nines).unwrap();
        assert_eq!(truncated.to_string(), "1.000000000000000000000000000000000");
        assert!(Decimal128::parse_truncated("9E-6177").unwrap().is_zero());
        assert_eq!(Decimal128::parse_truncated("-1.5E+3"), Decimal128::parse("-1.5E+3"));
        assert!(!Decimal128::parse_exact("1E-6177").unwrap().exact);
        assert!(Decimal128::parse_exact("1.50").unwrap().exact);
    }
}
