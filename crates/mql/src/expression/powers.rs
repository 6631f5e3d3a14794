//! `$exp`, `$ln`, `$log`, `$log10`, `$pow`, `$sqrt`, `$sigmoid`.

use super::arithmetic::{as_decimal, as_double, int_or_long};
use super::array_access::{is_nullish, type_name};
use super::operator::{Arity, Call, Operator};
use super::rounding::numeric_argument;
use super::tree::Expression;
use crate::context::{EvalContext, ParseContext};
use quire_document::{Value, array, doc, message};
use quire_error::{Error, Result};

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] = &[
    Operator::function("$exp", Arity::Exactly(1), exp)
        .doc("e to the power of the argument.")
        .since("3.2"),
    Operator::function("$ln", Arity::Exactly(1), ln).doc("The natural logarithm.").since("3.2"),
    Operator::function("$log", Arity::Exactly(2), log)
        .doc("The logarithm of the first argument to the base of the second.")
        .since("3.2"),
    Operator::function("$log10", Arity::Exactly(1), log10)
        .doc("The decimal logarithm.")
        .since("3.2"),
    Operator::function("$pow", Arity::Exactly(2), pow)
        .doc("The first argument to the power of the second.")
        .since("3.2"),
    Operator::function("$sqrt", Arity::Exactly(1), sqrt).doc("The square root.").since("3.2"),
    Operator::form("$sigmoid", parse_sigmoid).doc("1 / (1 + e^-x).").since("8.1"),
];

fn exp<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    Ok(Some(match numeric_argument(call, cx)? {
        None => Value::Null,
        Some(Value::Decimal(number)) => Value::Decimal(number.exp()),
        Some(value) => Value::Double(as_double(value).exp()),
    }))
}

/// Returns true for numbers greater than zero and for NaN.
fn is_positive(value: Value<'_>) -> bool {
    match value {
        Value::Decimal(number) => number.is_nan() || (!number.is_zero() && !number.is_negative()),
        other => as_double(other) > 0.0 || as_double(other).is_nan(),
    }
}

fn positive_argument<'a>(
    call: &'a Call,
    cx: &EvalContext<'a>,
    code: i32,
) -> Result<Option<Value<'a>>> {
    let value = numeric_argument(call, cx)?;
    if let Some(value) = value
        && !is_positive(value)
    {
        let text = format!(
            "{}'s argument must be a positive number, but is {}",
            call.name(),
            message(value)
        );
        return Err(Error::location(code, text));
    }
    Ok(value)
}

fn ln<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    Ok(Some(match positive_argument(call, cx, 28766)? {
        None => Value::Null,
        Some(Value::Decimal(number)) if !number.is_nan() => Value::Decimal(number.ln()),
        Some(value) => Value::Double(as_double(value).ln()),
    }))
}

fn log10<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    Ok(Some(match positive_argument(call, cx, 28761)? {
        None => Value::Null,
        Some(Value::Decimal(number)) if !number.is_nan() => Value::Decimal(number.log10()),
        Some(value) => Value::Double(as_double(value).log10()),
    }))
}

fn log<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let (number, base) = (call.eval(0, cx)?, call.eval(1, cx)?);
    if is_nullish(number) || is_nullish(base) {
        return Ok(Some(Value::Null));
    }
    let numeric = |value: Option<Value<'a>>, what, code| {
        value.filter(Value::is_number).ok_or_else(|| {
            let text = format!("$log's {what} must be numeric, not {}", type_name(value));
            Error::location(code, text)
        })
    };
    let number = numeric(number, "argument", 28756)?;
    let base = numeric(base, "base", 28757)?;
    if !is_positive(number) {
        let text = format!("$log's argument must be a positive number, but is {}", message(number));
        return Err(Error::location(28758, text));
    }
    if !is_positive(base) || as_double(base) == 1.0 {
        let text = format!(
            "$log's base must be a positive number not equal to 1, but is {}",
            message(base)
        );
        return Err(Error::location(28759, text));
    }
    let nan = as_double(number).is_nan() || as_double(base).is_nan();
    if let (false, (Value::Decimal(_), _) | (_, Value::Decimal(_))) = (nan, (number, base)) {
        let result = as_decimal(number).ln().divide(as_decimal(base).ln());
        return Ok(Some(Value::Decimal(result)));
    }
    Ok(Some(Value::Double(as_double(number).ln() / as_double(base).ln())))
}

fn pow<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let (base, exponent) = (call.eval(0, cx)?, call.eval(1, cx)?);
    if is_nullish(base) || is_nullish(exponent) {
        return Ok(Some(Value::Null));
    }
    let numeric = |value: Option<Value<'a>>, what, code| {
        value.filter(Value::is_number).ok_or_else(|| {
            let text = format!("$pow's {what} must be numeric, not {}", type_name(value));
            Error::location(code, text)
        })
    };
    let base = numeric(base, "base", 28762)?;
    let exponent = numeric(exponent, "exponent", 28763)?;
    if as_double(base) == 0.0 && as_double(exponent) < 0.0 {
        let text = "$pow cannot take a base of 0 and a negative exponent";
        return Err(Error::location(28764, text));
    }
    Ok(Some(match (base, exponent) {
        (Value::Decimal(_), _) | (_, Value::Decimal(_)) => {
            Value::Decimal(as_decimal(base).pow(as_decimal(exponent)))
        }
        (Value::Double(_), _) | (_, Value::Double(_)) => {
            Value::Double(as_double(base).powf(as_double(exponent)))
        }
        _ => integer_power(base, exponent),
    }))
}

/// Returns an int or a long if the result fits, otherwise a double.
fn integer_power<'a>(base: Value<'_>, exponent: Value<'_>) -> Value<'a> {
    let integer = |value: Value<'_>| value.as_number().and_then(|number| number.exact_i64());
    let double = Value::Double(as_double(base).powf(as_double(exponent)));
    let (Some(b), Some(e)) = (integer(base), integer(exponent)) else { return double };
    let power = match (b, e) {
        (_, 0) | (1, _) => Some(1),
        (0, _) => Some(0),
        (-1, e) => Some(if e % 2 == 0 { 1 } else { -1 }),
        (b, e) => u32::try_from(e).ok().and_then(|e| b.checked_pow(e)),
    };
    match (power, base, exponent) {
        (None, ..) => double,
        (Some(power), Value::Int32(_), Value::Int32(_)) => int_or_long(power),
        (Some(power), ..) => Value::Int64(power),
    }
}

fn sqrt<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let Some(value) = numeric_argument(call, cx)? else { return Ok(Some(Value::Null)) };
    let negative = match value {
        Value::Decimal(number) => number.is_negative() && !number.is_zero() && !number.is_nan(),
        other => as_double(other) < 0.0,
    };
    if negative {
        let text = "$sqrt's argument must be greater than or equal to 0";
        return Err(Error::location(28714, text));
    }
    Ok(Some(match value {
        Value::Decimal(number) => Value::Decimal(number.sqrt()),
        other => Value::Double(as_double(other).sqrt()),
    }))
}

/// Parses `$sigmoid`, which is rewritten to other operators.
fn parse_sigmoid(
    _: &'static Operator,
    value: Value<'_>,
    context: &ParseContext,
) -> Result<Expression> {
    let negated = array![-1, value];
    let rewritten = doc! {
        "$divide": [1, { "$add": [1, { "$exp": { "$multiply": &negated } }] }]
    };
    Expression::parse_object(rewritten.as_doc(), context)
}
