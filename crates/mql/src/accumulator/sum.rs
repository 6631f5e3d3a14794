//! `$sum`: the sum in the widest type of its numbers; everything else counts nothing.

use super::State;
use super::registry::Accumulator;
use super::summation::DoubleDouble;
use crate::context::EvalContext;
use quire_document::{Decimal128, Value, ValueBuf, array};
use quire_error::Result;

pub(super) const SUM: Accumulator =
    Accumulator::unary("$sum", "1.0", "The sum of the numbers, in their widest type.", |_| {
        Box::new(Sum::default())
    });

/// The sum of numbers of all types.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    /// Ints and longs, exactly.
    integers: i128,
    doubles: DoubleDouble,
    decimals: Option<Decimal128>,
    widest: Widest,
}

/// The widest type seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Widest {
    #[default]
    Int,
    Long,
    Double,
}

impl Sum {
    /// Adds a value if it is a number.
    #[inline]
    pub fn push(&mut self, value: Value<'_>) {
        match value {
            Value::Int32(number) => self.integers += i128::from(number),
            Value::Int64(number) => {
                self.widest = self.widest.max(Widest::Long);
                self.integers += i128::from(number);
            }
            Value::Double(number) => {
                self.widest = Widest::Double;
                self.doubles.add(number);
            }
            Value::Decimal(number) => {
                self.decimals = Some(add_decimal(self.decimals, number));
            }
            _ => {}
        }
    }

    /// All but the decimals.
    fn binary(&self) -> DoubleDouble {
        let mut total = self.doubles;
        let rounded = self.integers as f64;
        total.add(rounded);
        total.add((self.integers - rounded as i128) as f64);
        total
    }

    fn decimal(&self, decimals: Decimal128) -> Decimal128 {
        if decimals.is_nan() {
            return decimals;
        }
        match self.widest {
            Widest::Double => decimals.add(self.binary().to_decimal()),
            _ => match i64::try_from(self.integers) {
                Ok(integers) => decimals.add(Decimal128::from_i64(integers)),
                Err(_) => decimals.add(self.binary().to_decimal()),
            },
        }
    }

    /// The sum.
    pub fn value(&self) -> Value<'static> {
        if let Some(decimals) = self.decimals {
            return Value::Decimal(self.decimal(decimals));
        }
        if self.widest == Widest::Double {
            return Value::Double(self.binary().value());
        }
        match (i32::try_from(self.integers), i64::try_from(self.integers)) {
            (Ok(int), _) if self.widest == Widest::Int => Value::Int32(int),
            (_, Ok(long)) => Value::Int64(long),
            _ => Value::Double(self.integers as f64),
        }
    }

    pub(super) fn to_saved(&self) -> ValueBuf {
        let [sum, addend, special] = self.doubles.to_raw();
        let (high, low) = ((self.integers >> 64) as i64, self.integers as i64);
        let widest = self.widest as i32;
        let decimals = self.decimals.map_or(Value::Null, Value::Decimal);
        array![sum, addend, special, high, low, widest, decimals].into()
    }

    pub(super) fn merge_saved(&mut self, saved: Value<'_>) {
        let parts: Vec<Value<'_>> = super::elements(saved).collect();
        let [
            Value::Double(sum),
            Value::Double(addend),
            Value::Double(special),
            Value::Int64(high),
            Value::Int64(low),
            widest,
            decimals,
        ] = parts[..]
        else {
            return;
        };
        self.doubles.merge(DoubleDouble::from_raw([sum, addend, special]));
        self.integers += i128::from(high) << 64 | i128::from(low as u64);
        self.widest = self.widest.max(match widest {
            Value::Int32(1) => Widest::Long,
            Value::Int32(2) => Widest::Double,
            _ => Widest::Int,
        });
        if let Value::Decimal(number) = decimals {
            self.decimals = Some(add_decimal(self.decimals, number));
        }
    }
}

/// The sum; the first NaN stays as it is, with its sign.
pub(super) fn add_decimal(total: Option<Decimal128>, number: Decimal128) -> Decimal128 {
    match total {
        Some(total) if total.is_nan() => total,
        _ if number.is_nan() => number,
        total => total.unwrap_or(Decimal128::ZERO).add(number),
    }
}

impl State for Sum {
    #[inline]
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        if let Some(value) = value {
            self.push(value);
        }
        Ok(())
    }

    fn add_f64(&mut self, number: f64) -> Result<()> {
        self.push(Value::Double(number));
        Ok(())
    }

    fn result<'a>(&self, _: &EvalContext<'a>) -> Result<Value<'a>> {
        Ok(self.value())
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }

    fn save(&self) -> ValueBuf {
        self.to_saved()
    }

    fn merge(&mut self, saved: Value<'_>) -> Result<()> {
        self.merge_saved(saved);
        Ok(())
    }
}
