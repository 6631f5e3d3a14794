//! Reads and writes numbers of variable length, and checks each length against the bytes that are
//! left.

use quire_error::{Error, ErrorCode, Result};

/// Returns a `DataCorruptionDetected` (301) for bytes that are no bucket.
pub(crate) fn damaged(what: &str) -> Error {
    Error::new(
        ErrorCode::DataCorruptionDetected,
        format!("stored data is damaged: a bucket of points: {what}"),
    )
}

/// Appends a number in groups of seven bits, the lowest first.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a signed number; those near zero are short.
pub(crate) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_varint(out, zigzag(number));
}

/// Appends a length and as many bytes.
pub(crate) fn put_blob(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Returns the number whose low bit is the sign.
const fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

/// Returns how many bytes [`put_varint`] writes.
pub(crate) const fn varint_len(number: u64) -> usize {
    ((64 - (number | 1).leading_zeros()) as usize).div_ceil(7)
}

/// Returns how many bytes [`put_signed`] writes.
pub(crate) const fn signed_len(number: i64) -> usize {
    varint_len(zigzag(number))
}

/// The bytes that have not been read.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    /// Returns a reader of `bytes`.
    pub const fn new(bytes: &'b [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// Returns how many bytes are left.
    pub const fn left(&self) -> usize {
        self.rest.len()
    }

    /// Reads one byte.
    pub fn byte(&mut self) -> Result<u8> {
        let (first, rest) = self.rest.split_first().ok_or_else(|| damaged("it ends early"))?;
        self.rest = rest;
        Ok(*first)
    }

    /// Reads `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'b [u8]> {
        let (bytes, rest) =
            self.rest.split_at_checked(count).ok_or_else(|| damaged("it ends early"))?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Reads eight bytes as a little-endian number.
    pub fn word(&mut self) -> Result<u64> {
        let (bytes, rest) =
            self.rest.split_first_chunk::<8>().ok_or_else(|| damaged("it ends early"))?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    /// Reads a number that [`put_varint`] wrote.
    pub fn varint(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(damaged("a number is too long"))
    }

    /// Reads a number that [`put_signed`] wrote.
    pub fn signed(&mut self) -> Result<i64> {
        let number = self.varint()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads a number from 0 to `max`.
    pub fn count(&mut self, max: usize) -> Result<usize> {
        let number = self.varint()?;
        usize::try_from(number)
            .ok()
            .filter(|count| *count <= max)
            .ok_or_else(|| damaged("a number is too large"))
    }

    /// Reads a length and as many bytes.
    pub fn blob(&mut self) -> Result<&'b [u8]> {
        let count = self.count(self.left())?;
        self.take(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let mut numbers: Vec<i64> = (0..63).flat_map(|bit| [1 << bit, -(1 << bit)]).collect();
        numbers.extend([0, i64::MIN, i64::MAX]);
        for number in numbers {
            let mut bytes = Vec::new();
            put_signed(&mut bytes, number);
            assert_eq!(bytes.len(), signed_len(number));
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.signed().unwrap(), number);
            assert_eq!(reader.left(), 0);
        }
    }

    #[test]
    fn numbers_that_are_too_long_are_errors() {
        for bytes in [vec![0x80; 11], vec![0x80; 3], [vec![0xff; 9], vec![2]].concat()] {
            assert!(Reader::new(&bytes).varint().is_err());
        }
    }
}
