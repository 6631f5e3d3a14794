//! A first computation of the functions of decimals in fixed point. It is some ten times as fast as
//! exact arithmetic, and gives up where it cannot decide the last digit, or for arguments that need
//! more bits.

use super::Parts;
use super::fixed::Fixed;
use crate::Decimal128;

/// The error of a result of few operations, as a power of two in units of the last place.
const SMALL: u32 = 28;
/// The error of a result in which errors were multiplied by up to 2^20.
const LARGE: u32 = 52;

/// Returns e to the power of `number`, which must be between -2^14 and 2^14, as a number near 1 and a
/// power of two.
fn exponential(number: Fixed) -> (Fixed, i32) {
    const HALVINGS: u32 = 8;
    let power = (number.to_f64() * std::f64::consts::LOG2_E).round() as i64;
    let rest = number.minus(Fixed::LN_2.times(Fixed::of_i64(power)));
    let small = rest.shifted_right(HALVINGS);
    // The Taylor series; the argument is below 2^-9.
    let mut sum = Fixed::ONE;
    for term in (1..=17).rev() {
        sum = Fixed::ONE.plus(small.times(sum).over(term));
    }
    (0..HALVINGS).for_each(|_| sum = sum.times(sum));
    (sum, power as i32)
}

/// Returns the natural logarithm of a number in 1..2: that of a double near it, and that of the
/// small rest by its series.
fn logarithm_of_mantissa(mantissa: Fixed) -> Fixed {
    let near = Fixed::of_f64(mantissa.to_f64().ln());
    let (inverse, power) = exponential(near.negate());
    let rest = mantissa.times(inverse.scaled(power)).minus(Fixed::ONE);
    let square = rest.times(rest);
    near.plus(rest).minus(square.shifted_right(1)).plus(square.times(rest).over(3))
}

/// Returns the natural logarithm of a number above zero.
fn logarithm(number: Fixed) -> Option<Fixed> {
    let (mantissa, power) = number.normalised()?;
    let twos = Fixed::LN_2.times(Fixed::of_i64(power.into()));
    Some(logarithm_of_mantissa(mantissa).plus(twos))
}

/// Returns the natural logarithm of a decimal above zero, of any exponent.
fn logarithm_of(parts: Parts) -> Fixed {
    let bits = 127 - parts.coefficient.leading_zeros() as i32;
    let limbs = parts.coefficient << (127 - bits) as u32;
    // The coefficient as 1.xxx: its highest bit is one.
    let mantissa = Fixed::of_fraction(limbs).shifted_left(1);
    let tens = Fixed::LN_10.times(Fixed::of_i64(parts.exponent.into()));
    let twos = Fixed::LN_2.times(Fixed::of_i64(bits.into()));
    logarithm_of_mantissa(mantissa).plus(twos).plus(tens)
}

/// Returns the sine of an angle between -1 and 1 by its series.
fn sine(angle: Fixed) -> Fixed {
    let square = angle.times(angle);
    angle.times((1..=22).rev().fold(Fixed::ONE, |sum, term| {
        Fixed::ONE.minus(square.times(sum).over(2 * term * (2 * term + 1)))
    }))
}

/// Returns the cosine of an angle between -1 and 1 by its series.
fn cosine(angle: Fixed) -> Fixed {
    let square = angle.times(angle);
    (1..=22).rev().fold(Fixed::ONE, |sum, term| {
        Fixed::ONE.minus(square.times(sum).over(2 * term * (2 * term - 1)))
    })
}

/// Returns an angle below 2^20 as a number of quarters of the circle and a rest.
fn quarters(parts: Parts) -> Option<(i64, Fixed)> {
    let angle = Fixed::of(parts).filter(|angle| angle.to_f64().abs() < (1 << 20) as f64)?;
    let quarters = (angle.to_f64() / std::f64::consts::FRAC_PI_2).round() as i64;
    Some((quarters, angle.minus(Fixed::HALF_PI.times(Fixed::of_i64(quarters)))))
}

/// Returns the sine of an angle; its cosine is the sine of one quarter more.
fn sine_of((quarters, rest): (i64, Fixed)) -> Fixed {
    match quarters.rem_euclid(4) {
        0 => sine(rest),
        1 => cosine(rest),
        2 => sine(rest).negate(),
        _ => cosine(rest).negate(),
    }
}

/// Returns the angle of a tangent between 0 and 1: that of a double near it, and that of the small
/// rest by its series.
fn small_arc_tangent(tangent: Fixed) -> Option<Fixed> {
    let near = Fixed::of_f64(tangent.to_f64().atan());
    let (sine, cosine) = (sine(near), cosine(near));
    let above = tangent.times(cosine).minus(sine);
    let below = cosine.plus(tangent.times(sine));
    let rest = above.times(below.reciprocal()?);
    Some(near.plus(rest).minus(rest.times(rest).times(rest).over(3)))
}

/// Returns the angle of the tangent `above / below`, for two numbers that are not negative.
fn arc_tangent(above: Fixed, below: Fixed) -> Option<Fixed> {
    match above.minus(below).is_negative() {
        true => small_arc_tangent(above.times(below.reciprocal()?)),
        false => {
            let rest = small_arc_tangent(below.times(above.reciprocal()?))?;
            Some(Fixed::HALF_PI.minus(rest))
        }
    }
}

/// Returns the number with a sign.
fn signed(number: Fixed, negative: bool) -> Fixed {
    if negative { number.negate() } else { number }
}

pub(super) fn exp(parts: Parts) -> Option<Decimal128> {
    let number = Fixed::of(parts).filter(|number| number.to_f64().abs() < 16_384.0)?;
    let (mantissa, power) = exponential(number);
    mantissa.rounded(power, SMALL)
}

pub(super) fn ln(parts: Parts) -> Option<Decimal128> {
    logarithm_of(parts).rounded(0, SMALL)
}

pub(super) fn log10(parts: Parts) -> Option<Decimal128> {
    logarithm_of(parts).times(Fixed::INVERSE_LN_10).rounded(0, SMALL)
}

/// Returns the power of a number above zero. The result must be neither too large nor too small for
/// a decimal.
pub(super) fn pow(base: Parts, exponent: Parts) -> Option<Decimal128> {
    let exponent = Fixed::of(exponent).filter(|number| number.to_f64().abs() < (1 << 20) as f64)?;
    let product = logarithm_of(base).times(exponent);
    if product.to_f64().abs() >= 16_384.0 {
        return None;
    }
    let (mantissa, power) = exponential(product);
    mantissa.rounded(power, LARGE)
}

pub(super) fn sin(parts: Parts) -> Option<Decimal128> {
    sine_of(quarters(parts)?).rounded(0, SMALL)
}

pub(super) fn cos(parts: Parts) -> Option<Decimal128> {
    let (quarters, rest) = quarters(parts)?;
    sine_of((quarters + 1, rest)).rounded(0, SMALL)
}

pub(super) fn tan(parts: Parts) -> Option<Decimal128> {
    let (quarters, rest) = quarters(parts)?;
    let (sine, cosine) = (sine_of((quarters, rest)), sine_of((quarters + 1, rest)));
    if cosine.to_f64().abs() < 1.0 / 1024.0 {
        return None;
    }
    sine.times(cosine.reciprocal()?).rounded(0, LARGE)
}

/// Returns the cosine of the angle with the sine `number`; `None` near 1 and outside -1 to 1.
fn other_side(number: Fixed) -> Option<Fixed> {
    let number = number.abs();
    let square = Fixed::ONE.minus(number).times(Fixed::ONE.plus(number));
    if square.is_negative() { None } else { square.square_root() }
}

pub(super) fn asin(parts: Parts) -> Option<Decimal128> {
    let number = Fixed::of(parts)?;
    let angle = arc_tangent(number.abs(), other_side(number)?)?;
    signed(angle, parts.negative).rounded(0, LARGE)
}

pub(super) fn acos(parts: Parts) -> Option<Decimal128> {
    let number = Fixed::of(parts)?;
    let angle = arc_tangent(other_side(number)?, number.abs())?;
    let angle = if parts.negative { Fixed::PI.minus(angle) } else { angle };
    angle.rounded(0, LARGE)
}

pub(super) fn atan(parts: Parts) -> Option<Decimal128> {
    let number = Fixed::of(parts).filter(|number| number.to_f64().abs() < (1 << 20) as f64)?;
    signed(arc_tangent(number.abs(), Fixed::ONE)?, parts.negative).rounded(0, SMALL)
}

/// Returns the angle of a point with two coordinates other than zero.
pub(super) fn atan2(y: Parts, x: Parts) -> Option<Decimal128> {
    let near = |number: &Fixed| (1.0 / 1024.0..1_048_576.0).contains(&number.to_f64().abs());
    let (above, right) = (Fixed::of(y).filter(near)?, Fixed::of(x).filter(near)?);
    let angle = arc_tangent(above.abs(), right.abs())?;
    let angle = if x.negative { Fixed::PI.minus(angle) } else { angle };
    signed(angle, y.negative).rounded(0, LARGE)
}

/// Returns e^x and e^-x for a number between -20 and 20.
fn both_exponentials(parts: Parts) -> Option<(Fixed, Fixed)> {
    let number = Fixed::of(parts).filter(|number| number.to_f64().abs() < 20.0)?;
    let [up, down] = [number, number.negate()].map(|number| {
        let (mantissa, power) = exponential(number);
        mantissa.scaled(power)
    });
    Some((up, down))
}

pub(super) fn sinh(parts: Parts) -> Option<Decimal128> {
    let (up, down) = both_exponentials(parts)?;
    up.minus(down).shifted_right(1).rounded(0, LARGE)
}

pub(super) fn cosh(parts: Parts) -> Option<Decimal128> {
    let (up, down) = both_exponentials(parts)?;
    up.plus(down).shifted_right(1).rounded(0, LARGE)
}

pub(super) fn tanh(parts: Parts) -> Option<Decimal128> {
    let (up, down) = both_exponentials(parts)?;
    up.minus(down).times(up.plus(down).reciprocal()?).rounded(0, LARGE)
}

/// Returns a number whose square is below 2^40.
fn root_argument(parts: Parts) -> Option<Fixed> {
    Fixed::of(parts).filter(|number| number.to_f64().abs() < (1 << 19) as f64)
}

pub(super) fn asinh(parts: Parts) -> Option<Decimal128> {
    let number = root_argument(parts)?.abs();
    let root = number.times(number).plus(Fixed::ONE).square_root()?;
    signed(logarithm(number.plus(root))?, parts.negative).rounded(0, LARGE)
}

/// Returns the inverse hyperbolic cosine; `None` below 1 too.
pub(super) fn acosh(parts: Parts) -> Option<Decimal128> {
    let number = root_argument(parts).filter(|number| !number.is_negative())?;
    let square = number.minus(Fixed::ONE).times(number.plus(Fixed::ONE));
    if square.is_negative() {
        return None;
    }
    logarithm(number.plus(square.square_root()?))?.rounded(0, LARGE)
}

/// Returns the inverse hyperbolic tangent of a number between -1 and 1.
pub(super) fn atanh(parts: Parts) -> Option<Decimal128> {
    let number = Fixed::of(parts)?.abs();
    let ratio = Fixed::ONE.plus(number).times(Fixed::ONE.minus(number).reciprocal()?);
    signed(logarithm(ratio)?.shifted_right(1), parts.negative).rounded(0, LARGE)
}
