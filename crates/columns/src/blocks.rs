//! Blocks of 128 integers: the smallest, and the bits of the differences from it. The few numbers of
//! a block that need more bits than the others are exceptions.
//!
//! Source: frame of reference with patches, Zukowski et al., "Super-Scalar RAM-CPU Cache
//! Compression" (ICDE 2006).

use quire_error::Result;

use crate::bytes::{Reader, damaged, put_signed, put_varint, signed_len};

/// The numbers of a block; the last one has fewer.
pub(crate) const BLOCK: usize = 128;

/// The bit of a width that says that exceptions follow.
const HAS_EXCEPTIONS: u8 = 0x80;

/// The largest packed block in bytes, and room for reading words at its end.
const PADDED: usize = BLOCK * 8 + 16;

/// How a block is stored.
struct Shape {
    base: i64,
    width: u32,
    exceptions: usize,
    bytes: usize,
}

/// Returns the shape of a block that takes the fewest bytes, about.
fn shape(numbers: &[i64]) -> Shape {
    let base = numbers.iter().copied().min().unwrap_or(0);
    let widths = Widths::new(numbers, base);
    let best = widths.shape(numbers.len(), base);
    // If most numbers are far above the smallest, then a few small ones are the exceptions.
    if widths.count[widths.widest as usize] * 4 <= numbers.len() * 3 {
        return best;
    }
    let is_far = |number: &i64| width_of(number.wrapping_sub(base) as u64) == widths.widest;
    let base = numbers.iter().copied().filter(is_far).min().unwrap_or(base);
    let other = Widths::new(numbers, base).shape(numbers.len(), base);
    if other.bytes < best.bytes { other } else { best }
}

/// How many numbers of a block have each width above a base.
struct Widths {
    count: [usize; 65],
    widest: u32,
}

impl Widths {
    fn new(numbers: &[i64], base: i64) -> Widths {
        let mut count = [0; 65];
        for number in numbers {
            count[width_of(number.wrapping_sub(base) as u64) as usize] += 1;
        }
        let widest = count.iter().rposition(|count| *count > 0).unwrap_or(0) as u32;
        Widths { count, widest }
    }

    /// Returns the best shape with this base.
    fn shape(&self, numbers: usize, base: i64) -> Shape {
        let packed = |width: u32| (numbers * width as usize).div_ceil(8);
        let (head, width) = (signed_len(base) + 1, self.widest);
        let mut best = Shape { base, width, exceptions: 0, bytes: head + packed(width) };
        let mut exceptions = 0;
        for width in (0..self.widest).rev() {
            exceptions += self.count[width as usize + 1];
            if exceptions > numbers / 4 {
                break;
            }
            // A position, and the bits above the width.
            let above = (width + 1..=self.widest)
                .map(|wider| self.count[wider as usize] * (wider - width).div_ceil(7) as usize);
            let bytes = head + 1 + packed(width) + exceptions + above.sum::<usize>();
            if bytes < best.bytes {
                best = Shape { base, width, exceptions, bytes };
            }
        }
        best
    }
}

/// Returns about how many bytes [`encode`] writes.
pub(crate) fn size(numbers: &[i64]) -> usize {
    numbers.chunks(BLOCK).map(|block| shape(block).bytes).sum()
}

/// Appends the blocks of `numbers`.
pub(crate) fn encode(numbers: &[i64], out: &mut Vec<u8>) {
    let mut offsets = [0u64; BLOCK];
    for block in numbers.chunks(BLOCK) {
        let Shape { base, width, exceptions, .. } = shape(block);
        for (offset, number) in offsets.iter_mut().zip(block) {
            *offset = number.wrapping_sub(base) as u64;
        }
        put_signed(out, base);
        if exceptions == 0 {
            out.push(width as u8);
        } else {
            out.push(width as u8 | HAS_EXCEPTIONS);
            out.push(exceptions as u8);
            for (at, offset) in offsets.iter().enumerate().take(block.len()) {
                // An exception has a width below 64.
                if offset >> width > 0 {
                    out.push(at as u8);
                    put_varint(out, offset >> width);
                }
            }
        }
        pack_bits(&offsets[..block.len()], width, out);
    }
}

/// Reads `count` numbers that [`encode`] wrote.
pub(crate) fn decode(reader: &mut Reader<'_>, count: usize, out: &mut Vec<i64>) -> Result<()> {
    let mut offsets = [0u64; BLOCK];
    let mut left = count;
    while left > 0 {
        let offsets = &mut offsets[..left.min(BLOCK)];
        left -= offsets.len();
        let base = reader.signed()?;
        let byte = reader.byte()?;
        let width = u32::from(byte & !HAS_EXCEPTIONS);
        let mut patches = *reader;
        if byte & HAS_EXCEPTIONS != 0 {
            for _ in 0..reader.byte()? {
                reader.byte()?;
                reader.varint()?;
            }
        }
        unpack_bits(reader, width, offsets)?;
        if byte & HAS_EXCEPTIONS != 0 {
            for _ in 0..patches.byte()? {
                let at = usize::from(patches.byte()?);
                let high = patches.varint()?.checked_shl(width).unwrap_or(0);
                *offsets.get_mut(at).ok_or_else(|| damaged("an exception"))? |= high;
            }
        }
        out.extend(offsets.iter().map(|offset| base.wrapping_add(*offset as i64)));
    }
    Ok(())
}

/// Returns how many bits a number has.
pub(crate) const fn width_of(number: u64) -> u32 {
    64 - number.leading_zeros()
}

/// Appends the low `width` bits of each number.
pub(crate) fn pack_bits(numbers: &[u64], width: u32, out: &mut Vec<u8>) {
    let mask = mask(width);
    let (mut word, mut bits) = (0u128, 0);
    for number in numbers {
        word |= u128::from(number & mask) << bits;
        bits += width;
        if bits >= 64 {
            out.extend_from_slice(&(word as u64).to_le_bytes());
            word >>= 64;
            bits -= 64;
        }
    }
    let bytes = (bits as usize).div_ceil(8);
    out.extend_from_slice(&word.to_le_bytes()[..bytes]);
}

/// Reads a number of `width` bits for each place in `out`, which has at most [`BLOCK`] places.
pub(crate) fn unpack_bits(reader: &mut Reader<'_>, width: u32, out: &mut [u64]) -> Result<()> {
    if width > 64 || out.len() > BLOCK {
        return Err(damaged("a width"));
    }
    if width == 0 {
        out.fill(0);
        return Ok(());
    }
    let bytes = reader.take((out.len() * width as usize).div_ceil(8))?;
    let mut padded = [0u8; PADDED];
    padded[..bytes.len()].copy_from_slice(bytes);
    let mask = mask(width);
    if width <= 57 {
        let mut bit = 0;
        for number in out {
            let word = padded[bit / 8..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
            *number = word >> (bit % 8) & mask;
            bit += width as usize;
        }
    } else {
        let mut bit = 0;
        for number in out {
            let word = padded[bit / 8..].first_chunk().map_or(0, |word| u128::from_le_bytes(*word));
            *number = (word >> (bit % 8)) as u64 & mask;
            bit += width as usize;
        }
    }
    Ok(())
}

const fn mask(width: u32) -> u64 {
    match width {
        0 => 0,
        width => u64::MAX >> (64 - width),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::testing::Generator;

    fn round_trip(numbers: &[i64]) -> usize {
        let mut bytes = Vec::new();
        encode(numbers, &mut bytes);
        let (mut reader, mut back) = (Reader::new(&bytes), Vec::new());
        decode(&mut reader, numbers.len(), &mut back).unwrap();
        assert_eq!(back, numbers);
        assert_eq!(reader.left(), 0);
        bytes.len()
    }

    #[test]
    fn every_width_comes_back() {
        let mut generator = Generator::new(1);
        for width in 0..=64 {
            for count in [1, 2, 7, 127, 128, 129, 300] {
                let number = |_| (generator.bits() & mask(width)) as i64;
                let numbers: Vec<i64> = (0..count).map(number).collect();
                round_trip(&numbers);
            }
        }
    }

    #[test]
    fn outliers_are_exceptions() {
        let mut numbers = vec![3; 128];
        numbers[5] = i64::MAX;
        numbers[100] = 900;
        // A base, a width, a count, and two exceptions of 9 and 2 bytes with their positions.
        assert!(round_trip(&numbers) <= 3 + 1 + 9 + 1 + 2);
        numbers[7] = i64::MIN;
        round_trip(&numbers);
    }
}
