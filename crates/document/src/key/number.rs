//! Numbers in keys. Ints, longs, doubles and decimals sort among each other exactly.
//!
//! The *head* of a number is its magnitude truncated to the precision of doubles and longs, and a
//! bit tells whether the head is exact. Only decimals can lie between two heads; the rest of their
//! digits follows as a *tail*.

use super::bits::{BitReader, TypeBits};
use super::read::Bytes;
use super::{KeyError, class};
use crate::decimal::{EXPONENT_MIN, Parts, Unpacked, digits, infinity, truncate_to_f64};
use crate::number::{Number, TWO_63};
use crate::{Decimal128, Type, Value};

/// The bias of the exponent of a tail's first digit, which makes the exponent positive.
const TAIL_BIAS: i32 = 0x2000;

/// The NaN that is stored without type bits.
const CANONICAL_NAN: u64 = 0x7ff8_0000_0000_0000;

const INT32: u128 = 0;
const INT64: u128 = 1;
const DOUBLE: u128 = 2;
const DECIMAL: u128 = 3;

/// A magnitude greater than zero, in the form of a key.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Magnitude {
    head: Head,
    /// The decimal, if the head is not exact.
    tail: Option<Parts>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Head {
    /// For numbers below 1, or 2^63 and above: the nearest double towards zero.
    Double(f64),
    /// For numbers from 1 to below 2^63: the integer part, and 52 bits of the fraction.
    Integer(u64, u64),
}

/// Appends a number with its class, and its type bits.
pub(super) fn append(value: Value<'_>, key: &mut Vec<u8>, bits: &mut TypeBits) {
    if let Value::Int32(number) = value {
        // The type bits of an int are zero, so they are stored only if other bits follow.
        bits.push(INT32, 2);
        return append_int(number as i64, key);
    }
    match value.as_number() {
        Some(Number::Int(number)) => {
            bits.push(INT64, 2);
            append_int(number, key);
        }
        Some(Number::Double(number)) => append_double(number, key, bits),
        Some(Number::Decimal(decimal)) => append_decimal(decimal, key, bits),
        None => {}
    }
}

fn append_int(number: i64, key: &mut Vec<u8>) {
    let size = number.unsigned_abs();
    let head = match size {
        0 => return key.push(class::ZERO),
        size if size >> 63 == 1 => Head::Double(TWO_63),
        size => Head::Integer(size, 0),
    };
    append_magnitude(number < 0, Magnitude { head, tail: None }, key);
}

fn append_double(number: f64, key: &mut Vec<u8>, bits: &mut TypeBits) {
    bits.push(DOUBLE, 2);
    if number.is_nan() {
        key.push(class::NAN);
        let plain = number.to_bits() == CANONICAL_NAN;
        bits.push(!plain as u128, 1);
        if !plain {
            bits.push(number.to_bits() as u128, 64);
        }
        return;
    }
    if number == 0.0 {
        key.push(class::ZERO);
        return bits.push(number.is_sign_negative() as u128, 1);
    }
    let magnitude = Magnitude { head: head_of(number.abs()), tail: None };
    append_magnitude(number < 0.0, magnitude, key);
}

fn append_decimal(decimal: Decimal128, key: &mut Vec<u8>, bits: &mut TypeBits) {
    bits.push(DECIMAL, 2);
    let unpacked = decimal.unpack();
    let plain = match unpacked {
        Unpacked::Nan => Decimal128::NAN,
        Unpacked::Infinite { negative } => Decimal128::infinite(negative),
        Unpacked::Finite(parts) => Decimal128::pack(parts),
    };
    // Bits that are not canonical are stored as a whole, and then nothing else is needed.
    let raw = plain != decimal;
    bits.push(raw as u128, 1);
    if raw {
        bits.push(decimal.bits(), 128);
    }
    let mut detail = |value: i32, count: u32| {
        if !raw {
            bits.push(value as u128, count);
        }
    };
    match unpacked {
        Unpacked::Nan => key.push(class::NAN),
        Unpacked::Infinite { negative } => {
            let magnitude = Magnitude { head: Head::Double(infinity(false)), tail: None };
            append_magnitude(negative, magnitude, key);
        }
        Unpacked::Finite(parts) if parts.coefficient == 0 => {
            key.push(class::ZERO);
            detail(parts.negative as i32, 1);
            detail(parts.exponent - EXPONENT_MIN, 14);
        }
        Unpacked::Finite(parts) => {
            let stripped = parts.stripped();
            detail(stripped.exponent - parts.exponent, 6);
            append_magnitude(parts.negative, magnitude_of(stripped), key);
        }
    }
}

/// Returns the head of a positive double, which is always exact.
fn head_of(size: f64) -> Head {
    if !(1.0..TWO_63).contains(&size) {
        return Head::Double(size);
    }
    let whole = size as u64;
    let fraction = (size - whole as f64) * (1u64 << 52) as f64;
    Head::Integer(whole, fraction as u64)
}

/// Returns head and tail of a positive decimal without trailing zeros.
fn magnitude_of(parts: Parts) -> Magnitude {
    let (cut, exact) = truncate_to_f64(parts.coefficient, parts.exponent);
    let tail = (!exact).then_some(Parts { negative: false, ..parts });
    let inside = (1.0..TWO_63).contains(&cut);
    if !inside || exact {
        return Magnitude { head: head_of(cut), tail };
    }
    // Computes the integer part and 52 bits of the fraction, by long division in four steps of 13
    // bits.
    let (mut whole, mut fraction, mut exact) = (parts.coefficient, 0u64, true);
    if parts.exponent >= 0 {
        whole *= 10u128.pow(parts.exponent as u32);
    } else {
        let scale = 10u128.pow(parts.exponent.unsigned_abs());
        let mut rest = whole % scale;
        whole /= scale;
        for _ in 0..4 {
            rest <<= 13;
            fraction = fraction << 13 | (rest / scale) as u64;
            rest %= scale;
        }
        exact = rest == 0;
    }
    let tail = if exact { None } else { tail };
    Magnitude { head: Head::Integer(whole as u64, fraction), tail }
}

fn append_magnitude(negative: bool, magnitude: Magnitude, key: &mut Vec<u8>) {
    let start = key.len();
    let tailed = magnitude.tail.is_some() as u64;
    match magnitude.head {
        Head::Double(size) => {
            key.push(if size < 1.0 { class::FRACTION } else { class::HUGE });
            key.extend_from_slice(&(size.to_bits() << 1 | tailed).to_be_bytes());
        }
        Head::Integer(whole, fraction) => {
            let fraction = fraction << 1 | tailed;
            let word = whole << 1 | (fraction != 0) as u64;
            let skipped = word.leading_zeros() as usize / 8;
            key.push(class::INTEGER_1 + 7 - skipped as u8);
            key.extend_from_slice(&word.to_be_bytes()[skipped..]);
            if fraction != 0 {
                append_fraction(fraction, key);
            }
        }
    }
    if let Some(parts) = magnitude.tail {
        append_tail(parts, key);
    }
    if negative {
        key[start] = 2 * class::ZERO - key[start];
        key[start + 1..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// Appends 53 bits in groups of seven, highest first. The lowest bit of a byte tells that more
/// bytes follow.
fn append_fraction(bits: u64, key: &mut Vec<u8>) {
    let mut rest = bits << 11;
    while rest != 0 {
        let group = (rest >> 57) as u8;
        rest <<= 7;
        key.push(group << 1 | (rest != 0) as u8);
    }
}

/// Appends the exponent of the first digit, then the digits in pairs. The lowest bit of a byte
/// tells that more bytes follow.
fn append_tail(parts: Parts, key: &mut Vec<u8>) {
    let exponent = (parts.adjusted_exponent() + TAIL_BIAS) as u16;
    key.extend_from_slice(&exponent.to_be_bytes());
    let count = digits(parts.coefficient);
    let odd = count % 2;
    let mut rest = parts.coefficient * if odd == 1 { 10 } else { 1 };
    for left in (0..(count + odd) / 2).rev() {
        let scale = 100u128.pow(left);
        key.push(((rest / scale) as u8) << 1 | (left > 0) as u8);
        rest %= scale;
    }
}

/// Reads a number of `class`, appends its bytes in wire form to `out`, and returns its type.
pub(super) fn read(
    class: u8,
    bytes: &mut Bytes<'_>,
    bits: &mut BitReader<'_>,
    out: &mut Vec<u8>,
) -> Result<Type, KeyError> {
    let kind = bits.take(2);
    let raw = if kind == DECIMAL && bits.take(1) == 1 { Some(bits.take(128)) } else { None };
    let number = read_number(class, bytes, kind, raw.is_none().then_some(bits))?;
    let number = match raw {
        Some(raw) => Value::Decimal(Decimal128::from_bits(raw)),
        None => number,
    };
    crate::builder::write_value(out, number);
    Ok(number.kind())
}

/// Skips a number of `class`.
pub(super) fn skip(class: u8, bytes: &mut Bytes<'_>) -> Result<(), KeyError> {
    match class {
        class::NAN | class::ZERO => Ok(()),
        _ => bytes.inverted(class < class::ZERO, |bytes| read_magnitude(class, bytes)).map(|_| ()),
    }
}

/// Reads a number. Without `bits` (for a decimal that is stored as a whole) it only skips the bytes
/// of the key.
fn read_number(
    class: u8,
    bytes: &mut Bytes<'_>,
    kind: u128,
    bits: Option<&mut BitReader<'_>>,
) -> Result<Value<'static>, KeyError> {
    match class {
        class::NAN => Ok(read_nan(kind, bits)),
        class::ZERO => Ok(read_zero(kind, bits)),
        _ => {
            let negative = class < class::ZERO;
            let magnitude = bytes.inverted(negative, |bytes| read_magnitude(class, bytes))?;
            restore(negative, magnitude, kind, bits).ok_or(KeyError)
        }
    }
}

fn read_nan(kind: u128, bits: Option<&mut BitReader<'_>>) -> Value<'static> {
    match (kind, bits) {
        (DOUBLE, Some(bits)) => match bits.take(1) {
            0 => Value::Double(f64::from_bits(CANONICAL_NAN)),
            _ => Value::Double(f64::from_bits(bits.take(64) as u64)),
        },
        (DOUBLE, _) => Value::Double(f64::from_bits(CANONICAL_NAN)),
        _ => Value::Decimal(Decimal128::NAN),
    }
}

fn read_zero(kind: u128, bits: Option<&mut BitReader<'_>>) -> Value<'static> {
    match (kind, bits) {
        (INT64, _) => Value::Int64(0),
        (DOUBLE, Some(bits)) => Value::Double(if bits.take(1) == 1 { -0.0 } else { 0.0 }),
        (DECIMAL, Some(bits)) => {
            let negative = bits.take(1) == 1;
            let exponent = bits.take(14) as i32 + EXPONENT_MIN;
            Value::Decimal(Decimal128::pack(Parts { negative, coefficient: 0, exponent }))
        }
        _ => Value::Int32(0),
    }
}

fn read_magnitude(class: u8, bytes: &mut Bytes<'_>) -> Result<Magnitude, KeyError> {
    let positive = if class < class::ZERO { 2 * class::ZERO - class } else { class };
    let (head, tailed) = match positive {
        class::FRACTION | class::HUGE => {
            let word = bytes.word(8)?;
            (Head::Double(f64::from_bits(word >> 1)), word & 1 == 1)
        }
        class::INTEGER_1..class::HUGE => {
            let word = bytes.word((positive - class::INTEGER_1) as usize + 1)?;
            let fraction = if word & 1 == 1 { read_fraction(bytes)? } else { 0 };
            (Head::Integer(word >> 1, fraction >> 1), fraction & 1 == 1)
        }
        _ => return Err(KeyError),
    };
    let tail = if tailed { Some(read_tail(bytes)?) } else { None };
    Ok(Magnitude { head, tail })
}

fn read_fraction(bytes: &mut Bytes<'_>) -> Result<u64, KeyError> {
    let mut bits = 0u64;
    for group in (0..8).rev() {
        let byte = bytes.byte()?;
        bits |= (byte as u64 >> 1) << (group * 7);
        if byte & 1 == 0 {
            return Ok(bits >> 3);
        }
    }
    Err(KeyError)
}

fn read_tail(bytes: &mut Bytes<'_>) -> Result<Parts, KeyError> {
    let adjusted = bytes.word(2)? as i32 - TAIL_BIAS;
    let mut coefficient = 0u128;
    for _ in 0..17 {
        let byte = bytes.byte()?;
        coefficient = coefficient * 100 + (byte >> 1) as u128;
        if byte & 1 == 0 {
            let exponent = adjusted + 1 - digits(coefficient) as i32;
            return Ok(Parts { negative: false, coefficient, exponent }.stripped());
        }
    }
    Err(KeyError)
}

/// Returns the value with its original type.
fn restore(
    negative: bool,
    magnitude: Magnitude,
    kind: u128,
    bits: Option<&mut BitReader<'_>>,
) -> Option<Value<'static>> {
    Some(match kind {
        INT32 => Value::Int32(magnitude.head.integer(negative)?.try_into().ok()?),
        INT64 => Value::Int64(magnitude.head.integer(negative)?),
        DOUBLE => {
            let size = match magnitude.head {
                Head::Double(size) => size,
                Head::Integer(whole, bits) => whole as f64 + bits as f64 / (1u64 << 52) as f64,
            };
            Value::Double(if negative { -size } else { size })
        }
        _ if magnitude.head == Head::Double(f64::INFINITY) => {
            Value::Decimal(Decimal128::infinite(negative))
        }
        _ => {
            let Some(bits) = bits else {
                return Some(Value::Null);
            };
            let zeros = bits.take(6) as u32;
            let parts = match magnitude.tail {
                Some(parts) => parts,
                None => magnitude.head.decimal()?,
            };
            let coefficient = parts.coefficient.checked_mul(10u128.checked_pow(zeros)?)?;
            let exponent = parts.exponent - zeros as i32;
            if digits(coefficient) > 34 || exponent < EXPONENT_MIN {
                return None;
            }
            Value::Decimal(Decimal128::pack(Parts { negative, coefficient, exponent }))
        }
    })
}

impl Head {
    fn integer(self, negative: bool) -> Option<i64> {
        match self {
            Head::Integer(whole, _) if negative => 0i64.checked_sub_unsigned(whole),
            Head::Integer(whole, _) => whole.try_into().ok(),
            Head::Double(TWO_63) if negative => Some(i64::MIN),
            Head::Double(_) => None,
        }
    }

    /// Returns the decimal, without trailing zeros, that equals this head.
    fn decimal(self) -> Option<Parts> {
        let (mantissa, exponent) = match self {
            Head::Double(size) => {
                let bits = size.to_bits();
                let (biased, low) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
                match biased {
                    0 => (low as u128, -1074),
                    _ => ((low | 1 << 52) as u128, biased - 1075),
                }
            }
            Head::Integer(whole, fraction) => ((whole as u128) << 52 | fraction as u128, -52),
        };
        if mantissa == 0 {
            return None;
        }
        let zeros = mantissa.trailing_zeros() as i32;
        let (odd, exponent) = (mantissa >> zeros, exponent + zeros);
        let coefficient = match exponent {
            ..0 => odd.checked_mul(5u128.checked_pow(exponent.unsigned_abs())?)?,
            _ => return powers_of_ten(odd, exponent as u32),
        };
        Some(Parts { negative: false, coefficient, exponent }.stripped())
    }
}

/// Returns `odd * 2^twos` as a coefficient and a power of ten.
fn powers_of_ten(mut odd: u128, twos: u32) -> Option<Parts> {
    let mut tens = 0;
    while tens < twos && odd.is_multiple_of(5) {
        odd /= 5;
        tens += 1;
    }
    let coefficient = odd.checked_mul(1u128.checked_shl(twos - tens)?)?;
    Some(Parts { negative: false, coefficient, exponent: tens as i32 })
}
