//! Trigonometric functions in radians, of doubles and of decimals with 34 digits.

use super::arithmetic::{as_decimal, as_double};
use super::operator::{Arity, Call, Operator};
use super::rounding::numeric_argument;
use crate::context::EvalContext;
use quire_document::{Decimal128, Value};
use quire_error::{Error, Result};

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] = &[
    Operator::function("$sin", Arity::Exactly(1), |call, cx| {
        run(call, cx, Decimal128::sin, f64::sin, FINITE)
    })
    .doc("The sine.")
    .since("4.2"),
    Operator::function("$cos", Arity::Exactly(1), |call, cx| {
        run(call, cx, Decimal128::cos, f64::cos, FINITE)
    })
    .doc("The cosine.")
    .since("4.2"),
    Operator::function("$tan", Arity::Exactly(1), |call, cx| {
        run(call, cx, Decimal128::tan, f64::tan, FINITE)
    })
    .doc("The tangent.")
    .since("4.2"),
    Operator::function("$asin", Arity::Exactly(1), |call, cx| {
        run(call, cx, Decimal128::asin, f64::asin, UNIT)
    })
    .doc("The inverse sine.")
    .since("4.2"),
    Operator::function("$acos", Arity::Exactly(1), |call, cx| {
        run(call, cx, Decimal128::acos, f64::acos, UNIT)
    })
    .doc("The inverse cosine.")
    .since("4.2"),
    Operator::function("$atan", Arity::Exactly(1), |call, cx| {
        run(call, cx, Decimal128::atan, f64::atan, ANY)
    })
    .doc("The inverse tangent.")
    .since("4.2"),
    Operator::function("$atan2", Arity::Exactly(2), atan2)
        .doc("The angle of the point (x, y), given as y, x.")
        .since("4.2"),
    Operator::function("$sinh", Arity::Exactly(1), |call, cx| {
        run(call, cx, Decimal128::sinh, f64::sinh, ANY)
    })
    .doc("The hyperbolic sine.")
    .since("4.2"),
    Operator::function("$cosh", Arity::Exactly(1), |call, cx| {
        run(call, cx, Decimal128::cosh, f64::cosh, ANY)
    })
    .doc("The hyperbolic cosine.")
    .since("4.2"),
    Operator::function("$tanh", Arity::Exactly(1), |call, cx| {
        run(call, cx, Decimal128::tanh, f64::tanh, ANY)
    })
    .doc("The hyperbolic tangent.")
    .since("4.2"),
    Operator::function("$asinh", Arity::Exactly(1), |call, cx| {
        run(call, cx, Decimal128::asinh, f64::asinh, ANY)
    })
    .doc("The inverse hyperbolic sine.")
    .since("4.2"),
    Operator::function("$acosh", Arity::Exactly(1), |call, cx| {
        run(call, cx, Decimal128::acosh, f64::acosh, FROM_ONE)
    })
    .doc("The inverse hyperbolic cosine.")
    .since("4.2"),
    Operator::function("$atanh", Arity::Exactly(1), |call, cx| {
        run(call, cx, Decimal128::atanh, f64::atanh, UNIT)
    })
    .doc("The inverse hyperbolic tangent.")
    .since("4.2"),
    Operator::function("$degreesToRadians", Arity::Exactly(1), |call, cx| {
        scale(call, cx, f64::to_radians, |number, half_turn| {
            number.multiply(Decimal128::PI).divide(half_turn)
        })
    })
    .doc("Degrees as radians.")
    .since("4.2"),
    Operator::function("$radiansToDegrees", Arity::Exactly(1), |call, cx| {
        scale(call, cx, f64::to_degrees, |number, half_turn| {
            number.multiply(half_turn).divide(Decimal128::PI)
        })
    })
    .doc("Radians as degrees.")
    .since("4.2"),
];

/// The domain of a function: its bounds, and whether they are included.
struct Domain {
    low: f64,
    high: f64,
    closed: bool,
}

const ANY: Domain = Domain { low: f64::NEG_INFINITY, high: f64::INFINITY, closed: true };
const FINITE: Domain = Domain { low: f64::NEG_INFINITY, high: f64::INFINITY, closed: false };
const UNIT: Domain = Domain { low: -1.0, high: 1.0, closed: true };
const FROM_ONE: Domain = Domain { low: 1.0, high: f64::INFINITY, closed: true };

impl Domain {
    fn contains(&self, number: f64) -> bool {
        let inside = number > self.low && number < self.high;
        number.is_nan() || inside || (self.closed && (number == self.low || number == self.high))
    }
}

fn run<'a>(
    call: &'a Call,
    cx: &EvalContext<'a>,
    of_decimal: fn(Decimal128) -> Decimal128,
    of_double: fn(f64) -> f64,
    domain: Domain,
) -> Result<Option<Value<'a>>> {
    let Some(value) = numeric_argument(call, cx)? else { return Ok(Some(Value::Null)) };
    if !domain.contains(as_double(value)) {
        let (open, close) = if domain.closed { ('[', ']') } else { ('(', ')') };
        let text = format!(
            "cannot apply {} to {}, value must be in {open}{},{}{close}",
            call.name(),
            as_double(value),
            domain.low,
            domain.high
        );
        return Err(Error::location(50989, text));
    }
    Ok(Some(match value {
        Value::Decimal(number) => Value::Decimal(of_decimal(number)),
        other => Value::Double(of_double(as_double(other))),
    }))
}

fn atan2<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    // A null or a wrong first argument decides before the second is evaluated.
    let Some(y) = coordinate(call.eval(0, cx)?, 51044)? else { return Ok(Some(Value::Null)) };
    let Some(x) = coordinate(call.eval(1, cx)?, 51045)? else { return Ok(Some(Value::Null)) };
    Ok(Some(match (y, x) {
        (Value::Decimal(_), _) | (_, Value::Decimal(_)) => {
            Value::Decimal(as_decimal(y).atan2(as_decimal(x)))
        }
        _ => Value::Double(as_double(y).atan2(as_double(x))),
    }))
}

/// Returns a number; `None` for null and missing. Fails with `code` for other types.
fn coordinate(value: Option<Value<'_>>, code: i32) -> Result<Option<Value<'_>>> {
    match value {
        None | Some(Value::Null | Value::Undefined) => Ok(None),
        Some(value) if value.is_number() => Ok(Some(value)),
        Some(other) => {
            let text = format!("$atan2 only supports numeric types, not {}", other.type_name());
            Err(Error::location(code, text))
        }
    }
}

fn scale<'a>(
    call: &'a Call,
    cx: &EvalContext<'a>,
    of_double: fn(f64) -> f64,
    of_decimal: fn(Decimal128, Decimal128) -> Decimal128,
) -> Result<Option<Value<'a>>> {
    Ok(Some(match numeric_argument(call, cx)? {
        None => Value::Null,
        Some(Value::Decimal(number)) => {
            Value::Decimal(of_decimal(number, Decimal128::from_i64(180)))
        }
        Some(value) => Value::Double(of_double(as_double(value))),
    }))
}
