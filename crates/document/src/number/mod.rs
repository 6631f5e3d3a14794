//! Compares and hashes numbers of the four types by their mathematical values.

mod arithmetic;
mod text;

use crate::decimal::{Parts, Unpacked, infinity, truncate_to_f64};
use crate::{Decimal128, Value};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

pub use arithmetic::{OnOverflow, Promoted, add, multiply, promote, subtract};
pub use text::{conversion_text, message_text, shortest_double};

/// A number of any of the four types; an int is stored as a long.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// An int or a long.
    Int(i64),
    /// A 64-bit floating-point number.
    Double(f64),
    /// A 128-bit decimal number.
    Decimal(Decimal128),
}

/// 2^63, the smallest double above all longs.
pub(crate) const TWO_63: f64 = 9_223_372_036_854_775_808.0;

impl<'a> Value<'a> {
    /// Returns the number, if the value is one.
    #[inline]
    pub fn as_number(&self) -> Option<Number> {
        Some(match self {
            Value::Int32(number) => Number::Int(*number as i64),
            Value::Int64(number) => Number::Int(*number),
            Value::Double(number) => Number::Double(*number),
            Value::Decimal(decimal) => Number::Decimal(*decimal),
            _ => return None,
        })
    }
}

impl Number {
    /// Compares exactly, by mathematical values. NaN equals NaN and is the smallest number.
    pub fn compare(self, other: Number) -> Ordering {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => a.cmp(&b),
            (Number::Double(a), Number::Double(b)) => compare_doubles(a, b),
            (Number::Int(a), Number::Double(b)) => compare_int_double(a, b),
            (Number::Double(a), Number::Int(b)) => compare_int_double(b, a).reverse(),
            (Number::Decimal(a), Number::Decimal(b)) => a.compare(b),
            (Number::Decimal(a), Number::Int(b)) => compare_decimal_int(a, b),
            (Number::Int(a), Number::Decimal(b)) => compare_decimal_int(b, a).reverse(),
            (Number::Decimal(a), Number::Double(b)) => compare_decimal_double(a, b),
            (Number::Double(a), Number::Decimal(b)) => compare_decimal_double(b, a).reverse(),
        }
    }

    /// Returns true for a NaN of either type.
    pub fn is_nan(self) -> bool {
        match self {
            Number::Int(_) => false,
            Number::Double(number) => number.is_nan(),
            Number::Decimal(decimal) => decimal.is_nan(),
        }
    }

    /// Returns the long that equals this number, if there is one (5.0 gives 5; 5.5 and NaN give
    /// `None`).
    pub fn exact_i64(self) -> Option<i64> {
        match self {
            Number::Int(number) => Some(number),
            Number::Double(number) => exact_double_i64(number),
            Number::Decimal(decimal) => decimal.parts()?.exact_i64(),
        }
    }

    /// Hashes the number. Equal numbers of different types have the same hash.
    pub(crate) fn hash(self, state: &mut impl Hasher) {
        if let Some(number) = self.exact_i64() {
            return (0u8, number).hash(state);
        }
        match self {
            Number::Int(_) => {}
            Number::Double(number) => hash_double(number, state),
            Number::Decimal(decimal) => match decimal.unpack() {
                Unpacked::Nan => hash_double(f64::NAN, state),
                Unpacked::Infinite { negative } => hash_double(infinity(negative), state),
                Unpacked::Finite(parts) => {
                    let parts = parts.stripped();
                    match truncate_to_f64(parts.coefficient, parts.exponent) {
                        (size, true) => {
                            hash_double(if parts.negative { -size } else { size }, state);
                        }
                        _ => (2u8, parts).hash(state),
                    }
                }
            },
        }
    }
}

impl Parts {
    /// Returns the long that equals this number, if there is one.
    pub fn exact_i64(self) -> Option<i64> {
        let parts = self.stripped();
        let scale = 10u128.checked_pow(u32::try_from(parts.exponent).ok()?);
        let size = match (parts.coefficient, scale) {
            (0, _) => 0,
            (coefficient, scale) => i128::try_from(coefficient.checked_mul(scale?)?).ok()?,
        };
        i64::try_from(if parts.negative { -size } else { size }).ok()
    }
}

fn hash_double(number: f64, state: &mut impl Hasher) {
    let bits = if number.is_nan() { f64::NAN.to_bits() } else { number.to_bits() };
    (1u8, bits).hash(state);
}

/// Returns the long that equals this double, if there is one.
pub(crate) fn exact_double_i64(number: f64) -> Option<i64> {
    let inside = (-TWO_63..TWO_63).contains(&number);
    let cut = number as i64;
    (inside && cut as f64 == number).then_some(cut)
}

/// Compares doubles in MongoDB's order: NaN equals NaN and is the smallest.
#[inline]
pub fn compare_doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

fn compare_int_double(int: i64, double: f64) -> Ordering {
    if double.is_nan() || double < -TWO_63 {
        return Ordering::Greater;
    }
    if double >= TWO_63 {
        return Ordering::Less;
    }
    let cut = double as i64;
    int.cmp(&cut).then_with(|| compare_doubles(cut as f64, double))
}

fn compare_decimal_int(decimal: Decimal128, int: i64) -> Ordering {
    match decimal.unpack() {
        Unpacked::Nan | Unpacked::Infinite { negative: true } => Ordering::Less,
        Unpacked::Infinite { negative: false } => Ordering::Greater,
        Unpacked::Finite(parts) => parts.compare(Parts::from_i64(int)),
    }
}

fn compare_decimal_double(decimal: Decimal128, double: f64) -> Ordering {
    let parts = match decimal.unpack() {
        Unpacked::Nan => return compare_doubles(f64::NAN, double),
        Unpacked::Infinite { negative } => return compare_doubles(infinity(negative), double),
        Unpacked::Finite(_) if double.is_nan() => return Ordering::Greater,
        Unpacked::Finite(parts) => parts,
    };
    let sign = if double == 0.0 { 0 } else { double.signum() as i8 };
    if parts.signum() != sign {
        return parts.signum().cmp(&sign);
    }
    // The signs are equal. The decimal is at least as large as the truncated double, and smaller
    // than the next double.
    let (cut, exact) = truncate_to_f64(parts.coefficient, parts.exponent);
    let above = if exact { Ordering::Equal } else { Ordering::Greater };
    let by_size = compare_doubles(cut, double.abs()).then(above);
    if sign < 0 { by_size.reverse() } else { by_size }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(coefficient: u128, exponent: i32) -> Number {
        Number::Decimal(Decimal128::pack(Parts { negative: false, coefficient, exponent }))
    }

    #[test]
    fn exact_across_types() {
        let two_53 = 1i64 << 53;
        let rising = [
            Number::Double(f64::NAN),
            Number::Double(f64::NEG_INFINITY),
            Number::Int(i64::MIN),
            Number::Int(-1),
            Number::Double(0.0),
            decimal(1, -6176),
            Number::Double(5e-324),
            decimal(1, -1),
            Number::Double(0.1),
            Number::Int(1),
            Number::Int(two_53),
            decimal(90071992547409925, -1),
            Number::Int(two_53 + 1),
            Number::Double((two_53 + 2) as f64),
            Number::Int(i64::MAX),
            Number::Double(TWO_63),
            decimal((1 << 63) + 1, 0),
            Number::Double(f64::MAX),
            decimal(1, 309),
            Number::Double(f64::INFINITY),
        ];
        for (i, a) in rising.iter().enumerate() {
            for (j, b) in rising.iter().enumerate() {
                assert_eq!(a.compare(*b), i.cmp(&j), "{a:?} {b:?}");
            }
        }
        assert_eq!(decimal(25, -2).compare(Number::Double(0.25)), Ordering::Equal);
        assert_eq!(Number::Double(-0.0).compare(Number::Int(0)), Ordering::Equal);
    }

    #[test]
    fn exact_integers() {
        assert_eq!(Number::Double(5.0).exact_i64(), Some(5));
        assert_eq!(Number::Double(5.5).exact_i64(), None);
        assert_eq!(Number::Double(TWO_63).exact_i64(), None);
        assert_eq!(Number::Double(-TWO_63).exact_i64(), Some(i64::MIN));
        assert_eq!(decimal(50, -1).exact_i64(), Some(5));
        assert_eq!(decimal(0, 6000).exact_i64(), Some(0));
        assert_eq!(decimal(1, 19).exact_i64(), None);
    }
}
