//! `$abs`, `$ceil`, `$floor`, `$round`, `$trunc`: the result has the type of the argument.

use super::array_access::is_nullish;
use super::operator::{Arity, Call, Operator};
use crate::context::EvalContext;
use quire_document::decimal::Rounding;
use quire_document::{Decimal128, Value};
use quire_error::{Error, Result};

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] = &[
    Operator::function("$abs", Arity::Exactly(1), abs).doc("The absolute value.").since("3.2"),
    Operator::function("$ceil", Arity::Exactly(1), |call, cx| {
        to_integer(call, cx, f64::ceil, Rounding::Ceiling)
    })
    .doc("The smallest integer not below the argument.")
    .since("3.2"),
    Operator::function("$floor", Arity::Exactly(1), |call, cx| {
        to_integer(call, cx, f64::floor, Rounding::Floor)
    })
    .doc("The largest integer not above the argument.")
    .since("3.2"),
    Operator::function("$round", Arity::Between(1, 2), |call, cx| {
        to_place(call, cx, Rounding::HalfEven)
    })
    .doc("The number rounded to a decimal place, halves to the even digit.")
    .since("4.2"),
    Operator::function("$trunc", Arity::Between(1, 2), |call, cx| {
        to_place(call, cx, Rounding::Truncate)
    })
    .doc("The number without the digits after a decimal place.")
    .since("3.2"),
];

/// Evaluates the only argument to a number. Returns `None` for null and missing, and fails with
/// 28765 for other types.
pub(super) fn numeric_argument<'a>(
    call: &'a Call,
    cx: &EvalContext<'a>,
) -> Result<Option<Value<'a>>> {
    match call.eval(0, cx)? {
        None | Some(Value::Null | Value::Undefined) => Ok(None),
        Some(value) if value.is_number() => Ok(Some(value)),
        Some(other) => {
            let text =
                format!("{} only supports numeric types, not {}", call.name(), other.type_name());
            Err(Error::location(28765, text))
        }
    }
}

fn abs<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let Some(value) = numeric_argument(call, cx)? else { return Ok(Some(Value::Null)) };
    Ok(Some(match value {
        Value::Int32(number) => super::arithmetic::int_or_long(i64::from(number).abs()),
        Value::Int64(number) => match number.checked_abs() {
            Some(number) => Value::Int64(number),
            None => return Err(Error::location(28680, "can't take $abs of long long min")),
        },
        Value::Double(number) => Value::Double(number.abs()),
        Value::Decimal(number) => Value::Decimal(number.abs()),
        other => other,
    }))
}

fn to_integer<'a>(
    call: &'a Call,
    cx: &EvalContext<'a>,
    round: fn(f64) -> f64,
    rounding: Rounding,
) -> Result<Option<Value<'a>>> {
    let Some(value) = numeric_argument(call, cx)? else { return Ok(Some(Value::Null)) };
    Ok(Some(match value {
        Value::Double(number) => Value::Double(round(number)),
        // As in mongod, infinities and decimals whose integer part has more than 34 digits give
        // NaN.
        Value::Decimal(number) => Value::Decimal(number.quantize(0, rounding)),
        integer => integer,
    }))
}

fn to_place<'a>(
    call: &'a Call,
    cx: &EvalContext<'a>,
    rounding: Rounding,
) -> Result<Option<Value<'a>>> {
    let value = call.eval(0, cx)?;
    if is_nullish(value) {
        return Ok(Some(Value::Null));
    }
    let Some(value) = value.filter(Value::is_number) else {
        let found = super::array_access::type_name(value);
        let text = format!("{} only supports numeric types, not {found}", call.name());
        return Err(Error::location(51081, text));
    };
    let place = match call.has(1) {
        false => 0,
        true => match call.eval(1, cx)? {
            None | Some(Value::Null | Value::Undefined) => return Ok(Some(Value::Null)),
            Some(place) => place_argument(call, place)?,
        },
    };
    round_number(call, value, place, rounding).map(Some)
}

fn place_argument(call: &Call, place: Value<'_>) -> Result<i32> {
    let name = call.name();
    let Some(number) = place.as_number() else {
        let text = format!("can't convert from BSON type {} to long", place.type_name());
        return Err(Error::location(16004, text));
    };
    let Some(exact) = number.exact_i64() else {
        if let Value::Double(number) = place
            && !(number >= i64::MIN as f64 && number < -(i64::MIN as f64))
        {
            let text = format!("Can't coerce out of range value {number} to long");
            return Err(Error::location(31109, text));
        }
        let text = format!("precision argument to {name} must be a integral value");
        return Err(Error::location(51082, text));
    };
    match i32::try_from(exact) {
        Ok(place @ -20..=100) => Ok(place),
        _ => {
            let text = format!(
                "cannot apply {name} with precision value {exact} value must be in [-20, 100]"
            );
            Err(Error::location(51083, text))
        }
    }
}

/// Rounds the exact decimal digits of the number, and returns the nearest double.
fn by_decimal(number: f64, place: i32, rounding: Rounding) -> f64 {
    let rounded = Decimal128::from_f64_exact(number).quantize(-place, rounding);
    if rounded.is_nan() { number } else { rounded.to_f64() }
}

/// Rounds in binary arithmetic. Returns `None` if rounding the product could change the result:
/// unless the power of ten is exact, and the product is far from a point where the result changes.
fn by_binary(number: f64, place: i32, rounding: Rounding) -> Option<f64> {
    const POWERS: [f64; 8] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7];
    const LARGEST: f64 = (1u64 << 40) as f64;
    const FAR: f64 = 1.0 / (1u64 << 10) as f64;
    let power = *POWERS.get(usize::try_from(place).ok()?)?;
    let product = number * power;
    if product.is_nan() || product.abs() >= LARGEST {
        return None;
    }
    let fraction = product.abs().fract();
    let (whole, changes_at) = match rounding {
        Rounding::HalfEven => (product.round_ties_even(), (fraction - 0.5).abs()),
        Rounding::Truncate => (product.trunc(), fraction.min(1.0 - fraction)),
        _ => return None,
    };
    (changes_at > FAR).then(|| whole / power)
}

fn round_number<'a>(
    call: &Call,
    value: Value<'a>,
    place: i32,
    rounding: Rounding,
) -> Result<Value<'a>> {
    match value {
        Value::Decimal(number) => Ok(Value::Decimal(number.round_to_place(place, rounding))),
        Value::Double(number) if place == 0 => Ok(Value::Double(match rounding {
            Rounding::Truncate => number.trunc(),
            _ => number.round_ties_even(),
        })),
        Value::Double(number) => Ok(Value::Double(match by_binary(number, place, rounding) {
            Some(rounded) => rounded,
            None => by_decimal(number, place, rounding),
        })),
        integer if place >= 0 => Ok(integer),
        integer => {
            let long = integer.as_number().and_then(|number| number.exact_i64()).unwrap_or(0);
            let rounded = Decimal128::from_i64(long).quantize(-place, rounding);
            let exact = rounded.to_i64_truncated();
            match (exact, integer) {
                (None, _) => {
                    let text = format!(
                        "invalid conversion from Decimal128 result in {} resulting from arguments: [{long}, {place}]",
                        call.name()
                    );
                    Err(Error::location(51080, text))
                }
                (Some(number), Value::Int32(_)) => Ok(super::arithmetic::int_or_long(number)),
                (Some(number), _) => Ok(Value::Int64(number)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::testing::Generator;

    #[test]
    fn binary_and_decimal_rounding_agree() {
        let mut random = Generator::new(12);
        let mut quick = 0;
        for _ in 0..200_000 {
            let word = random.below(u64::MAX);
            let number = match random.below(4) {
                0 => f64::from_bits(word),
                1 => (word as i64 >> 30) as f64 / 1e4,
                2 => (word as i64 >> 40) as f64 / 8.0,
                _ => (word as i64 >> 20) as f64 * 1e-9,
            };
            let place = random.below(9) as i32;
            for rounding in [Rounding::HalfEven, Rounding::Truncate] {
                let Some(found) = by_binary(number, place, rounding) else { continue };
                quick += 1;
                let expected = by_decimal(number, place, rounding);
                assert_eq!(found.to_bits(), expected.to_bits(), "{number} to {place}: {found}");
            }
        }
        assert!(quick > 100_000, "{quick} of them were quick");
    }
}
