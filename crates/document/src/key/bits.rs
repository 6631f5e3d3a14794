//! Type bits: the facts about values that a key does not contain, so that the values can be
//! restored exactly.
//!
//! The bits form a stream, lowest bit first, in the order of the values in the key. Zero bits at
//! the end are not stored, so a key of strings and ints has no type bits.

use smallvec::SmallVec;

/// Collects type bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeBits {
    bytes: SmallVec<[u8; 16]>,
    len: usize,
}

/// Reads type bits. After the end all bits are zero.
#[derive(Clone, Debug)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl TypeBits {
    /// Returns a list without bits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all bits and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.len = 0;
    }

    /// Returns the bytes to store: those up to the last bit that is not zero.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends the lowest `count` bits of `bits`.
    pub(super) fn push(&mut self, bits: u128, count: u32) {
        if bits == 0 {
            self.len += count as usize;
            return;
        }
        for i in 0..count {
            if bits >> i & 1 == 1 {
                let at = self.len + i as usize;
                if self.bytes.len() <= at / 8 {
                    self.bytes.resize(at / 8 + 1, 0);
                }
                self.bytes[at / 8] |= 1 << (at % 8);
            }
        }
        self.len += count as usize;
    }
}

impl<'a> BitReader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        BitReader { bytes, at: 0 }
    }

    pub(super) fn take(&mut self, count: u32) -> u128 {
        let mut bits = 0;
        for i in 0..count {
            let byte = self.bytes.get(self.at / 8).copied().unwrap_or(0);
            bits |= ((byte >> (self.at % 8) & 1) as u128) << i;
            self.at += 1;
        }
        bits
    }
}
