//! Whether bytes from outside are one whole document. What passes here may be viewed as a `Doc`.
//!
//! Checked: every length and terminator, type bytes, booleans, UTF-8 of strings and names, depth,
//! size. Duplicate names and deprecated types pass, and the names in arrays are not looked at.

use crate::{Doc, doc::first_zero, limits::Limits};
use quire_error::{Error, ErrorCode};
use smallvec::SmallVec;
use std::fmt;

/// What is wrong with the bytes, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidationError {
    /// The kind of damage.
    pub fault: Fault,
    /// The offset at which it was noticed.
    pub offset: usize,
}

/// The kinds of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A length does not fit what stands around it.
    Length,
    /// A document, a string or a name does not end with a zero.
    Terminator,
    /// No BSON type has this byte.
    UnknownType(u8),
    /// A boolean is neither 0 nor 1.
    Bool(u8),
    /// Text is not UTF-8.
    Utf8,
    /// More nested documents than allowed.
    Depth,
    /// More bytes than allowed.
    Size,
}

/// Checks that `bytes` are one document and nothing more.
pub fn validate<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Doc<'a>, ValidationError> {
    if bytes.len() > limits.bytes_max {
        return Err(ValidationError { fault: Fault::Size, offset: 0 });
    }
    let mut walk = Walk { bytes, at: 0, end: bytes.len(), ends: SmallVec::new() };
    match walk.run(limits.depth_max) {
        Ok(()) => Ok(Doc::from_valid_bytes(bytes)),
        Err(fault) => Err(ValidationError { fault, offset: walk.at }),
    }
}

/// The declared length of the document at the start of `bytes`, if it can be one (5 at least).
pub fn declared_length(bytes: &[u8]) -> Option<usize> {
    let length = i32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
    usize::try_from(length).ok().filter(|&length| length >= 5)
}

struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the innermost open document ends, terminator included.
    end: usize,
    /// The same of the documents around it.
    ends: SmallVec<[usize; 16]>,
}

/// How the value of a type byte is checked; everything of a fixed size is one row.
#[derive(Clone, Copy)]
enum Shape {
    Fixed(u8),
    Text,
    Nested,
    Binary,
    Bool,
    Regex,
    Pointer,
    CodeWithScope,
    Unknown,
}

static SHAPES: [Shape; 256] = {
    let mut shapes = [Shape::Unknown; 256];
    shapes[0x01] = Shape::Fixed(8);
    shapes[0x02] = Shape::Text;
    shapes[0x03] = Shape::Nested;
    shapes[0x04] = Shape::Nested;
    shapes[0x05] = Shape::Binary;
    shapes[0x06] = Shape::Fixed(0);
    shapes[0x07] = Shape::Fixed(12);
    shapes[0x08] = Shape::Bool;
    shapes[0x09] = Shape::Fixed(8);
    shapes[0x0A] = Shape::Fixed(0);
    shapes[0x0B] = Shape::Regex;
    shapes[0x0C] = Shape::Pointer;
    shapes[0x0D] = Shape::Text;
    shapes[0x0E] = Shape::Text;
    shapes[0x0F] = Shape::CodeWithScope;
    shapes[0x10] = Shape::Fixed(4);
    shapes[0x11] = Shape::Fixed(8);
    shapes[0x12] = Shape::Fixed(8);
    shapes[0x13] = Shape::Fixed(16);
    shapes[0x7F] = Shape::Fixed(0);
    shapes[0xFF] = Shape::Fixed(0);
    shapes
};

impl Walk<'_> {
    fn run(&mut self, depth_max: usize) -> Result<(), Fault> {
        self.open(self.bytes.len(), depth_max)?;
        if self.end != self.bytes.len() {
            return Err(Fault::Length);
        }
        loop {
            let byte = *self.bytes.get(self.at).ok_or(Fault::Terminator)?;
            if byte == 0 {
                self.at += 1;
                if self.at != self.end {
                    return Err(Fault::Length);
                }
                match self.ends.pop() {
                    Some(end) if !self.ends.is_empty() => self.end = end,
                    _ => return Ok(()),
                }
                continue;
            }
            self.at += 1;
            self.name()?;
            match SHAPES[byte as usize] {
                Shape::Fixed(size) => self.skip(size as usize)?,
                Shape::Text => self.text()?,
                Shape::Nested => self.open(self.end - 1, depth_max)?,
                Shape::Binary => self.binary()?,
                Shape::Bool => self.boolean()?,
                Shape::Regex => {
                    self.name()?;
                    self.name()?;
                }
                Shape::Pointer => {
                    self.text()?;
                    self.skip(12)?;
                }
                Shape::CodeWithScope => self.code_with_scope(depth_max)?,
                Shape::Unknown => {
                    self.at -= 1;
                    return Err(Fault::UnknownType(byte));
                }
            }
        }
    }

    /// Enters a document that has to end at or before `limit`.
    fn open(&mut self, limit: usize, depth_max: usize) -> Result<(), Fault> {
        let length = self.length()?;
        if length < 5 || length > limit.saturating_sub(self.at) {
            return Err(Fault::Length);
        }
        if self.ends.len() >= depth_max {
            return Err(Fault::Depth);
        }
        self.ends.push(self.end);
        self.end = self.at + length;
        self.at += 4;
        Ok(())
    }

    /// The length that stands here; does not move.
    #[inline]
    fn length(&self) -> Result<usize, Fault> {
        let bytes = self.bytes.get(self.at..self.at + 4).ok_or(Fault::Length)?;
        let length = bytes.try_into().map(i32::from_le_bytes).map_err(|_| Fault::Length)?;
        usize::try_from(length).map_err(|_| Fault::Length)
    }

    /// Moves over `size` bytes that have to leave room for the document's terminator.
    #[inline]
    fn skip(&mut self, size: usize) -> Result<(), Fault> {
        if size >= self.end - self.at {
            return Err(Fault::Length);
        }
        self.at += size;
        Ok(())
    }

    /// Moves over a name: bytes up to a zero.
    #[inline]
    fn name(&mut self) -> Result<(), Fault> {
        let rest = self.bytes.get(self.at..self.end - 1).ok_or(Fault::Terminator)?;
        if let Some(word) = rest.first_chunk::<8>() {
            let word = u64::from_le_bytes(*word);
            if let Some(length) = first_zero(word)
                && word & 0x8080_8080_8080_8080 & ((1 << (8 * length)) - 1) == 0
            {
                self.at += length + 1;
                return Ok(());
            }
        }
        let mut seen = 0u8;
        let mut length = None;
        for (at, &byte) in rest.iter().enumerate() {
            if byte == 0 {
                length = Some(at);
                break;
            }
            seen |= byte;
        }
        let length = length.ok_or(Fault::Terminator)?;
        if seen >= 0x80 {
            std::str::from_utf8(&rest[..length]).map_err(|_| Fault::Utf8)?;
        }
        self.at += length + 1;
        Ok(())
    }

    /// Moves over a string: length, text, zero.
    #[inline]
    fn text(&mut self) -> Result<(), Fault> {
        let length = self.length()?;
        let start = self.at + 4;
        if length == 0 || length >= self.end.saturating_sub(start) {
            return Err(Fault::Length);
        }
        let bytes = self.bytes.get(start..start + length).ok_or(Fault::Length)?;
        match bytes.split_last() {
            Some((0, text)) if text.is_ascii() || std::str::from_utf8(text).is_ok() => {}
            Some((0, _)) => return Err(Fault::Utf8),
            _ => return Err(Fault::Terminator),
        }
        self.at = start + length;
        Ok(())
    }

    fn binary(&mut self) -> Result<(), Fault> {
        let length = self.length()?;
        self.skip(5)?;
        self.skip(length)
    }

    fn boolean(&mut self) -> Result<(), Fault> {
        match self.bytes.get(self.at) {
            Some(0 | 1) => self.skip(1),
            Some(&byte) => Err(Fault::Bool(byte)),
            None => Err(Fault::Length),
        }
    }

    /// Moves over the code and enters the scope, which has to end where the whole value does.
    fn code_with_scope(&mut self, depth_max: usize) -> Result<(), Fault> {
        let (start, length) = (self.at, self.length()?);
        if length < 14 || length >= self.end.saturating_sub(start) {
            return Err(Fault::Length);
        }
        self.at += 4;
        self.text()?;
        let end = start + length;
        if self.at > end || self.length()? != end - self.at {
            return Err(Fault::Length);
        }
        self.open(end, depth_max)
    }
}

impl ValidationError {
    /// MongoDB's code for it.
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
        assert!(validate(&nested(200), &Limits::WIRE).is_ok());
        let error = validate(&nested(201), &Limits::WIRE).unwrap_err();
        assert_eq!((error.fault, error.code()), (Fault::Depth, ErrorCode::Overflow));
        assert!(validate(&nested(20_000), &Limits::WIRE).is_err());
        assert!(Error::from(error).message().contains("depth"));
    }
}
