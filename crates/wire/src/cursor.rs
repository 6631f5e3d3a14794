//! Reads numbers, names and documents from the front of a slice, never past its end.

use crate::Malformed;
use quire_document::Doc;
use quire_document::limits::Limits;
use quire_error::{Error, ErrorCode};

/// The bytes that have not been read yet.
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Cursor { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(|| short(count))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn name(&mut self) -> Result<&'a str, Malformed> {
        let end = self.rest.iter().position(|&byte| byte == 0);
        let end = end.ok_or_else(|| Malformed::hang_up("a name in the message does not end"))?;
        let name = self.take(end)?;
        self.take(1)?;
        std::str::from_utf8(name).map_err(|_| invalid("a name in the message is not UTF-8"))
    }

    /// Reads and validates the document at the front.
    pub(crate) fn document(&mut self) -> Result<Doc<'a>, Malformed> {
        let length = self.rest.first_chunk::<4>().map(|bytes| i32::from_le_bytes(*bytes));
        let length = length.and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
        if length < 5 || length > self.rest.len() {
            let available = self.rest.len();
            let text = format!(
                "bson length doesn't match what we found: {length} with {available} bytes left"
            );
            return Err(invalid(text));
        }
        let bytes = self.take(length)?;
        quire_document::validate(bytes, &Limits::WIRE)
            .map_err(|error| Malformed::Answer(error.into()))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or_else(|| short(N))?;
        self.rest = rest;
        Ok(*taken)
    }
}

fn short(count: usize) -> Malformed {
    Malformed::hang_up(format!("the message ends where {count} more bytes were announced"))
}

/// Returns an `InvalidBSON` (22), which the client gets as the reply.
pub(crate) fn invalid(message: impl Into<String>) -> Malformed {
    Malformed::Answer(Error::new(ErrorCode::InvalidBSON, message))
}
