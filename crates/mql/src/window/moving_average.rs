//! `$expMovingAvg`: an average in which newer values have more weight.

use super::contents::{Contents, Seen};
use crate::context::EvalContext;
use quire_document::{Decimal128, Value};
use quire_error::Result;

/// The exponential moving average of the numbers so far. It is a decimal from the first decimal on.
/// Values that are not numbers do not change it.
#[derive(Debug)]
pub(super) struct MovingAverage {
    /// The weight of the newest number, between 0 and 1.
    alpha: Decimal128,
    average: Option<Average>,
}

#[derive(Clone, Copy, Debug)]
enum Average {
    Double(f64),
    Decimal(Decimal128),
}

impl MovingAverage {
    pub fn new(alpha: Decimal128) -> Self {
        MovingAverage { alpha, average: None }
    }
}

impl Contents for MovingAverage {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        let Some((value, number)) = value.and_then(|value| Some((value, value.to_f64()?))) else {
            return Ok(());
        };
        let exact = match value {
            Value::Decimal(number) => number,
            Value::Int64(number) => Decimal128::from_i64(number),
            _ => Decimal128::from_f64(number),
        };
        let is_decimal = matches!(value, Value::Decimal(_));
        self.average = Some(match self.average {
            None if is_decimal => Average::Decimal(exact),
            None => Average::Double(number),
            Some(Average::Double(average)) if !is_decimal => {
                let alpha = self.alpha.to_f64();
                Average::Double(number * alpha + average * (1.0 - alpha))
            }
            Some(average) => {
                let average = match average {
                    Average::Double(average) => Decimal128::from_f64(average),
                    Average::Decimal(average) => average,
                };
                let rest = Decimal128::ONE.subtract(self.alpha);
                Average::Decimal(exact.multiply(self.alpha).add(average.multiply(rest)))
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
            Some(Average::Double(average)) => Value::Double(average),
            Some(Average::Decimal(average)) => Value::Decimal(average),
        }))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}
