//! `$add`, `$subtract`, `$multiply`, `$divide`, `$mod`.
//!
//! The result has the widest type of the arguments. An int that overflows becomes a long, and a
//! long a double; with a decimal the result is a decimal. With a null or missing argument the
//! result is null.

use super::array_access::type_name;
use super::operator::{Arity, Call, Operator};
use crate::context::EvalContext;
use quire_document::decimal::Rounding;
use quire_document::number::{self, OnOverflow};
use quire_document::{Decimal128, Value};
use quire_error::{Error, ErrorCode, Result};

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] = &[
    Operator::function("$add", Arity::Any, add)
        .doc("The sum; if one argument is a date, that date plus milliseconds."),
    Operator::function("$subtract", Arity::Exactly(2), subtract)
        .doc("The difference; in milliseconds for two dates."),
    Operator::function("$multiply", Arity::Any, multiply).doc("The product."),
    Operator::function("$divide", Arity::Exactly(2), divide).doc("The quotient, never truncated."),
    Operator::function("$mod", Arity::Exactly(2), modulo)
        .doc("The remainder, with the sign of the dividend."),
];

/// Returns the number as a decimal, a double with 15 digits. Returns zero for other types.
pub(super) fn as_decimal(value: Value<'_>) -> Decimal128 {
    match value {
        Value::Int32(number) => Decimal128::from_i64(number.into()),
        Value::Int64(number) => Decimal128::from_i64(number),
        Value::Double(number) => Decimal128::from_f64(number),
        Value::Decimal(number) => number,
        _ => Decimal128::ZERO,
    }
}

/// Returns the number as a double. Returns NaN for other types.
pub(super) fn as_double(value: Value<'_>) -> f64 {
    match value {
        Value::Int32(number) => number.into(),
        Value::Int64(number) => number as f64,
        Value::Double(number) => number,
        Value::Decimal(number) => number.to_f64(),
        _ => f64::NAN,
    }
}

/// Returns an int if the number fits, otherwise a long.
pub(super) fn int_or_long<'a>(number: i64) -> Value<'a> {
    i32::try_from(number).map_or(Value::Int64(number), Value::Int32)
}

/// A sum or product so far, in the widest type of the numbers so far.
#[derive(Clone, Copy)]
enum RunningTotal {
    Int(i64),
    Long(i64),
    Double(f64),
    Decimal(Decimal128),
}

impl RunningTotal {
    fn value<'a>(self) -> Value<'a> {
        match self {
            RunningTotal::Int(number) => int_or_long(number),
            RunningTotal::Long(number) => Value::Int64(number),
            RunningTotal::Double(number) => Value::Double(number),
            RunningTotal::Decimal(number) => Value::Decimal(number),
        }
    }

    fn as_decimal(self) -> Decimal128 {
        match self {
            RunningTotal::Int(number) | RunningTotal::Long(number) => Decimal128::from_i64(number),
            RunningTotal::Double(number) => Decimal128::from_f64(number),
            RunningTotal::Decimal(number) => number,
        }
    }

    fn as_double(self) -> f64 {
        match self {
            RunningTotal::Int(number) | RunningTotal::Long(number) => number as f64,
            RunningTotal::Double(number) => number,
            RunningTotal::Decimal(number) => number.to_f64(),
        }
    }

    fn add(self, value: Value<'_>) -> RunningTotal {
        let (total, number, long) = match (self, value) {
            (RunningTotal::Decimal(_), _) | (_, Value::Decimal(_)) => {
                return RunningTotal::Decimal(self.as_decimal().add(as_decimal(value)));
            }
            (RunningTotal::Double(_), _) | (_, Value::Double(_)) => {
                return RunningTotal::Double(self.as_double() + as_double(value));
            }
            (RunningTotal::Int(total), Value::Int32(number)) => (total, i64::from(number), false),
            (RunningTotal::Int(total), Value::Int64(number)) => (total, number, true),
            (RunningTotal::Long(total), Value::Int32(number)) => (total, i64::from(number), true),
            (RunningTotal::Long(total), Value::Int64(number)) => (total, number, true),
            _ => return self,
        };
        match total.checked_add(number) {
            Some(sum) if long => RunningTotal::Long(sum),
            Some(sum) => RunningTotal::Int(sum),
            None => RunningTotal::Double(total as f64 + number as f64),
        }
    }
}

fn add<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let (mut total, mut date) = (RunningTotal::Int(0), None);
    for arg in &call.args {
        match (arg.eval(cx)?, date) {
            (None | Some(Value::Null | Value::Undefined), _) => return Ok(Some(Value::Null)),
            (Some(Value::Date(_)), Some(_)) => {
                return Err(Error::location(16612, "only one date allowed in an $add expression"));
            }
            (Some(Value::Date(ms)), None) => date = Some(date_sum(ms, total.value())?),
            // Behind the date, each number is rounded by itself.
            (Some(value), Some(ms)) if value.is_number() => date = Some(date_sum(ms, value)?),
            (Some(value), None) if value.is_number() => total = total.add(value),
            (Some(other), _) => {
                let text =
                    format!("$add only supports numeric or date types, not {}", other.type_name());
                return Err(Error::type_mismatch(text));
            }
        }
    }
    Ok(Some(date.map_or_else(|| total.value(), Value::Date)))
}

/// Returns a date plus a number, which is rounded to milliseconds.
fn date_sum(date: i64, number: Value<'_>) -> Result<i64> {
    rounded_ms(number).and_then(|ms| date.checked_add(ms)).ok_or_else(|| date_overflow("$add"))
}

/// Rounds a number to milliseconds; `None` if they do not fit in a long.
fn rounded_ms(number: Value<'_>) -> Option<i64> {
    match number {
        Value::Int32(number) => Some(number.into()),
        Value::Int64(number) => Some(number),
        Value::Double(number) => round_to_i64(number),
        Value::Decimal(number) => decimal_to_i64(number),
        _ => None,
    }
}

fn date_overflow(operator: &str) -> Error {
    Error::new(ErrorCode::Overflow, format!("date overflow in {operator}"))
}

/// Rounds to the nearest long, half away from zero; `None` for a number out of range.
fn round_to_i64(number: f64) -> Option<i64> {
    const TWO_63: f64 = 9_223_372_036_854_775_808.0;
    (-TWO_63..TWO_63).contains(&number).then(|| number.round() as i64)
}

fn decimal_to_i64(number: Decimal128) -> Option<i64> {
    number.to_i64_rounded(Rounding::HalfEven)
}

fn subtract<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let (left, right) = (call.eval(0, cx)?, call.eval(1, cx)?);
    let (Some(left), Some(right)) = (left, right) else { return Ok(Some(Value::Null)) };
    difference(left, right).map(Some)
}

/// Returns the result of `$subtract` for two values.
pub(crate) fn difference<'a>(left: Value<'_>, right: Value<'_>) -> Result<Value<'a>> {
    if left.is_nullish() || right.is_nullish() {
        return Ok(Value::Null);
    }
    let difference = match (left, right) {
        (Value::Date(left), right) => return subtract_from_date(left, right),
        (left, right) if !left.is_number() || !right.is_number() => {
            return Err(cannot_subtract(left, right));
        }
        (Value::Decimal(_), _) | (_, Value::Decimal(_)) => {
            Value::Decimal(as_decimal(left).subtract(as_decimal(right)))
        }
        (Value::Int32(left), Value::Int32(right)) => {
            int_or_long(i64::from(left) - i64::from(right))
        }
        (left, right) => match (long(left), long(right)) {
            (Some(a), Some(b)) => match a.checked_sub(b) {
                Some(difference) => Value::Int64(difference),
                None => Value::Double(a as f64 - b as f64),
            },
            _ => Value::Double(as_double(left) - as_double(right)),
        },
    };
    Ok(difference)
}

/// Returns the sum of two numbers; null if either is not a number.
pub(crate) fn total(left: Value<'_>, right: Value<'_>) -> Value<'static> {
    number::add(left, right, OnOverflow::Double).unwrap_or(Value::Null)
}

/// Returns the product of two numbers; null if either is not a number.
pub(crate) fn product(left: Value<'_>, right: Value<'_>) -> Value<'static> {
    number::multiply(left, right, OnOverflow::Double).unwrap_or(Value::Null)
}

/// Returns the value of an int or a long.
fn long(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Int32(number) => Some(number.into()),
        Value::Int64(number) => Some(number),
        _ => None,
    }
}

fn cannot_subtract(left: Value<'_>, right: Value<'_>) -> Error {
    let text = format!("can't $subtract {} from {}", right.type_name(), left.type_name());
    Error::type_mismatch(text)
}

fn subtract_from_date<'a>(left: i64, right: Value<'_>) -> Result<Value<'a>> {
    let overflow = || date_overflow("$subtract");
    let ms = match right {
        Value::Date(right) => {
            return left.checked_sub(right).map(Value::Int64).ok_or_else(overflow);
        }
        number if number.is_number() => rounded_ms(number),
        other => return Err(cannot_subtract(Value::Date(left), other)),
    };
    ms.and_then(|ms| left.checked_sub(ms)).map(Value::Date).ok_or_else(overflow)
}

fn multiply<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let mut product = Product { running: RunningTotal::Int(1), double: 1.0 };
    for arg in &call.args {
        match arg.eval(cx)? {
            None | Some(Value::Null | Value::Undefined) => return Ok(Some(Value::Null)),
            Some(value) if value.is_number() => product.multiply(value),
            Some(other) => {
                let text =
                    format!("$multiply only supports numeric types, not {}", other.type_name());
                return Err(Error::type_mismatch(text));
            }
        }
    }
    Ok(Some(product.running.value()))
}

/// A product that is also computed as a double, so that after an overflow of longs the result
/// equals that of doubles.
struct Product {
    running: RunningTotal,
    double: f64,
}

impl Product {
    fn multiply(&mut self, value: Value<'_>) {
        if let (RunningTotal::Decimal(_), _) | (_, Value::Decimal(_)) = (self.running, value) {
            let product = self.running.as_decimal().multiply(as_decimal(value));
            self.running = RunningTotal::Decimal(product);
            return;
        }
        self.double *= as_double(value);
        self.running = match (self.running, long(value)) {
            (RunningTotal::Int(product), Some(number))
            | (RunningTotal::Long(product), Some(number)) => {
                let int = matches!((self.running, value), (RunningTotal::Int(_), Value::Int32(_)));
                match product.checked_mul(number) {
                    Some(product) if int => RunningTotal::Int(product),
                    Some(product) => RunningTotal::Long(product),
                    None => RunningTotal::Double(self.double),
                }
            }
            _ => RunningTotal::Double(self.double),
        };
    }
}

fn divide<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let (left, right) = (call.eval(0, cx)?, call.eval(1, cx)?);
    divided(left, right).map(Some)
}

/// Returns the result of `$divide` for two values.
pub(crate) fn quotient<'a>(left: Value<'_>, right: Value<'_>) -> Result<Value<'a>> {
    divided(Some(left), Some(right))
}

fn divided<'a>(left: Option<Value<'_>>, right: Option<Value<'_>>) -> Result<Value<'a>> {
    let by_zero = || Error::bad_value("can't $divide by zero");
    match (left, right) {
        (Some(a), Some(b)) if a.is_number() && b.is_number() => {
            if let (Value::Decimal(_), _) | (_, Value::Decimal(_)) = (a, b) {
                let divisor = as_decimal(b);
                if divisor.is_zero() {
                    return Err(by_zero());
                }
                return Ok(Value::Decimal(as_decimal(a).divide(divisor)));
            }
            let divisor = as_double(b);
            if divisor == 0.0 {
                return Err(by_zero());
            }
            Ok(Value::Double(as_double(a) / divisor))
        }
        (None | Some(Value::Null | Value::Undefined), _)
        | (_, None | Some(Value::Null | Value::Undefined)) => Ok(Value::Null),
        (left, right) => {
            let text = format!(
                "$divide only supports numeric types, not {} and {}",
                type_name(left),
                type_name(right)
            );
            Err(Error::type_mismatch(text))
        }
    }
}

fn modulo<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let (left, right) = (call.eval(0, cx)?, call.eval(1, cx)?);
    match (left, right) {
        (Some(a), Some(b)) if a.is_number() && b.is_number() => number_modulo(a, b).map(Some),
        (None | Some(Value::Null | Value::Undefined), _)
        | (_, None | Some(Value::Null | Value::Undefined)) => Ok(Some(Value::Null)),
        (left, right) => {
            let text = format!(
                "$mod only supports numeric types, not {} and {}",
                type_name(left),
                type_name(right)
            );
            Err(Error::location(16611, text))
        }
    }
}

fn number_modulo<'a>(a: Value<'_>, b: Value<'_>) -> Result<Value<'a>> {
    if let (Value::Decimal(_), _) | (_, Value::Decimal(_)) = (a, b) {
        let divisor = as_decimal(b);
        if divisor.is_zero() {
            return Err(Error::location(5733415, "can't $mod by zero"));
        }
        return Ok(Value::Decimal(as_decimal(a).remainder(divisor)));
    }
    if as_double(b) == 0.0 {
        return Err(Error::location(16610, "can't $mod by zero"));
    }
    let (Some(dividend), Some(divisor)) = (long(a), long(b)) else {
        return Ok(Value::Double(as_double(a) % as_double(b)));
    };
    let rest = dividend.wrapping_rem(divisor);
    let is_long = matches!((a, b), (Value::Int64(_), _) | (_, Value::Int64(_)));
    Ok(if is_long { Value::Int64(rest) } else { Value::Int32(rest as i32) })
}
