//! Values as numbers whose differences a column has, and back.

use quire_document::{Element, Type};
use quire_error::Result;

use super::malformed;

/// The longest string or binary whose differences a column has, in bytes.
const TEXT_BYTES_MAX: usize = 16;
/// The largest integer of which doubles have all below it.
const SAFE: f64 = 9_007_199_254_740_992.0;

/// How blocks of doubles have become integers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// The bits of the double; for other types their own number.
    Bits,
    /// The double times a power of ten.
    Times(f64),
}

impl Scale {
    /// Returns the scale in the high half of the control byte of blocks.
    ///
    /// # Errors
    /// 378 NonConformantBSON if no blocks have this byte.
    pub fn of_control(byte: u8) -> Result<Self> {
        Ok(match byte >> 4 {
            0x8 => Scale::Bits,
            0x9 => Scale::Times(1.0),
            0xA => Scale::Times(10.0),
            0xB => Scale::Times(100.0),
            0xC => Scale::Times(10_000.0),
            0xD => Scale::Times(100_000_000.0),
            _ => return Err(malformed("a control byte does not exist")),
        })
    }

    /// Returns a double as an integer; `None` if it is not that integer's double.
    pub fn number_of(self, double: f64) -> Option<i64> {
        let Scale::Times(factor) = self else { return Some(double.to_bits() as i64) };
        let scaled = double * factor;
        if !(-SAFE..=SAFE).contains(&scaled) {
            return None;
        }
        let number = scaled.round() as i64;
        (self.double_of(number).to_bits() == double.to_bits()).then_some(number)
    }

    /// Returns the double of an integer.
    pub fn double_of(self, number: i64) -> f64 {
        match self {
            Scale::Bits => f64::from_bits(number as u64),
            Scale::Times(factor) => number as f64 / factor,
        }
    }
}

/// Returns true for types whose number has 128 bits.
pub(super) fn is_wide(kind: Type) -> bool {
    matches!(kind, Type::String | Type::Code | Type::Binary | Type::Decimal)
}

/// Returns true for types of which a column has differences of differences.
pub(super) fn has_steps(kind: Type) -> bool {
    matches!(kind, Type::ObjectId | Type::Date | Type::Timestamp)
}

/// Returns the number of a value other than a double; 0 if it has none.
pub(super) fn number_of(element: Element<'_>) -> u128 {
    let bytes = element.value_bytes();
    match element.kind() {
        Type::Int32 => int32(bytes) as i64 as u64 as u128,
        Type::Int64 | Type::Date | Type::Timestamp => u128::from(u64_of(bytes)),
        Type::Bool => u128::from(bytes.first() == Some(&1)),
        Type::ObjectId => object_id(bytes),
        Type::Decimal => little_endian(bytes),
        Type::Binary => match bytes.get(5..) {
            Some(content) if content.len() <= TEXT_BYTES_MAX => little_endian(content),
            _ => 0,
        },
        Type::String | Type::Code => text(bytes),
        _ => 0,
    }
}

fn int32(bytes: &[u8]) -> i32 {
    bytes.first_chunk().map_or(0, |bytes| i32::from_le_bytes(*bytes))
}

fn u64_of(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Returns up to 16 bytes as a number, the first byte lowest.
fn little_endian(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// Returns the number of a string or of code: its last byte is the lowest. A long one has none, nor has one that begins with
/// a zero, which would be lost.
fn text(bytes: &[u8]) -> u128 {
    let content =
        bytes.get(4..).and_then(|text| text.split_last()).map_or(&[][..], |(_, text)| text);
    match content {
        [] | [0, ..] => 0,
        _ if content.len() > TEXT_BYTES_MAX => 0,
        _ => content.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)),
    }
}

/// The positions of the bytes of an object id in its number, from the lowest up. The other five do not change within blocks.
const ID_BYTES: [usize; 7] = [11, 3, 10, 2, 9, 1, 0];

fn object_id(bytes: &[u8]) -> u128 {
    let byte = |at: &usize| bytes.get(*at).copied().unwrap_or(0);
    ID_BYTES.iter().rev().fold(0, |number, at| number << 8 | u128::from(byte(at)))
}

/// Replaces a value by that with another number. `value` are its bytes in wire form.
///
/// # Errors
/// 378 NonConformantBSON for a type of which there are no differences, and for a number that has no value of the type.
pub(super) fn put(kind: Type, number: u128, scale: Scale, value: &mut Vec<u8>) -> Result<()> {
    let bytes = number.to_le_bytes();
    match kind {
        Type::Double => {
            let double = scale.double_of(number as u64 as i64);
            value.copy_from_slice(&double.to_bits().to_le_bytes());
        }
        Type::Int32 => value.copy_from_slice(&bytes[..4]),
        Type::Int64 | Type::Date | Type::Timestamp => value.copy_from_slice(&bytes[..8]),
        Type::Bool => value.copy_from_slice(&[u8::from(number != 0)]),
        Type::Decimal => value.copy_from_slice(&bytes),
        Type::ObjectId => {
            for (at, byte) in ID_BYTES.iter().zip(bytes) {
                if let Some(own) = value.get_mut(*at) {
                    *own = byte;
                }
            }
        }
        Type::Binary => put_binary(bytes, value)?,
        Type::String | Type::Code => {
            let length = 16 - number.leading_zeros() as usize / 8;
            let mut text = bytes;
            text[..length].reverse();
            let text = std::str::from_utf8(&text[..length]);
            let text = text.map_err(|_| malformed("a string is not UTF-8"))?;
            value.clear();
            value.extend_from_slice(&(length as u32 + 1).to_le_bytes());
            value.extend_from_slice(text.as_bytes());
            value.push(0);
        }
        _ => return Err(malformed("a difference between values that have none")),
    }
    Ok(())
}

fn put_binary(bytes: [u8; 16], value: &mut [u8]) -> Result<()> {
    // The old form of a binary has a second length in its content.
    let is_old = value.get(4) == Some(&2);
    let content = value.get_mut(5..).filter(|content| content.len() <= TEXT_BYTES_MAX && !is_old);
    let content = content.ok_or_else(|| malformed("a difference between long binaries"))?;
    content.copy_from_slice(&bytes[..content.len()]);
    Ok(())
}
