//! Reads numbers and slices of bytes, and never past their end.

use std::ops::Range;

/// A position in some bytes.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Starts at the offset `at`, which may be past the end.
    pub fn starting_at(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// Returns the offset of the next byte to read.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Returns the bytes of a range of offsets.
    pub fn bytes(&self, range: Range<usize>) -> Option<&'a [u8]> {
        self.bytes.get(range)
    }

    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }
}
