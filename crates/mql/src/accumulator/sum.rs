//! `$sum`: the sum in the widest type of its numbers; everything else counts nothing.

use super::registry::Accumulator;
use super::running::Running;
use super::summation::Mixed;
use super::table::States;
use super::{Collation, Table};
use quire_document::{ArrayBuf, Decimal128, Value};

pub(super) const SUM: Accumulator =
    Accumulator::unary("$sum", "1.0", "The sum of the numbers, in their widest type.", |_| {
        Box::new(Sum::default())
    })
    .with_table(table);

/// Sums side by side.
pub(super) fn table(_: Collation) -> Box<dyn Table> {
    Box::new(States::new(|_| Sum::default()))
}

/// The sum of numbers of all types.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    total: Mixed,
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
            Value::Int32(number) => self.total.whole += i128::from(number),
            Value::Int64(number) => {
                self.widest = self.widest.max(Widest::Long);
                self.total.whole += i128::from(number);
            }
            Value::Double(number) => {
                self.widest = Widest::Double;
                self.total.doubles.add(number);
            }
            Value::Decimal(number) => self.total.add_decimal(number),
            _ => {}
        }
    }

    fn decimal(&self, decimals: Decimal128) -> Decimal128 {
        if decimals.is_nan() {
            return decimals;
        }
        match i64::try_from(self.total.whole) {
            Ok(whole) if self.widest != Widest::Double => decimals.add(Decimal128::from_i64(whole)),
            _ => decimals.add(self.total.binary().to_decimal()),
        }
    }

    /// The sum.
    pub fn value(&self) -> Value<'static> {
        if let Some(decimals) = self.total.decimals {
            return Value::Decimal(self.decimal(decimals));
        }
        if self.widest == Widest::Double {
            return Value::Double(self.total.binary().value());
        }
        let whole = self.total.whole;
        match (i32::try_from(whole), i64::try_from(whole)) {
            (Ok(int), _) if self.widest == Widest::Int => Value::Int32(int),
            (_, Ok(long)) => Value::Int64(long),
            _ => Value::Double(whole as f64),
        }
    }
}

impl Running for Sum {
    #[inline]
    fn take(&mut self, value: Value<'_>) {
        self.push(value);
    }

    fn current(&self) -> Value<'static> {
        self.value()
    }

    fn parts(&self) -> ArrayBuf {
        let widest = Value::Int32(self.widest as i32);
        std::iter::once(widest).chain(self.total.save()).collect()
    }

    fn join(&mut self, parts: &[Value<'_>]) {
        let [Value::Int32(widest), total @ ..] = parts else { return };
        self.total.merge(total);
        self.widest = self.widest.max(match widest {
            0 => Widest::Int,
            1 => Widest::Long,
            _ => Widest::Double,
        });
    }
}
