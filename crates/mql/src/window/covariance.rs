//! `$covariancePop`, `$covarianceSamp`: the covariance of two numbers (Welford's method for pairs).

use super::contents::{Contents, Seen};
use super::sums::RemovableSum;
use crate::context::EvalContext;
use crate::expression::{difference, product, quotient, total};
use quire_document::Value;
use quire_error::Result;

/// The covariance of the pairs of numbers in a window. Other values are ignored.
#[derive(Debug)]
pub(super) struct Covariance {
    sample: bool,
    count: i64,
    x: RemovableSum,
    y: RemovableSum,
    products: RemovableSum,
    /// Infinities and NaN in the pairs, which the sums do not include.
    special: RemovableSum,
}

impl Covariance {
    pub fn new(sample: bool) -> Self {
        let [x, y, products, special] = [const { None }; 4].map(Option::unwrap_or_default);
        Covariance { sample, count: 0, x, y, products, special }
    }

    /// Returns the distance of a number from the mean of the finite numbers.
    fn distance(&self, sum: &RemovableSum, number: Value<'_>) -> Result<Value<'static>> {
        match self.count {
            0 => Ok(total(number, Value::Double(0.0))),
            count => difference(number, quotient(sum.value(), Value::Int64(count))?),
        }
    }
}

/// Returns the two numbers of a pair.
fn pair(value: Option<Value<'_>>) -> Option<[Value<'_>; 2]> {
    let pair = <[Value<'_>; 2]>::try_from(value?.as_array()?.to_vec()).ok()?;
    pair.iter().all(Value::is_number).then_some(pair)
}

fn is_finite(number: &Value<'_>) -> bool {
    match number {
        Value::Decimal(number) => !number.is_nan() && !number.is_infinite(),
        Value::Double(number) => number.is_finite(),
        _ => true,
    }
}

impl Contents for Covariance {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        let Some([x, y]) = pair(value) else { return Ok(()) };
        if ![x, y].iter().all(is_finite) {
            [x, y].iter().filter(|number| !is_finite(number)).for_each(|n| self.special.add(*n));
            return Ok(());
        }
        let distance = self.distance(&self.x, x)?;
        self.count += 1;
        self.x.add(x);
        self.y.add(y);
        let product = product(distance, self.distance(&self.y, y)?);
        self.products.add(product);
        Ok(())
    }

    fn remove(&mut self, value: Option<Value<'_>>) -> Result<()> {
        let Some([x, y]) = pair(value) else { return Ok(()) };
        if ![x, y].iter().all(is_finite) {
            let special = [x, y].into_iter().filter(|number| !is_finite(number));
            special.for_each(|number| self.special.remove(number));
            return Ok(());
        }
        let from_mean = self.distance(&self.y, y)?;
        self.count -= 1;
        self.x.remove(x);
        self.y.remove(y);
        let product = product(self.distance(&self.x, x)?, from_mean);
        if self.count == 0 {
            self.products = RemovableSum::default();
        } else {
            self.products.remove(product);
        }
        Ok(())
    }

    fn result<'a>(&self, _: Seen<'_>, _: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        let divisor = self.count - i64::from(self.sample);
        Ok(Some(match divisor {
            ..=0 => Value::Null,
            _ if self.count == 1 => Value::Double(0.0),
            _ if !self.special.is_finite() => self.special.value(),
            _ => quotient(self.products.value(), Value::Double(divisor as f64))?,
        }))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}
