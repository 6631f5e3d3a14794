//! Checks that bytes from outside are exactly one document. A [`Doc`] may then be a view of them.
//!
//! Checks every length and terminator, type bytes, booleans, UTF-8 of strings and names, depth, and
//! size. Accepts duplicate names and deprecated types, and does not check the names in arrays.

use crate::{Doc, limits::Limits};
use quire_error::{Error, ErrorCode};
use smallvec::SmallVec;
use std::fmt;

/// A defect of the bytes, and its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidationError {
    /// The kind of defect.
    pub fault: Fault,
    /// The offset at which it was found.
    pub offset: usize,
}

/// The kinds of defects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A length does not agree with the bytes around it.
    Length,
    /// The terminating zero of a document, a string or a name is missing.
    Terminator,
    /// No BSON type has this byte.
    UnknownType(u8),
    /// A boolean is neither 0 nor 1.
    Bool(u8),
    /// Text is not UTF-8.
    Utf8,
    /// More levels of nested documents than allowed.
    Depth,
    /// More bytes than allowed.
    Size,
}

/// Checks that `bytes` are exactly one document.
pub fn validate<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Doc<'a>, ValidationError> {
    if bytes.len() > limits.bytes_max {
        return Err(Fault::Size.at(0));
    }
    walk(bytes, limits.depth_max)?;
    Ok(Doc::from_valid_bytes(bytes))
}

/// Returns the length in the first bytes of a document, if it is possible (at least 5).
pub fn declared_length(bytes: &[u8]) -> Option<usize> {
    let length = i32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
    usize::try_from(length).ok().filter(|&length| length >= 5)
}

/// The entry of `FIXED` for types without a fixed size and for unknown types.
const NOT_FIXED: u8 = 0xff;

/// The size of a value, by its type byte.
static FIXED: [u8; 256] = {
    let mut sizes = [NOT_FIXED; 256];
    sizes[0x01] = 8;
    sizes[0x06] = 0;
    sizes[0x07] = 12;
    sizes[0x09] = 8;
    sizes[0x0A] = 0;
    sizes[0x10] = 4;
    sizes[0x11] = 8;
    sizes[0x12] = 8;
    sizes[0x13] = 16;
    sizes[0x7F] = 0;
    sizes[0xFF] = 0;
    sizes
};

/// Checks all elements at all depths, without recursion. `limit` is the position of the terminator
/// of the innermost open document; its elements must end at or before it. `outer` has the limits of
/// the enclosing documents.
fn walk(bytes: &[u8], depth_max: usize) -> Result<(), ValidationError> {
    let mut outer: SmallVec<[usize; 16]> = SmallVec::new();
    let mut limit = open(bytes, 0, bytes.len())?;
    if limit + 1 != bytes.len() {
        return Err(Fault::Length.at(0));
    }
    let mut at = 4;
    loop {
        let Some(&byte) = bytes.get(at) else {
            return Err(Fault::Terminator.at(at));
        };
        if byte == 0 {
            if at != limit {
                return Err(Fault::Length.at(at));
            }
            at += 1;
            match outer.pop() {
                Some(around) => limit = around,
                None => return Ok(()),
            }
            continue;
        }
        let value = name(bytes, at + 1, limit)?;
        let size = FIXED[byte as usize];
        if size != NOT_FIXED {
            at = fixed(value, size as usize, limit)?;
            continue;
        }
        at = match byte {
            0x02 | 0x0D | 0x0E => text(bytes, value, limit)?,
            0x03 | 0x04 => {
                let inner = open(bytes, value, limit)?;
                enter(&mut outer, limit, depth_max, value)?;
                limit = inner;
                value + 4
            }
            0x05 => {
                let length = length(bytes, value)?;
                fixed(fixed(value, 5, limit)?, length, limit)?
            }
            0x08 => match bytes.get(value) {
                Some(0 | 1) => fixed(value, 1, limit)?,
                Some(&other) => return Err(Fault::Bool(other).at(value)),
                None => return Err(Fault::Length.at(value)),
            },
            0x0B => name(bytes, name(bytes, value, limit)?, limit)?,
            0x0C => fixed(text(bytes, value, limit)?, 12, limit)?,
            0x0F => {
                let scope = code_with_scope(bytes, value, limit)?;
                let inner = open(bytes, scope, limit)?;
                enter(&mut outer, limit, depth_max, value)?;
                limit = inner;
                scope + 4
            }
            other => return Err(Fault::UnknownType(other).at(at)),
        };
    }
}

/// Returns the position of the terminator of the document that begins at `at`, which must not
/// exceed `limit`.
#[inline]
fn open(bytes: &[u8], at: usize, limit: usize) -> Result<usize, ValidationError> {
    let length = length(bytes, at)?;
    if length < 5 || length > limit.saturating_sub(at) {
        return Err(Fault::Length.at(at));
    }
    Ok(at + length - 1)
}

#[inline]
fn enter(
    outer: &mut SmallVec<[usize; 16]>,
    limit: usize,
    depth_max: usize,
    at: usize,
) -> Result<(), ValidationError> {
    if outer.len() + 1 >= depth_max {
        return Err(Fault::Depth.at(at));
    }
    outer.push(limit);
    Ok(())
}

/// Returns the length stored at `at`.
#[inline]
fn length(bytes: &[u8], at: usize) -> Result<usize, ValidationError> {
    match bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
        Some(length) => {
            usize::try_from(i32::from_le_bytes(*length)).map_err(|_| Fault::Length.at(at))
        }
        None => Err(Fault::Length.at(at)),
    }
}

/// Returns the position after `size` bytes at `at`.
#[inline]
fn fixed(at: usize, size: usize, limit: usize) -> Result<usize, ValidationError> {
    if size > limit.saturating_sub(at) { Err(Fault::Length.at(at)) } else { Ok(at + size) }
}

/// Returns the position after a name and its zero. Nearly all names are ASCII and end within one
/// word.
#[inline]
fn name(bytes: &[u8], at: usize, limit: usize) -> Result<usize, ValidationError> {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    if let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*word);
        // The lowest mark is exact, because a borrow changes only bytes above it.
        let zeros = word.wrapping_sub(0x0101_0101_0101_0101) & !word & HIGH;
        let below = (zeros & zeros.wrapping_neg()).wrapping_sub(1);
        let end = at + zeros.trailing_zeros() as usize / 8 + 1;
        if zeros != 0 && word & HIGH & below == 0 && end <= limit {
            return Ok(end);
        }
    }
    long_name(bytes, at, limit)
}

#[cold]
fn long_name(bytes: &[u8], at: usize, limit: usize) -> Result<usize, ValidationError> {
    let rest = bytes.get(at..limit).ok_or(Fault::Terminator.at(at))?;
    let end = rest.iter().position(|&byte| byte == 0).ok_or(Fault::Terminator.at(at))?;
    match std::str::from_utf8(&rest[..end]) {
        Ok(_) => Ok(at + end + 1),
        Err(_) => Err(Fault::Utf8.at(at)),
    }
}

/// Returns the position after a string: length, text, zero.
#[inline]
fn text(bytes: &[u8], at: usize, limit: usize) -> Result<usize, ValidationError> {
    let length = length(bytes, at)?;
    let start = at + 4;
    if length == 0 || length > limit.saturating_sub(start) {
        return Err(Fault::Length.at(at));
    }
    match bytes.get(start..start + length).and_then(|text| text.split_last()) {
        Some((0, text)) if is_ascii(text) || std::str::from_utf8(text).is_ok() => {
            Ok(start + length)
        }
        Some((0, _)) => Err(Fault::Utf8.at(at)),
        _ => Err(Fault::Terminator.at(at)),
    }
}

/// Returns true for ASCII. Faster than the standard library for texts of a few words.
#[inline]
fn is_ascii(text: &[u8]) -> bool {
    let Some(last) = text.last_chunk::<8>() else {
        return text.iter().fold(0, |all, byte| all | byte) < 0x80;
    };
    // The last word overlaps with the one before it.
    let (words, _) = text.as_chunks::<8>();
    let words =
        words.iter().fold(u64::from_le_bytes(*last), |all, word| all | u64::from_le_bytes(*word));
    words & 0x8080_8080_8080_8080 == 0
}

/// Returns the position of the scope, which ends where the whole value ends.
fn code_with_scope(bytes: &[u8], at: usize, limit: usize) -> Result<usize, ValidationError> {
    let whole = length(bytes, at)?;
    if whole < 14 || whole > limit.saturating_sub(at) {
        return Err(Fault::Length.at(at));
    }
    let (end, scope) = (at + whole, text(bytes, at + 4, at + whole)?);
    match length(bytes, scope)? == end - scope {
        true => Ok(scope),
        false => Err(Fault::Length.at(scope)),
    }
}

impl Fault {
    const fn at(self, offset: usize) -> ValidationError {
        ValidationError { fault: self, offset }
    }
}

impl ValidationError {
    /// Returns MongoDB's code for the defect.
    pub const fn code(&self) -> ErrorCode {
        match self.fault {
            Fault::Depth => ErrorCode::Overflow,
            Fault::Size => ErrorCode::BSONObjectTooLarge,
            _ => ErrorCode::InvalidBSON,
        }
    }
}

impl fmt::Display for ValidationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fault {
            Fault::Length => write!(f, "incorrect BSON length"),
            Fault::Terminator => write!(f, "BSON text or document not terminated"),
            Fault::UnknownType(byte) => write!(f, "Unrecognized BSON type {}", byte as i8),
            Fault::Bool(byte) => write!(f, "BSON bool is neither false nor true: {byte}"),
            Fault::Utf8 => write!(f, "BSON text is not valid UTF-8"),
            Fault::Depth => write!(f, "BSONObj exceeds maximum nested object depth"),
            Fault::Size => write!(f, "BSONObj size is larger than allowed"),
        }?;
        write!(f, " at offset {}", self.offset)
    }
}

impl std::error::Error for ValidationError {}

impl From<ValidationError> for Error {
    fn from(error: ValidationError) -> Self {
        Error::new(error.code(), error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Binary, CodeWithScope, DbPointer, ObjectId, Regex, Timestamp, Value, array, doc};

    fn everything() -> Vec<u8> {
        let (inner, list) = (doc! { "x": 1 }, array![1, { "a": "b" }]);
        let mut doc = doc! { "d": 1.5, "s": "héllo", "o": &inner, "a": &list, "ü": true };
        doc.append("b", Value::Binary(Binary { subtype: 4, bytes: &[1; 16] }))
            .append("u", Value::Undefined)
            .append("i", ObjectId([7; 12]))
            .append("t", Value::Date(5))
            .append("n", Value::Null)
            .append("r", Value::Regex(Regex { pattern: "a", options: "i" }))
            .append("p", Value::DbPointer(DbPointer { namespace: "a.b", id: ObjectId([1; 12]) }))
            .append("c", Value::Code("f()"))
            .append("y", Value::Symbol("s"))
            .append("w", Value::CodeWithScope(CodeWithScope { code: "g", scope: inner.as_doc() }))
            .append("ts", Timestamp { seconds: 1, increment: 2 })
            .append("l", 1i64)
            .append("m", crate::Decimal128::ONE)
            .append("min", Value::MinKey)
            .append("max", Value::MaxKey);
        doc.into_bytes()
    }

    #[test]
    fn accepts_every_type_and_refuses_every_cut() {
        let bytes = everything();
        assert!(validate(&bytes, &Limits::WIRE).is_ok());
        for cut in 0..bytes.len() {
            assert!(validate(&bytes[..cut], &Limits::WIRE).is_err());
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(validate(&longer, &Limits::WIRE).is_err());
    }

    #[test]
    fn survives_any_flipped_byte() {
        let bytes = everything();
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xff, 0x7f, 0x10] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                if let Ok(doc) = validate(&damaged, &Limits::WIRE) {
                    let size = |e: crate::Element<'_>| e.key_bytes().len() + e.value_bytes().len();
                    let walked: usize = doc.iter().map(|element| size(element) + 2).sum();
                    assert_eq!(walked, doc.element_bytes().len());
                }
            }
        }
    }

    #[test]
    fn faults() {
        let fault = |bytes: &[u8]| validate(bytes, &Limits::WIRE).unwrap_err().fault;
        assert_eq!(fault(&[6, 0, 0, 0, 0, 0]), Fault::Length);
        assert_eq!(fault(&[8, 0, 0, 0, 0x20, b'a', 0, 0]), Fault::UnknownType(0x20));
        assert_eq!(fault(&[9, 0, 0, 0, 8, b'a', 0, 2, 0]), Fault::Bool(2));
        assert_eq!(fault(&[8, 0, 0, 0, 10, 0xff, 0, 0]), Fault::Utf8);
        assert_eq!(fault(&[14, 0, 0, 0, 2, b'a', 0, 2, 0, 0, 0, 0xff, 0, 0]), Fault::Utf8);
        assert_eq!(fault(&[14, 0, 0, 0, 2, b'a', 0, 2, 0, 0, 0, b'x', 1, 0]), Fault::Terminator);
        let small = Limits { bytes_max: 4, depth_max: 9 };
        assert_eq!(validate(&[5, 0, 0, 0, 0], &small).unwrap_err().fault, Fault::Size);
    }

    #[test]
    fn depth_is_counted_not_recursed() {
        let nested = |levels: usize| {
            let mut bytes = vec![5, 0, 0, 0, 0];
            for _ in 1..levels {
                let mut outer = ((bytes.len() + 8) as u32).to_le_bytes().to_vec();
                outer.extend_from_slice(&[3, b'a', 0]);
                outer.extend_from_slice(&bytes);
                outer.push(0);
                bytes = outer;
            }
            bytes
        };
        assert!(validate(&nested(201), &Limits::WIRE).is_ok());
        let error = validate(&nested(202), &Limits::WIRE).unwrap_err();
        assert_eq!((error.fault, error.code()), (Fault::Depth, ErrorCode::Overflow));
        assert!(validate(&nested(20_000), &Limits::WIRE).is_err());
        assert!(Error::from(error).message().contains("depth"));
    }
}
