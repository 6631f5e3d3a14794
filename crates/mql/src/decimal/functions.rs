//! Powers, logarithms and trigonometry of decimals, by correctly rounded series (`dashu-float`).

use super::{Wide, divide, infinity, pack};
use dashu_float::round::mode::HalfEven;
use dashu_float::{Context, FBig, FpError, Repr};
use dashu_int::{IBig, Sign, UBig};
use quire_document::Decimal128;
use quire_document::decimal::{DIGITS_MAX, EXPONENT_MIN, Unpacked};

type Real = FBig<HalfEven, 10>;

/// A function of one decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Function {
    Exp,
    Ln,
    Log10,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
}

fn context() -> Context<HalfEven> {
    Context::new(DIGITS_MAX as usize)
}

fn repr(number: Decimal128) -> Option<Repr<10>> {
    let parts = number.parts()?;
    let coefficient = IBig::from(parts.coefficient);
    let signed = if parts.negative { -coefficient } else { coefficient };
    Some(Repr::new(signed, parts.exponent as isize))
}

/// The result as a decimal; inexact ones carry all 34 digits, exact ones no trailing zeros behind
/// the point.
fn finish(result: Result<dashu_float::round::Rounded<Real>, FpError>) -> Decimal128 {
    let (value, exact) = match result {
        Ok(rounded) => {
            let exact = matches!(rounded, dashu_float::round::Rounded::Exact(_));
            (rounded.value(), exact)
        }
        Err(FpError::Overflow(sign)) => return infinity(sign == Sign::Negative),
        Err(FpError::Underflow(sign)) => return pack(sign == Sign::Negative, 0, EXPONENT_MIN),
        Err(_) => return Decimal128::NAN,
    };
    let repr = value.into_repr();
    if repr.is_infinite() {
        return infinity(repr.sign() == Sign::Negative);
    }
    let (significand, exponent) = repr.into_parts();
    let (sign, coefficient) = significand.into_parts();
    let mut wide = Wide { negative: sign == Sign::Negative, coefficient, exponent: exponent as i64 };
    let wanted = if exact { wide.exponent.min(0) } else { i64::MIN };
    pad(&mut wide, wanted);
    wide.round()
}

/// Appends zeros while the exponent is above `wanted` and 34 digits have room.
fn pad(wide: &mut Wide, wanted: i64) {
    if wide.coefficient == UBig::ZERO {
        wide.exponent = wide.exponent.max(wanted.min(0));
        return;
    }
    let room = (i64::from(DIGITS_MAX) - super::digits(&wide.coefficient)).max(0);
    let zeros = room.min(wide.exponent.saturating_sub(wanted)).max(0);
    wide.coefficient = &wide.coefficient * super::ten_to(zeros as u64);
    wide.exponent -= zeros;
}

/// Evaluates a function of one decimal; NaN outside its domain.
pub fn apply(function: Function, number: Decimal128) -> Decimal128 {
    match number.unpack() {
        Unpacked::Nan => return Decimal128::NAN,
        Unpacked::Infinite { negative } => return at_infinity(function, negative),
        Unpacked::Finite(_) => {}
    }
    if number.is_zero() {
        match function {
            Function::Exp | Function::Cos | Function::Cosh => return Decimal128::ONE,
            Function::Ln | Function::Log10 => return Decimal128::NEG_INFINITY,
            Function::Acos => return half_pi(1),
            Function::Acosh => return Decimal128::NAN,
            _ => return pack(number.is_negative(), 0, 0),
        }
    }
    let Some(argument) = repr(number) else { return Decimal128::NAN };
    if let Some(result) = out_of_range(function, number) {
        return result;
    }
    let context = context();
    let argument = &argument;
    let result = finish(match function {
        Function::Exp => context.exp(argument, None),
        Function::Ln => context.ln(argument, None),
        Function::Log10 => context.log10(argument, None),
        Function::Sin => context.sin(argument, None),
        Function::Cos => context.cos(argument, None),
        Function::Tan => context.tan(argument, None),
        Function::Asin => context.asin(argument, None),
        Function::Acos => context.acos(argument, None),
        Function::Atan => context.atan(argument, None),
        Function::Sinh => context.sinh(argument, None),
        Function::Cosh => context.cosh(argument, None),
        Function::Tanh => context.tanh(argument, None),
        Function::Asinh => context.asinh(argument, None),
        Function::Acosh => context.acosh(argument, None),
        Function::Atanh => context.atanh(argument, None),
    });
    if function != Function::Log10 {
        return result;
    }
    // Of a power of ten, or of what 34 digits can't tell from one: an integer.
    match super::quantize(result, 0, super::Rounding::HalfEven) {
        Some(integer) if integer.compare(result).is_eq() => integer,
        _ => result,
    }
}

/// Results at both infinities.
fn at_infinity(function: Function, negative: bool) -> Decimal128 {
    match function {
        Function::Exp if negative => Decimal128::ZERO,
        Function::Exp | Function::Cosh => Decimal128::INFINITY,
        Function::Ln | Function::Log10 | Function::Acosh if !negative => Decimal128::INFINITY,
        Function::Sinh | Function::Asinh => infinity(negative),
        Function::Tanh => pack(negative, 1, 0),
        Function::Atan => half_pi(if negative { -1 } else { 1 }),
        _ => Decimal128::NAN,
    }
}

/// Arguments so large or so small that no series is needed.
fn out_of_range(function: Function, number: Decimal128) -> Option<Decimal128> {
    let parts = number.parts()?;
    let magnitude = i64::from(parts.exponent) + i64::from(parts.coefficient.ilog10());
    let (negative, tiny) = (parts.negative, magnitude < -40);
    match function {
        Function::Exp | Function::Cos | Function::Cosh if tiny => Some(Decimal128::ONE),
        Function::Exp if magnitude >= 5 && negative => Some(pack(false, 0, EXPONENT_MIN)),
        Function::Exp if magnitude >= 5 => Some(Decimal128::INFINITY),
        Function::Cosh if magnitude >= 5 => Some(Decimal128::INFINITY),
        Function::Sinh if magnitude >= 5 => Some(infinity(negative)),
        Function::Tanh if magnitude >= 3 => Some(pack(negative, 1, 0)),
        Function::Sin
        | Function::Tan
        | Function::Asin
        | Function::Atan
        | Function::Sinh
        | Function::Tanh
        | Function::Asinh
        | Function::Atanh
            if tiny =>
        {
            Some(number)
        }
        Function::Acos if tiny => Some(half_pi(1)),
        _ => None,
    }
}

/// Pi halves times `times`.
fn half_pi(times: i8) -> Decimal128 {
    let mut pi = Real::pi(DIGITS_MAX as usize + 4);
    pi = pi * Real::from(i32::from(times)) / Real::from(2);
    finish(Ok(pi.with_precision(DIGITS_MAX as usize)))
}

/// The angle of the point (x, y).
pub fn atan2(y: Decimal128, x: Decimal128) -> Decimal128 {
    if y.is_nan() || x.is_nan() {
        return Decimal128::NAN;
    }
    if let (Some(y), Some(x)) = (repr(y), repr(x))
        && !(y.significand().is_zero() && x.significand().is_zero())
    {
        return finish(context().atan2(&y, &x, None));
    }
    // Zeros and infinities: the double's answer names the multiple of pi/4.
    let angle = super::to_f64(y).atan2(super::to_f64(x));
    super::from_f64_exact(angle)
}

/// The logarithm of `number` to the base `base`: the quotient of the natural ones.
pub fn logarithm(number: Decimal128, base: Decimal128) -> Decimal128 {
    divide(apply(Function::Ln, number), apply(Function::Ln, base))
}

/// `base` to the power of `exponent`; always 34 digits.
pub fn power(base: Decimal128, exponent: Decimal128) -> Decimal128 {
    if exponent.is_zero() || base.compare(Decimal128::ONE).is_eq() {
        return Decimal128::ONE;
    }
    if base.is_nan() || exponent.is_nan() {
        return Decimal128::NAN;
    }
    let odd = is_odd_integer(exponent);
    let finite = (repr(base), repr(exponent));
    let (Some(b), Some(e)) = finite else { return power_at_infinity(base, exponent, odd) };
    if base.is_zero() {
        let negative = base.is_negative() && odd;
        return match exponent.is_negative() {
            true => infinity(negative),
            false => pack(false, 0, EXPONENT_MIN),
        };
    }
    let context = context();
    let integer = match quire_document::Value::Decimal(exponent).as_number() {
        Some(number) => number.exact_i64(),
        None => None,
    };
    // Far outside of the range the logarithm decides.
    let size = super::to_f64(exponent) * log10_magnitude(base);
    if size > 6200.0 {
        return infinity(base.is_negative() && odd);
    }
    if size < -6300.0 {
        return pack(base.is_negative() && odd, 0, EXPONENT_MIN);
    }
    let result = match integer {
        Some(integer) => context.powi(&b, IBig::from(integer)),
        None => context.powf(&b, &e, None),
    };
    let result = finish(result);
    match result.parts() {
        Some(parts) => {
            let mut wide = Wide::from(parts);
            pad(&mut wide, i64::MIN);
            match wide.round() {
                // The library mongod uses overflows here already.
                max if super::abs(max) == Decimal128::MAX => infinity(max.is_negative()),
                power => power,
            }
        }
        None => result,
    }
}

/// The decimal logarithm of the number's size, roughly.
fn log10_magnitude(number: Decimal128) -> f64 {
    let Some(parts) = number.parts() else { return f64::INFINITY };
    (parts.coefficient as f64).log10() + f64::from(parts.exponent)
}

fn is_odd_integer(number: Decimal128) -> bool {
    let Some(parts) = number.parts() else { return false };
    match parts.exponent {
        0 => parts.coefficient % 2 == 1,
        1.. => false,
        below => match 10u128.checked_pow(below.unsigned_abs()) {
            Some(scale) => {
                parts.coefficient.is_multiple_of(scale) && (parts.coefficient / scale) % 2 == 1
            }
            None => false,
        },
    }
}

/// Where base or exponent is infinite: as C's pow.
fn power_at_infinity(base: Decimal128, exponent: Decimal128, odd: bool) -> Decimal128 {
    if exponent.is_infinite() {
        let size = super::abs(base).compare(Decimal128::ONE);
        return match (size, exponent.is_negative()) {
            (std::cmp::Ordering::Equal, _) => Decimal128::ONE,
            (std::cmp::Ordering::Greater, false) | (std::cmp::Ordering::Less, true) => {
                Decimal128::INFINITY
            }
            _ => pack(false, 0, EXPONENT_MIN),
        };
    }
    let negative = base.is_negative() && odd;
    if exponent.is_negative() { pack(false, 0, EXPONENT_MIN) } else { infinity(negative) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dec(text: &str) -> Decimal128 {
        Decimal128::parse(text).unwrap()
    }

    #[test]
    fn known_values() {
        assert_eq!(apply(Function::Exp, dec("1")), dec("2.718281828459045235360287471352662"));
        assert_eq!(apply(Function::Exp, dec("0")), dec("1"));
        assert_eq!(apply(Function::Ln, dec("1")), dec("0"));
        assert_eq!(apply(Function::Log10, dec("1000")), dec("3"));
        assert_eq!(logarithm(dec("100"), dec("10")), dec("2"));
        assert_eq!(logarithm(dec("8"), dec("2")), dec("3.000000000000000000000000000000000"));
        assert_eq!(power(dec("2"), dec("3")), dec("8.000000000000000000000000000000000"));
        assert_eq!(power(dec("1.5"), dec("2")), dec("2.250000000000000000000000000000000"));
        assert_eq!(apply(Function::Atan, dec("1")), dec("0.7853981633974483096156608458198757"));
    }
}
