//! Doubles: as decimals, if they have few digits after the point, otherwise as their bits, xored or
//! as integers, whichever takes the fewest bytes.
//!
//! Sources: decimals, Afroozeh and Boncz, "ALP: Adaptive Lossless floating-Point Compression"
//! (SIGMOD 2024); xor, Pelkonen et al., "Gorilla" (VLDB 2015), with blocks in place of single values.

use quire_error::Result;

use crate::blocks::{BLOCK, pack_bits, unpack_bits, width_of};
use crate::bytes::{Reader, damaged, put_varint};
use crate::integers;

/// The largest exponent of ten; methods up to it are decimals.
const EXPONENT_MAX: u8 = 18;
const XOR: u8 = 32;
const BITS: u8 = 33;

/// The powers of ten, which doubles represent exactly.
const POWERS: [f64; EXPONENT_MAX as usize + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18,
];

/// Up to this absolute value a product with a power of ten is near enough to its integer.
const INTEGER_MAX: f64 = (1u64 << 51) as f64;

/// The number of doubles of which the exponent is computed.
const SAMPLES: usize = 64;

/// Appends `numbers` in the format of a bucket.
pub(crate) fn encode(numbers: &[f64], out: &mut Vec<u8>) {
    if numbers.is_empty() {
        return;
    }
    let (mut decimals, has_exceptions) = encode_decimals(numbers).unwrap_or_default();
    // Without exceptions nothing else is nearly as short.
    if decimals.is_empty() || has_exceptions {
        for bytes in [encode_xor(numbers), encode_bits(numbers)] {
            if decimals.is_empty() || bytes.len() < decimals.len() {
                decimals = bytes;
            }
        }
    }
    out.extend_from_slice(&decimals);
}

/// Returns the numbers as decimals and whether some are exceptions; `None` if many would be.
fn encode_decimals(numbers: &[f64]) -> Option<(Vec<u8>, bool)> {
    let (usual, largest) = exponents(numbers)?;
    let decimals = with_exponent(numbers, usual);
    if usual == largest || decimals.as_ref().is_some_and(|(_, has_exceptions)| !has_exceptions) {
        return decimals;
    }
    let others = with_exponent(numbers, largest);
    match (decimals, others) {
        (Some(a), Some(b)) => Some(if a.0.len() <= b.0.len() { a } else { b }),
        (a, b) => a.or(b),
    }
}

/// Returns the numbers as integers over a power of ten, as [`encode_decimals`].
fn with_exponent(numbers: &[f64], exponent: u8) -> Option<(Vec<u8>, bool)> {
    let exceptions_max = numbers.len() / 8;
    let mut exceptions = Vec::new();
    let mut integers = Vec::with_capacity(numbers.len());
    let mut last = 0;
    for (at, number) in numbers.iter().enumerate() {
        match decimal(*number, exponent) {
            Some(integer) => last = integer,
            None if exceptions.len() == exceptions_max => return None,
            None => exceptions.push((at, *number)),
        }
        integers.push(last);
    }
    let mut bytes = vec![exponent];
    put_varint(&mut bytes, exceptions.len() as u64);
    let mut before = 0;
    for (at, number) in &exceptions {
        put_varint(&mut bytes, (at - before) as u64);
        bytes.extend_from_slice(&number.to_bits().to_le_bytes());
        before = *at;
    }
    integers::encode(&integers, &mut bytes);
    Some((bytes, !exceptions.is_empty()))
}

/// Returns two exponents: one with which most of some numbers are decimals, and one for all of them
/// that are decimals at all. Returns `None` if few are.
fn exponents(numbers: &[f64]) -> Option<(u8, u8)> {
    // How many samples need each exponent.
    let mut needed = [0usize; EXPONENT_MAX as usize + 1];
    let step = numbers.len().div_ceil(SAMPLES);
    let (mut samples, mut decimals) = (0, 0);
    for (sample, numbers) in numbers.chunks(step).enumerate() {
        // Not always the first of a chunk: numbers may repeat at equal distances.
        let Some(number) = numbers.get(sample * 7 % numbers.len()) else { continue };
        samples += 1;
        if let Some(exponent) = (0..=EXPONENT_MAX).find(|e| decimal(*number, *e).is_some()) {
            needed[usize::from(exponent)] += 1;
            decimals += 1;
        }
    }
    let largest = needed.iter().rposition(|count| *count > 0)?;
    let mut covered = 0;
    let usual = needed.iter().position(|count| {
        covered += count;
        covered * 16 >= decimals * 15
    })?;
    (decimals * 2 >= samples).then_some((usual as u8, largest as u8))
}

/// Returns the integer that gives exactly `number` when divided by ten to the power `exponent`.
#[inline]
fn decimal(number: f64, exponent: u8) -> Option<i64> {
    let power = POWERS[usize::from(exponent)];
    let integer = (number * power).round_ties_even();
    let is_exact = integer.abs() < INTEGER_MAX
        && (integer as i64 as f64 / power).to_bits() == number.to_bits();
    is_exact.then_some(integer as i64)
}

fn encode_bits(numbers: &[f64]) -> Vec<u8> {
    let bits: Vec<i64> = numbers.iter().map(|number| number.to_bits() as i64).collect();
    let mut bytes = vec![BITS];
    integers::encode(&bits, &mut bytes);
    bytes
}

fn encode_xor(numbers: &[f64]) -> Vec<u8> {
    let mut bytes = vec![XOR];
    let mut before = numbers.first().map_or(0, |number| number.to_bits());
    bytes.extend_from_slice(&before.to_le_bytes());
    let mut block = [0u64; BLOCK];
    for numbers in numbers.get(1..).unwrap_or_default().chunks(BLOCK) {
        let block = &mut block[..numbers.len()];
        for (changed, number) in block.iter_mut().zip(numbers) {
            *changed = number.to_bits() ^ before;
            before = number.to_bits();
        }
        let all = block.iter().fold(0, |all, changed| all | changed);
        let low = if all == 0 { 0 } else { all.trailing_zeros() };
        for changed in &mut *block {
            *changed >>= low;
        }
        bytes.push(low as u8);
        bytes.push(width_of(all >> low) as u8);
        pack_bits(block, width_of(all >> low), &mut bytes);
    }
    bytes
}

/// Reads `count` doubles that [`encode`] wrote.
pub(crate) fn decode(reader: &mut Reader<'_>, count: usize) -> Result<Vec<f64>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    match reader.byte()? {
        exponent @ 0..=EXPONENT_MAX => decode_decimals(reader, count, exponent),
        XOR => decode_xor(reader, count),
        BITS => {
            let bits = integers::decode(reader, count)?;
            Ok(bits.into_iter().map(|bits| f64::from_bits(bits as u64)).collect())
        }
        _ => Err(damaged("a method of doubles")),
    }
}

fn decode_decimals(reader: &mut Reader<'_>, count: usize, exponent: u8) -> Result<Vec<f64>> {
    let exceptions = reader.count(count)?;
    let mut patches = *reader;
    for _ in 0..exceptions {
        reader.varint()?;
        reader.word()?;
    }
    let power = POWERS[usize::from(exponent)];
    let integers = integers::decode(reader, count)?;
    let mut numbers: Vec<f64> =
        integers.into_iter().map(|integer| integer as f64 / power).collect();
    let mut at = 0;
    for _ in 0..exceptions {
        at += patches.count(count - at)?;
        let number = f64::from_bits(patches.word()?);
        *numbers.get_mut(at).ok_or_else(|| damaged("an exception"))? = number;
    }
    Ok(numbers)
}

fn decode_xor(reader: &mut Reader<'_>, count: usize) -> Result<Vec<f64>> {
    let mut before = reader.word()?;
    let mut numbers = Vec::with_capacity(count);
    numbers.push(f64::from_bits(before));
    let mut block = [0u64; BLOCK];
    while numbers.len() < count {
        let block = &mut block[..(count - numbers.len()).min(BLOCK)];
        let low = u32::from(reader.byte()?);
        let width = u32::from(reader.byte()?);
        if low + width > 64 {
            return Err(damaged("a width"));
        }
        unpack_bits(reader, width, block)?;
        numbers.extend(block.iter().map(|changed| {
            before ^= changed.checked_shl(low).unwrap_or(0);
            f64::from_bits(before)
        }));
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::testing::Generator;

    fn round_trip(numbers: &[f64]) -> usize {
        let mut bytes = Vec::new();
        encode(numbers, &mut bytes);
        let mut reader = Reader::new(&bytes);
        let back = decode(&mut reader, numbers.len()).unwrap();
        let bits = |numbers: &[f64]| numbers.iter().map(|n| n.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&back), bits(numbers));
        assert_eq!(reader.left(), 0);
        bytes.len()
    }

    #[test]
    fn any_bits_come_back() {
        let mut generator = Generator::new(3);
        for round in 0..200 {
            let numbers: Vec<f64> = (0..round).map(|_| generator.double()).collect();
            round_trip(&numbers);
        }
    }

    #[test]
    fn decimals_with_two_digits_cost_as_their_integers() {
        let mut generator = Generator::new(4);
        let mut number = 0;
        let mut next = |_| {
            number += generator.below(64) as i64 - 32;
            number as f64 / 100.0
        };
        let numbers: Vec<f64> = (0..1000).map(&mut next).collect();
        assert!(round_trip(&numbers) <= 1000 * 6 / 8 + 40);
    }

    #[test]
    fn odd_doubles_among_decimals_are_exceptions() {
        let mut numbers: Vec<f64> = (0..1000).map(|n| f64::from(n % 8) / 10.0).collect();
        let plain = round_trip(&numbers);
        for (at, odd) in [(3, f64::NAN), (500, -0.0), (501, f64::INFINITY), (999, 1.0 / 3.0)] {
            numbers[at] = odd;
        }
        let with = round_trip(&numbers);
        // Each costs its bits, its position, and perhaps an exception among the integers.
        assert!(with <= plain + 4 * 16, "{with} {plain}");
    }

    #[test]
    fn doubles_that_were_floats_keep_their_zeros() {
        let mut generator = Generator::new(5);
        let mut next = |_| f64::from(1.0 + generator.below(1 << 23) as f32 / 8_388_608.0);
        let numbers: Vec<f64> = (0..1000).map(&mut next).collect();
        assert!(round_trip(&numbers) <= 1000 * 3 + 60);
    }
}
