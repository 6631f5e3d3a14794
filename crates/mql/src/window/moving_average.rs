//! `$expMovingAvg`: an average in which newer values have more weight.

use super::contents::{Contents, Seen};
use crate::context::EvalContext;
use quire_document::{Decimal128, Value};
use quire_error::Result;

/// The exponential moving average of the numbers so far, computed in decimals. The result is a double
/// until the first decimal. Values that are not numbers do not change it.
#[derive(Debug)]
pub(super) struct MovingAverage {
    /// The weight of the newest number, between 0 and 1.
    alpha: Decimal128,
    average: Option<Decimal128>,
    /// True if one of the numbers was a decimal.
    is_decimal: bool,
}

impl MovingAverage {
    pub fn new(alpha: Decimal128) -> Self {
        MovingAverage { alpha, average: None, is_decimal: false }
    }
}

impl Contents for MovingAverage {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        let Some((value, number)) = value.and_then(|value| Some((value, value.as_number()?)))
        else {
            return Ok(());
        };
        self.is_decimal |= matches!(value, Value::Decimal(_));
        let number = number.to_decimal();
        self.average = Some(match self.average {
            None => number,
            Some(average) => {
                let rest = Decimal128::ONE.subtract(self.alpha);
                number.multiply(self.alpha).add(average.multiply(rest))
            }
        });
        Ok(())
    }

    fn remove(&mut self, _: Option<Value<'_>>) -> Result<()> {
        Ok(())
    }

    fn result<'a>(&self, _: Seen<'_>, _: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        Ok(Some(match self.average {
            None => Value::Null,
            Some(average) if self.is_decimal => Value::Decimal(average),
            Some(average) => Value::Double(average.to_f64()),
        }))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}
