//! Type bits: what a key does not say about its values, so that they can be given back exactly.
//!
//! A stream of bits, lowest first, in the order in which the values stand in the key. Zero bits at
//! the end are not stored: a key of strings and ints has no type bits at all.

use smallvec::SmallVec;

/// Collects type bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeBits {
    bytes: SmallVec<[u8; 16]>,
    len: usize,
}

/// Reads type bits back; past the end all bits are zero.
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

    /// Forgets all bits; the memory stays.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.len = 0;
    }

    /// What is to be stored: the bytes up to the last bit that is not zero.
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
