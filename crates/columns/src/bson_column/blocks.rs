//! Blocks of eight bytes with one to sixty numbers each, and runs of the last number.
//!
//! The low four bits of a block, its *selector*, say how many bits a number has. The numbers follow from the low bits up. One
//! whose bits are all set is missing. Blocks with the selectors 7 and 8 have four more bits, an extension. Unless that is 0,
//! a number has its count of trailing zeros in its low bits. A block with the selector 15 repeats the last number 120 to
//! 1,920 times.

use quire_error::Result;

use super::malformed;

/// The bits of a number, by selector.
pub(super) const BITS: [u32; 15] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 60];
/// The bits of a number without its count of zeros, by the extension of selector 7.
pub(super) const BITS_OF_7: [u32; 10] = [0, 2, 3, 4, 5, 7, 10, 14, 24, 52];
/// The same for selector 8. The count of zeros has four bits, from the eighth extension on five.
pub(super) const BITS_OF_8: [u32; 14] = [0, 4, 5, 7, 10, 14, 24, 52, 4, 6, 9, 13, 23, 51];
/// The selector of a run.
const RUN: u64 = 15;
/// The numbers of the shortest run.
pub(super) const RUN_NUMBERS: u32 = 120;

/// The numbers of some blocks, one after another.
#[derive(Debug, Default)]
pub(super) struct Blocks<'a> {
    /// The blocks that have not been opened.
    words: &'a [u8],
    /// The numbers of the open block that have not been read, the next one in the low bits.
    rest: u64,
    /// How many these are.
    left: u32,
    /// True if the open block is a run.
    is_run: bool,
    packing: Packing,
    /// The last number, which a run repeats, even one in other blocks; `None` for a missing one.
    last: Option<u128>,
}

/// How the numbers of a block are packed.
#[derive(Clone, Copy, Debug, Default)]
struct Packing {
    value_bits: u32,
    zero_bits: u32,
    /// What a count of zeros is multiplied with.
    zero_step: u32,
}

impl<'a> Blocks<'a> {
    /// Goes on with other blocks. A run at their beginning repeats the last number of the blocks before.
    pub fn begin(&mut self, words: &'a [u8]) {
        self.words = words;
        self.left = 0;
    }

    /// Forgets the last number: a run would repeat zero.
    pub fn reset(&mut self) {
        *self = Blocks { last: Some(0), ..Blocks::default() };
    }

    /// Returns true if all numbers have been read.
    pub fn is_done(&self) -> bool {
        self.left == 0 && self.words.is_empty()
    }

    /// Returns the next number of at most 64 (`is_wide`: 128) bits; `Some(None)` for a missing one, `None` at the end.
    ///
    /// # Errors
    /// 378 NonConformantBSON for a selector that does not exist.
    pub fn next(&mut self, is_wide: bool) -> Result<Option<Option<u128>>> {
        if self.left == 0 {
            let Some((word, rest)) = self.words.split_first_chunk::<8>() else { return Ok(None) };
            self.words = rest;
            self.open(u64::from_le_bytes(*word))?;
        }
        self.left -= 1;
        if !self.is_run {
            let bits = self.packing.value_bits + self.packing.zero_bits;
            let mask = (1_u64 << bits) - 1;
            let number = self.rest & mask;
            self.rest >>= bits;
            self.last = (number != mask).then(|| self.packing.unpack(number, is_wide));
        }
        Ok(Some(self.last))
    }

    fn open(&mut self, word: u64) -> Result<()> {
        let (selector, extension) = (word & 0x0F, word >> 4 & 0x0F);
        self.is_run = selector == RUN;
        if self.is_run {
            self.left = (extension as u32 + 1) * RUN_NUMBERS;
            return Ok(());
        }
        let unknown = || malformed("a block has a selector that does not exist");
        let of = |table: &[u32], at: u64| table.get(at as usize).copied().ok_or_else(unknown);
        let header = if matches!(selector, 7 | 8) { 8 } else { 4 };
        self.packing = match (selector, extension) {
            (0, _) => return Err(unknown()),
            (7, 1..) => {
                Packing { value_bits: of(&BITS_OF_7, extension)?, zero_bits: 4, zero_step: 1 }
            }
            (8, 1..) => Packing {
                value_bits: of(&BITS_OF_8, extension)?,
                zero_bits: if extension < 8 { 4 } else { 5 },
                zero_step: 4,
            },
            _ => Packing { value_bits: of(&BITS, selector)?, ..Packing::default() },
        };
        self.rest = word >> header;
        self.left = (64 - header) / (self.packing.value_bits + self.packing.zero_bits);
        Ok(())
    }
}

impl Packing {
    fn unpack(self, number: u64, is_wide: bool) -> u128 {
        let zeros = (number & ((1 << self.zero_bits) - 1)) as u32 * self.zero_step;
        let value = number >> self.zero_bits;
        match is_wide {
            true => u128::from(value) << zeros,
            false => u128::from(value << (zeros % u64::BITS)),
        }
    }
}
