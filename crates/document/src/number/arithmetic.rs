//! Arithmetic with MongoDB's numeric promotion: int with int is an int if the result fits,
//! otherwise a long; with a double the result is a double, with a decimal a decimal. The caller
//! decides about a long that overflows: in expressions it becomes a double, in `$inc` and `$mul` it
//! is an error.

use super::Number;
use crate::{Decimal128, Value};

/// The result if a long overflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnOverflow {
    /// The result becomes a double, as in expressions.
    Double,
    /// No result, as in `$inc` and `$mul`.
    Refuse,
}

/// Two numbers converted to their common type.
#[derive(Clone, Copy, Debug)]
pub enum Promoted {
    /// Two ints: the result is an int if it fits.
    Ints(i32, i32),
    /// A long and an int or a long.
    Longs(i64, i64),
    /// At least one double and no decimal.
    Doubles(f64, f64),
    /// At least one decimal. Doubles are rounded to 15 digits.
    Decimals(Decimal128, Decimal128),
}

/// Converts two numbers to their common type; `None` if either is not a number.
pub fn promote(a: Value<'_>, b: Value<'_>) -> Option<Promoted> {
    if let (Value::Int32(a), Value::Int32(b)) = (a, b) {
        return Some(Promoted::Ints(a, b));
    }
    Some(match (a.as_number()?, b.as_number()?) {
        (Number::Int(a), Number::Int(b)) => Promoted::Longs(a, b),
        (a @ Number::Decimal(_), b) | (a, b @ Number::Decimal(_)) => {
            Promoted::Decimals(a.to_decimal(), b.to_decimal())
        }
        (a, b) => Promoted::Doubles(a.to_f64(), b.to_f64()),
    })
}

/// Returns `a + b`; `None` if either is not a number, or on an overflow that is refused.
pub fn add(a: Value<'_>, b: Value<'_>, overflow: OnOverflow) -> Option<Value<'static>> {
    let operation =
        Operation { ints: i64::checked_add, doubles: |a, b| a + b, decimals: Decimal128::add };
    operation.apply(a, b, overflow)
}

/// Returns `a - b`; `None` if either is not a number, or on an overflow that is refused.
pub fn subtract(a: Value<'_>, b: Value<'_>, overflow: OnOverflow) -> Option<Value<'static>> {
    let operation =
        Operation { ints: i64::checked_sub, doubles: |a, b| a - b, decimals: Decimal128::subtract };
    operation.apply(a, b, overflow)
}

/// Returns `a * b`; `None` if either is not a number, or on an overflow that is refused.
pub fn multiply(a: Value<'_>, b: Value<'_>, overflow: OnOverflow) -> Option<Value<'static>> {
    let operation =
        Operation { ints: i64::checked_mul, doubles: |a, b| a * b, decimals: Decimal128::multiply };
    operation.apply(a, b, overflow)
}

struct Operation {
    ints: fn(i64, i64) -> Option<i64>,
    doubles: fn(f64, f64) -> f64,
    decimals: fn(Decimal128, Decimal128) -> Decimal128,
}

impl Operation {
    fn apply(&self, a: Value<'_>, b: Value<'_>, overflow: OnOverflow) -> Option<Value<'static>> {
        Some(match promote(a, b)? {
            Promoted::Ints(a, b) => {
                let result = (self.ints)(a as i64, b as i64)?;
                i32::try_from(result).map_or(Value::Int64(result), Value::Int32)
            }
            Promoted::Longs(a, b) => match ((self.ints)(a, b), overflow) {
                (Some(result), _) => Value::Int64(result),
                (None, OnOverflow::Double) => Value::Double((self.doubles)(a as f64, b as f64)),
                (None, OnOverflow::Refuse) => return None,
            },
            Promoted::Doubles(a, b) => Value::Double((self.doubles)(a, b)),
            Promoted::Decimals(a, b) => Value::Decimal((self.decimals)(a, b)),
        })
    }
}

impl Number {
    /// Returns the nearest double.
    #[inline]
    pub fn to_f64(self) -> f64 {
        match self {
            Number::Int(number) => number as f64,
            Number::Double(number) => number,
            Number::Decimal(decimal) => decimal.to_f64(),
        }
    }

    /// Returns the number as a decimal. A double is rounded to 15 digits.
    pub fn to_decimal(self) -> Decimal128 {
        match self {
            Number::Int(number) => Decimal128::from_i64(number),
            Number::Double(number) => Decimal128::from_f64(number),
            Number::Decimal(decimal) => decimal,
        }
    }

    /// Truncates to a long (5.9 is 5). Returns `None` for numbers out of range and for NaN.
    pub fn to_i64_truncated(self) -> Option<i64> {
        match self {
            Number::Int(number) => Some(number),
            Number::Double(number) => super::exact_double_i64(number.trunc()),
            Number::Decimal(decimal) => decimal.to_i64_truncated(),
        }
    }
}

impl<'a> Value<'a> {
    /// Returns the long that equals this number, if there is one (5, 5.0 and NumberDecimal("5.0")
    /// give 5; 5.5 gives none). Commands accept such values for options like `limit` and
    /// `batchSize`.
    pub fn exact_i64(&self) -> Option<i64> {
        self.as_number()?.exact_i64()
    }

    /// Returns the nearest double, if the value is a number.
    #[inline]
    pub fn to_f64(&self) -> Option<f64> {
        Some(self.as_number()?.to_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identical;

    fn same(result: Option<Value<'_>>, expected: Value<'_>) {
        assert!(
            result.is_some_and(|result| identical(result, expected)),
            "{result:?} {expected:?}"
        );
    }

    #[test]
    fn promotion() {
        use OnOverflow::{Double, Refuse};
        same(add(Value::Int32(1), Value::Int32(2), Double), Value::Int32(3));
        let large = Value::Int32(i32::MAX);
        same(add(large, Value::Int32(1), Refuse), Value::Int64(1 << 31));
        same(add(Value::Int64(1), Value::Int32(2), Double), Value::Int64(3));
        let largest = Value::Int64(i64::MAX);
        same(add(largest, Value::Int32(1), Double), Value::Double(9223372036854775808.0));
        assert!(add(largest, Value::Int32(1), Refuse).is_none());
        same(multiply(large, large, Refuse), Value::Int64(4611686014132420609));
        same(subtract(Value::Int32(1), Value::Double(0.5), Double), Value::Double(0.5));
        let decimal = Value::Decimal(Decimal128::parse("1.10").unwrap());
        let sum = Value::Decimal(Decimal128::parse("2.10").unwrap());
        same(add(decimal, Value::Int32(1), Double), sum);
        assert!(add(Value::Int32(1), Value::Null, Double).is_none());
    }

    #[test]
    fn conversions() {
        assert_eq!(Value::Double(5.0).exact_i64(), Some(5));
        assert_eq!(Value::Double(5.5).exact_i64(), None);
        assert_eq!(Value::String("5").exact_i64(), None);
        assert_eq!(Number::Double(-5.9).to_i64_truncated(), Some(-5));
        assert_eq!(Number::Double(1e19).to_i64_truncated(), None);
        assert_eq!(Number::Double(f64::NAN).to_i64_truncated(), None);
    }
}
