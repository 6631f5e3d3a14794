//! Integers: constant, packed, as differences, as runs, or as positions in a dictionary, whichever
//! takes the fewest bytes.

use quire_error::Result;

use crate::blocks;
use crate::bytes::{Reader, damaged, put_signed, put_varint, signed_len};
use crate::limits::INTEGERS_MAX;

const CONSTANT: u8 = 0;
const PACKED: u8 = 1;
const DELTAS: u8 = 2;
const DELTAS_OF_DELTAS: u8 = 3;
const RUNS: u8 = 4;
const DICTIONARY: u8 = 5;
const LINEAR: u8 = 6;

/// The bit that says that the numbers are multiples of a step.
const STEPPED: u8 = 0x10;

/// Appends `numbers` in the format of a bucket.
pub(crate) fn encode(numbers: &[i64], out: &mut Vec<u8>) {
    encode_nested(numbers, true, out);
}

/// Appends `numbers`; without runs and dictionary unless `is_outer`.
fn encode_nested(numbers: &[i64], is_outer: bool, out: &mut Vec<u8>) {
    let Some(first) = numbers.first() else { return };
    let deltas = differences(numbers);
    let delta = deltas.first().copied().unwrap_or(0);
    if deltas.iter().all(|other| *other == delta) {
        out.push(if delta == 0 { CONSTANT } else { LINEAR });
        put_signed(out, *first);
        if delta != 0 {
            put_signed(out, delta);
        }
        return;
    }
    let head = out.len();
    out.push(0);
    let (method, flag) = match step(numbers) {
        Some(step) => {
            put_signed(out, *first);
            put_varint(out, step);
            let part = |number: &i64| (number - first) / step as i64;
            let parts: Vec<i64> = numbers.iter().map(part).collect();
            (encode_best(&parts, &differences(&parts), is_outer, out), STEPPED)
        }
        None => (encode_best(numbers, &deltas, is_outer, out), 0),
    };
    out[head] = method | flag;
}

/// Returns the largest number greater than 1 that divides the distances of all numbers from the
/// first.
fn step(numbers: &[i64]) -> Option<u64> {
    let first = numbers.first()?;
    let mut step = 0;
    for number in numbers {
        let distance = number.checked_sub(*first)?.unsigned_abs();
        if step == 0 || distance % step != 0 {
            step = greatest_common_divisor(step, distance);
        }
        if step == 1 {
            return None;
        }
    }
    // The quotients are computed with signs.
    i64::try_from(step).ok().filter(|step| *step > 1).map(i64::unsigned_abs)
}

const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Appends the numbers by the method that takes the fewest bytes, and returns the method.
fn encode_best(numbers: &[i64], deltas: &[i64], is_outer: bool, out: &mut Vec<u8>) -> u8 {
    let deltas_of_deltas = differences(deltas);
    let first = numbers.first().copied().unwrap_or(0);
    let first_delta = deltas.first().copied();
    let sizes = [
        (PACKED, blocks::size(numbers)),
        (DELTAS, signed_len(first) + blocks::size(deltas)),
        (
            DELTAS_OF_DELTAS,
            signed_len(first) + first_delta.map_or(0, signed_len) + blocks::size(&deltas_of_deltas),
        ),
    ];
    let (mut method, mut size) = (PACKED, usize::MAX);
    for (other, other_size) in sizes {
        if other_size < size {
            (method, size) = (other, other_size);
        }
    }
    if is_outer && let Some((method, bytes)) = encode_repeated(numbers, deltas, size) {
        out.extend_from_slice(&bytes);
        return method;
    }
    match method {
        PACKED => blocks::encode(numbers, out),
        DELTAS => {
            put_signed(out, first);
            blocks::encode(deltas, out);
        }
        _ => {
            put_signed(out, first);
            if let Some(delta) = first_delta {
                put_signed(out, delta);
            }
            blocks::encode(&deltas_of_deltas, out);
        }
    }
    method
}

/// Returns the numbers as runs or as a dictionary, with the method, if that takes less than `size`
/// bytes.
fn encode_repeated(numbers: &[i64], deltas: &[i64], size: usize) -> Option<(u8, Vec<u8>)> {
    let mut best: Option<(u8, Vec<u8>)> = None;
    let mut offer = |method: u8, bytes: Vec<u8>| {
        if bytes.len() < best.as_ref().map_or(size, |(_, best)| best.len()) {
            best = Some((method, bytes));
        }
    };
    let runs = 1 + deltas.iter().filter(|delta| **delta != 0).count();
    // Each run takes at least a byte.
    if runs < size && runs * 2 <= numbers.len() {
        offer(RUNS, encode_runs(numbers, runs));
    }
    // A dictionary must save at least a bit for each number: with `n` bits, it has half as many
    // entries as `n` bits have numbers.
    let bits = (size * 8 / numbers.len()).min(16) as u32;
    if bits > 2
        && let Some(bytes) = encode_dictionary(numbers, 1 << (bits - 1))
    {
        offer(DICTIONARY, bytes);
    }
    best
}

fn encode_runs(numbers: &[i64], runs: usize) -> Vec<u8> {
    let (mut values, mut lengths) = (Vec::with_capacity(runs), Vec::with_capacity(runs));
    for run in numbers.chunk_by(|a, b| a == b) {
        values.extend(run.first());
        lengths.push(run.len() as i64);
    }
    let mut bytes = Vec::new();
    put_varint(&mut bytes, runs as u64);
    encode_nested(&values, false, &mut bytes);
    encode_nested(&lengths, false, &mut bytes);
    bytes
}

/// Returns the numbers as a dictionary of at most `entries_max` entries, and positions.
fn encode_dictionary(numbers: &[i64], entries_max: usize) -> Option<Vec<u8>> {
    let most = INTEGERS_MAX.min(numbers.len() / 4).min(entries_max);
    let mut different: Vec<i64> = Vec::new();
    for number in numbers {
        if let Err(at) = different.binary_search(number) {
            if different.len() == most {
                return None;
            }
            different.insert(at, *number);
        }
    }
    let position = |number| different.binary_search(number).map_or(0, |at| at as i64);
    let positions: Vec<i64> = numbers.iter().map(position).collect();
    let mut bytes = Vec::new();
    put_varint(&mut bytes, different.len() as u64);
    encode_nested(&different, false, &mut bytes);
    encode_nested(&positions, false, &mut bytes);
    Some(bytes)
}

fn differences(numbers: &[i64]) -> Vec<i64> {
    numbers.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect()
}

/// Reads `count` numbers that [`encode`] wrote.
pub(crate) fn decode(reader: &mut Reader<'_>, count: usize) -> Result<Vec<i64>> {
    decode_nested(reader, count, true)
}

/// Reads the number of numbers that are all the same; reads nothing and returns `None` if they are not stored so.
pub(crate) fn decode_constant(reader: &mut Reader<'_>) -> Result<Option<i64>> {
    let mut ahead = *reader;
    if ahead.byte()? != CONSTANT {
        return Ok(None);
    }
    let number = ahead.signed()?;
    *reader = ahead;
    Ok(Some(number))
}

fn decode_nested(reader: &mut Reader<'_>, count: usize, is_outer: bool) -> Result<Vec<i64>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let byte = reader.byte()?;
    let (base, step) = match byte & STEPPED {
        0 => (0, 1),
        _ => (reader.signed()?, reader.varint()? as i64),
    };
    let mut numbers = match byte & !STEPPED {
        CONSTANT => vec![reader.signed()?; count],
        LINEAR => {
            let (first, delta) = (reader.signed()?, reader.signed()?);
            let number = |at| first.wrapping_add(delta.wrapping_mul(at));
            (0..count as i64).map(number).collect()
        }
        method @ PACKED..=DELTAS_OF_DELTAS => {
            decode_differences(reader, count, usize::from(method - PACKED))?
        }
        RUNS if is_outer => decode_runs(reader, count)?,
        DICTIONARY if is_outer => decode_dictionary(reader, count)?,
        _ => return Err(damaged("a method of integers")),
    };
    if byte & STEPPED != 0 {
        for number in &mut numbers {
            *number = base.wrapping_add(step.wrapping_mul(*number));
        }
    }
    Ok(numbers)
}

/// Reads numbers that were replaced by the differences of neighbours `order` times, at most twice.
fn decode_differences(reader: &mut Reader<'_>, count: usize, order: usize) -> Result<Vec<i64>> {
    let order = order.min(count);
    let mut numbers = Vec::with_capacity(count);
    for _ in 0..order {
        numbers.push(reader.signed()?);
    }
    blocks::decode(reader, count - order, &mut numbers)?;
    for from in (0..order).rev() {
        let mut sum = 0i64;
        for number in numbers.iter_mut().skip(from) {
            sum = sum.wrapping_add(*number);
            *number = sum;
        }
    }
    Ok(numbers)
}

fn decode_runs(reader: &mut Reader<'_>, count: usize) -> Result<Vec<i64>> {
    let runs = reader.count(count)?;
    let values = decode_nested(reader, runs, false)?;
    let lengths = decode_nested(reader, runs, false)?;
    let mut numbers = Vec::with_capacity(count);
    for (value, length) in values.into_iter().zip(lengths) {
        let length = usize::try_from(length).ok().filter(|length| *length <= count - numbers.len());
        let length = length.ok_or_else(|| damaged("the length of a run"))?;
        numbers.extend(std::iter::repeat_n(value, length));
    }
    if numbers.len() != count {
        return Err(damaged("the number of runs"));
    }
    Ok(numbers)
}

fn decode_dictionary(reader: &mut Reader<'_>, count: usize) -> Result<Vec<i64>> {
    let entries = reader.count(INTEGERS_MAX)?;
    let different = decode_nested(reader, entries, false)?;
    let mut numbers = decode_nested(reader, count, false)?;
    for number in &mut numbers {
        let entry = usize::try_from(*number).ok().and_then(|at| different.get(at));
        *number = *entry.ok_or_else(|| damaged("a position in a dictionary"))?;
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::testing::Generator;

    fn round_trip(numbers: &[i64]) -> usize {
        let mut bytes = Vec::new();
        encode(numbers, &mut bytes);
        let mut reader = Reader::new(&bytes);
        assert_eq!(decode(&mut reader, numbers.len()).unwrap(), numbers);
        assert_eq!(reader.left(), 0);
        bytes.len()
    }

    #[test]
    fn any_numbers_come_back() {
        let mut generator = Generator::new(2);
        for round in 0..300 {
            let pool: Vec<i64> = (0..1 + round % 9).map(|_| generator.integer()).collect();
            round_trip(&(0..round).map(|_| generator.integer()).collect::<Vec<_>>());
            let mut repeated = |_| generator.pick(&pool).copied().unwrap_or(0);
            round_trip(&(0..round * 2).map(&mut repeated).collect::<Vec<_>>());
        }
        round_trip(&[i64::MIN, i64::MAX, 0, i64::MIN, -1, i64::MAX]);
        round_trip(&[i64::MIN, 0]);
    }

    #[test]
    fn structure_is_found() {
        let mut generator = Generator::new(3);
        let mut small = |below| generator.below(below) as i64;
        let regular: Vec<i64> = (0..1000).map(|at| 1_772_323_200_000 + at * 60_000).collect();
        assert!(round_trip(&regular) <= 12);
        let late: Vec<i64> = regular.iter().map(|time| time + 1000 * small(4)).collect();
        assert!(round_trip(&late) <= 1000 * 8 / 8 + 60);
        let runs: Vec<i64> = (0..1000).map(|at| 1_000_003 * (at / 100)).collect();
        assert!(round_trip(&runs) <= 60);
        let few: Vec<i64> =
            (0..1000).map(|_| [7, 1 << 40, -(1 << 50)][small(3) as usize]).collect();
        assert!(round_trip(&few) <= 1000 * 2 / 8 + 60);
        let mut glitch: Vec<i64> = (0..1000).map(|_| 500 + small(16)).collect();
        glitch[77] = -999_999;
        assert!(round_trip(&glitch) <= 1000 * 4 / 8 + 60);
    }
}
