//! `$covariancePop`, `$covarianceSamp`: the covariance of two numbers (Welford's method for pairs).

use super::contents::{Contents, Seen};
use super::sums::RemovableSum;
use crate::context::EvalContext;
use crate::expression::{difference, product, quotient};
use quire_document::{Decimal128, Value};
use quire_error::Result;

/// The covariance of the pairs of numbers in a window. Other values are ignored.
#[derive(Debug)]
pub(super) struct Covariance {
    sample: bool,
    /// The number of pairs of finite numbers.
    count: i64,
    x: RemovableSum,
    y: RemovableSum,
    /// The products of the distances from the means. An infinity or NaN stands for a pair with one.
    products: RemovableSum,
}

impl Covariance {
    pub fn new(sample: bool) -> Self {
        let [x, y, products] = [const { None }; 3].map(Option::unwrap_or_default);
        Covariance { sample, count: 0, x, y, products }
    }
}

/// Returns the distance of a number from the mean of `count` numbers.
fn distance(sum: &RemovableSum, count: i64, number: Value<'_>) -> Result<Value<'static>> {
    difference(number, quotient(sum.value(), Value::Int64(count))?)
}

/// Returns the two numbers of a pair.
fn pair(value: Option<Value<'_>>) -> Option<[Value<'_>; 2]> {
    let pair = <[Value<'_>; 2]>::try_from(value?.as_array()?.to_vec()).ok()?;
    pair.iter().all(Value::is_number).then_some(pair)
}

/// Returns the infinity or NaN of a pair; `None` if both numbers are finite. It is a decimal if one of
/// them is a decimal other than NaN.
fn special(pair: [Value<'_>; 2]) -> Option<Value<'static>> {
    let doubles = pair.map(|number| match number {
        // A finite decimal may be beyond the range of doubles.
        Value::Decimal(number) if number.is_finite() => 0.0,
        number => number.to_f64().unwrap_or(0.0),
    });
    let specials = doubles.into_iter().filter(|number| !number.is_finite());
    let special = specials.reduce(|a, b| if a == b { a } else { f64::NAN })?;
    let is_decimal = |number: &Value<'_>| match number {
        Value::Decimal(number) => !number.is_nan(),
        _ => false,
    };
    Some(match pair.iter().any(is_decimal) {
        true => Value::Decimal(Decimal128::from_f64(special)),
        false => Value::Double(special),
    })
}

impl Contents for Covariance {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        let Some([x, y]) = pair(value) else { return Ok(()) };
        if let Some(special) = special([x, y]) {
            self.products.add(special);
            return Ok(());
        }
        let before = match self.count {
            0 => None,
            count => Some(distance(&self.x, count, x)?),
        };
        self.count += 1;
        self.x.add(x);
        self.y.add(y);
        // The first pair has no distance from a mean and adds nothing, not even its type.
        if let Some(before) = before {
            self.products.add(product(before, distance(&self.y, self.count, y)?));
        }
        Ok(())
    }

    fn remove(&mut self, value: Option<Value<'_>>) -> Result<()> {
        let Some([x, y]) = pair(value) else { return Ok(()) };
        if let Some(special) = special([x, y]) {
            self.products.remove(special);
            return Ok(());
        }
        if self.count <= 1 {
            *self = Covariance::new(self.sample);
            return Ok(());
        }
        let from_mean = distance(&self.y, self.count, y)?;
        self.count -= 1;
        self.x.remove(x);
        self.y.remove(y);
        self.products.remove(product(distance(&self.x, self.count, x)?, from_mean));
        Ok(())
    }

    fn result<'a>(&self, _: Seen<'_>, _: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        let divisor = self.count - i64::from(self.sample);
        Ok(Some(match divisor {
            ..=0 => Value::Null,
            _ if self.count == 1 => Value::Double(0.0),
            _ => quotient(self.products.value(), Value::Double(divisor as f64))?,
        }))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}
