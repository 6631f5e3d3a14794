//! What blocks of rows and blocks of an index have in common.
//!
//! lsm-tree 3.1 ends the entries of a block with a byte 255. After it follow the offsets of the
//! entries with whole keys, one in `interval`, and a trailer that points to these offsets. Numbers
//! are LEB128; those of the trailer are little endian.

use std::ops::Range;

/// The byte after the last entry.
pub(crate) const END: u8 = 255;
/// The size of the trailer, in bytes.
const TRAILER_BYTES: usize = 31;

/// The error of bytes that are not a block of the expected kind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotRows;

/// Where the entries with whole keys are.
#[derive(Debug, Default)]
pub(crate) struct WholeKeys {
    /// The distance between two entries with whole keys; 1 if all keys are whole.
    pub interval: usize,
    /// The range of the offsets; each has `step` bytes.
    range: Range<usize>,
    step: usize,
}

impl WholeKeys {
    /// Reads the trailer of a block.
    pub fn read(data: &[u8]) -> Result<Self, NotRows> {
        let at = data.len().checked_sub(TRAILER_BYTES).ok_or(NotRows)?;
        let mut trailer = Fields { data, at };
        let (interval, step) = (trailer.byte()?, trailer.byte()?);
        let (count, from) = (trailer.long()?, trailer.long()?);
        let bytes = count.checked_mul(usize::from(step)).ok_or(NotRows)?;
        let to = from.checked_add(bytes).filter(|to| *to <= at).ok_or(NotRows)?;
        if interval == 0 || !matches!(step, 2 | 4) {
            return Err(NotRows);
        }
        Ok(Self { interval: usize::from(interval), range: from..to, step: usize::from(step) })
    }

    /// Returns the number of entries with whole keys.
    pub fn count(&self) -> usize {
        self.range.len() / self.step.max(1)
    }

    /// Returns the offset of the `number`th entry with a whole key.
    #[inline]
    pub fn at(&self, data: &[u8], number: usize) -> Result<usize, NotRows> {
        let mut fields = Fields { data, at: self.range.start + number * self.step };
        if self.step == 4 { fields.long() } else { fields.short() }
    }
}

/// Appends a number.
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends what follows the last of `count` entries to a block that begins at `from`. `wholes` are the
/// offsets in the block of the entries with whole keys, one in `interval`.
pub(crate) fn end_entries(
    block: &mut Vec<u8>,
    from: usize,
    interval: u8,
    wholes: &[u32],
    count: u32,
) {
    block.push(END);
    let at = (block.len() - from) as u32;
    let is_short = wholes.last().is_none_or(|last| u16::try_from(*last).is_ok());
    for offset in wholes {
        let bytes = offset.to_le_bytes();
        block.extend_from_slice(if is_short { &bytes[..2] } else { &bytes });
    }
    block.extend([interval, if is_short { 2 } else { 4 }]);
    block.extend((wholes.len() as u32).to_le_bytes());
    block.extend(at.to_le_bytes());
    // No index by hashes: its length and its offset.
    block.extend([0; 8]);
    // Keys are shortened. Keys and values have no fixed size.
    block.extend([1, 0, 0, 0, 0, 0, 0, 0, 0]);
    block.extend(count.to_le_bytes());
}

/// A reader of the fields of a block.
pub(crate) struct Fields<'b> {
    pub data: &'b [u8],
    pub at: usize,
}

impl<'b> Fields<'b> {
    #[inline]
    pub fn take(&mut self, length: usize) -> Result<&'b [u8], NotRows> {
        let taken = self.data.get(self.at..self.at + length).ok_or(NotRows)?;
        self.at += length;
        Ok(taken)
    }

    #[inline]
    pub fn byte(&mut self) -> Result<u8, NotRows> {
        let byte = self.data.get(self.at).ok_or(NotRows)?;
        self.at += 1;
        Ok(*byte)
    }

    fn short(&mut self) -> Result<usize, NotRows> {
        let bytes = self.take(2)?.try_into().map_err(|_| NotRows)?;
        Ok(usize::from(u16::from_le_bytes(bytes)))
    }

    fn long(&mut self) -> Result<usize, NotRows> {
        let bytes = self.take(4)?.try_into().map_err(|_| NotRows)?;
        usize::try_from(u32::from_le_bytes(bytes)).map_err(|_| NotRows)
    }

    #[inline]
    pub fn number(&mut self) -> Result<u64, NotRows> {
        let byte = self.byte()?;
        if byte < 0x80 { Ok(u64::from(byte)) } else { self.long_number(byte) }
    }

    fn long_number(&mut self, mut byte: u8) -> Result<u64, NotRows> {
        let mut number = u64::from(byte & 0x7f);
        let mut shift = 7;
        while byte >= 0x80 {
            byte = self.byte()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift).ok_or(NotRows)?;
            shift += 7;
        }
        Ok(number)
    }

    #[inline]
    pub fn length(&mut self) -> Result<usize, NotRows> {
        let length = self.number()?;
        // A block is shorter than 4 GiB, and sums of two such lengths cannot overflow.
        u32::try_from(length).map(|length| length as usize).map_err(|_| NotRows)
    }
}
