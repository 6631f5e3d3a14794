//! An encoder for tests: it packs numbers into blocks in every way that the format allows, at random.

use super::blocks::{BITS, BITS_OF_7, BITS_OF_8, RUN_NUMBERS};
use super::numbers::{Scale, has_steps, is_wide, number_of};
use quire_document::testing::Generator;
use quire_document::{DocBuf, Value, ValueBuf, doc};

/// A part of a stream: its bytes, and the number of its values.
pub struct Part {
    pub bytes: Vec<u8>,
    pub values: usize,
}

/// Returns a column with these values.
pub fn column(values: &[Option<ValueBuf>], random: &mut Generator) -> Vec<u8> {
    let mut bytes = Vec::new();
    parts(None, values, random).into_iter().for_each(|part| bytes.extend(part.bytes));
    bytes.push(0);
    bytes
}

/// Returns the bytes of an interleaved part. `reference` has the fields of `rows`, and `streams` their values, stream by stream.
pub fn interleaved(
    control: u8,
    reference: &DocBuf,
    streams: &[(ValueBuf, Vec<Option<ValueBuf>>)],
    random: &mut Generator,
) -> Vec<u8> {
    let mut bytes = vec![control];
    bytes.extend_from_slice(reference.as_bytes());
    let rows = streams.first().map_or(0, |(_, values)| values.len());
    let mut streams: Vec<_> = streams
        .iter()
        .map(|(first, values)| (parts(Some(first), values, random).into_iter(), 0))
        .collect();
    for _ in 0..rows {
        for (parts, left) in &mut streams {
            if *left == 0
                && let Some(part) = parts.next()
            {
                bytes.extend(part.bytes);
                *left = part.values;
            }
            *left -= 1;
        }
    }
    bytes.push(0);
    bytes
}

/// The stream that is being written.
struct Stream {
    last: Option<ValueBuf>,
    number: u128,
    step: u64,
    /// The last number that is written in blocks.
    repeated: Option<u128>,
}

/// Returns the parts of a stream that follow the value `before`.
fn parts(
    before: Option<&ValueBuf>,
    values: &[Option<ValueBuf>],
    random: &mut Generator,
) -> Vec<Part> {
    let mut stream = Stream { last: None, number: 0, step: 0, repeated: Some(0) };
    if let Some(before) = before {
        stream.begin(before);
    }
    let (mut parts, mut slots, mut scale) = (Vec::new(), Vec::new(), Scale::Bits);
    for value in values {
        if slots.is_empty() {
            scale = stream.rescale(random);
        }
        let slot = match value {
            None => Some(None),
            Some(value) => stream.difference(value, scale).map(Some).filter(|_| !random.one_in(40)),
        };
        match (slot, value) {
            (Some(slot), _) => {
                slots.push(slot);
                if random.one_in(30) {
                    stream.flush(&mut slots, scale, &mut parts, random);
                }
            }
            (None, Some(value)) => {
                stream.flush(&mut slots, scale, &mut parts, random);
                parts.push(Part { bytes: literal(value), values: 1 });
                stream.begin(value);
            }
            (None, None) => unreachable!("a missing value always has a slot"),
        }
    }
    stream.flush(&mut slots, scale, &mut parts, random);
    parts
}

fn literal(value: &ValueBuf) -> Vec<u8> {
    let doc = doc! { "": value };
    doc.as_doc().element_bytes().to_vec()
}

fn number(value: &ValueBuf) -> u128 {
    let doc = doc! { "": value };
    number_of(doc.as_doc().first().unwrap())
}

impl Stream {
    fn begin(&mut self, value: &ValueBuf) {
        *self =
            Stream { number: number(value), last: Some(value.clone()), step: 0, repeated: Some(0) };
    }

    /// Chooses a scale that the last double has; values of other types have none.
    fn rescale(&mut self, random: &mut Generator) -> Scale {
        let Some(Value::Double(last)) = self.last.as_ref().map(ValueBuf::as_value) else {
            return Scale::Bits;
        };
        let factors = [1.0, 10.0, 100.0, 10_000.0, 100_000_000.0];
        let scales = factors.map(Scale::Times).into_iter().chain([Scale::Bits]);
        let fitting: Vec<Scale> = scales.filter(|scale| scale.number_of(last).is_some()).collect();
        let scale = *random.pick(&fitting).unwrap();
        self.number = u128::from(scale.number_of(last).unwrap() as u64);
        scale
    }

    /// Returns what a block says of the next value; `None` if it must be a literal.
    fn difference(&mut self, value: &ValueBuf, scale: Scale) -> Option<u128> {
        let last = self.last.as_ref()?;
        let kind = value.kind();
        if last.kind() != kind {
            return None;
        }
        if last == value && !has_steps(kind) {
            return Some(0);
        }
        let next = match value.as_value() {
            Value::Double(double) => u128::from(scale.number_of(double)? as u64),
            Value::Int32(_) | Value::Int64(_) | Value::Date(_) | Value::Timestamp(_) => {
                number(value)
            }
            Value::Bool(_) | Value::Decimal(_) => number(value),
            Value::ObjectId(id) => {
                let Value::ObjectId(before) = last.as_value() else { return None };
                (id.0[4..9] == before.0[4..9]).then(|| number(value))?
            }
            Value::String(text) | Value::Code(text) => {
                (text.len() <= 16 && !text.starts_with('\0')).then(|| number(value))?
            }
            Value::Binary(binary) => {
                let Value::Binary(before) = last.as_value() else { return None };
                let is_alike =
                    binary.subtype == before.subtype && binary.bytes.len() == before.bytes.len();
                (is_alike && binary.subtype != 2 && binary.bytes.len() <= 16)
                    .then(|| number(value))?
            }
            _ => return None,
        };
        let difference = next.wrapping_sub(self.number);
        let slot = match (is_wide(kind), has_steps(kind)) {
            (true, _) => zigzag(difference as i128),
            (false, true) => {
                let step = (difference as u64).wrapping_sub(self.step);
                u128::from(zigzag(i128::from(step as i64)) as u64)
            }
            (false, false) => u128::from(zigzag(i128::from(difference as u64 as i64)) as u64),
        };
        // A value without a number, such as a long string, has the number 0, as the empty string has.
        if slot == 0 && !has_steps(kind) {
            return None;
        }
        packings(slot, is_wide(kind)).next()?;
        if has_steps(kind) {
            self.step = difference as u64;
        }
        self.number = next;
        self.last = Some(value.clone());
        Some(slot)
    }

    fn flush(
        &mut self,
        slots: &mut Vec<Option<u128>>,
        scale: Scale,
        parts: &mut Vec<Part>,
        random: &mut Generator,
    ) {
        let is_wide = self.last.as_ref().is_some_and(|last| is_wide(last.kind()));
        let mut rest = &slots[..];
        while !rest.is_empty() {
            let (mut words, mut values) = (Vec::new(), 0);
            for _ in 0..=random.below(16) {
                if rest.is_empty() {
                    break;
                }
                let (word, count) = word(rest, self.repeated, is_wide, random);
                self.repeated = rest[count - 1];
                words.push(word);
                rest = &rest[count..];
                values += count;
            }
            let mut bytes = vec![control(scale) | (words.len() as u8 - 1)];
            words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
            parts.push(Part { bytes, values });
        }
        slots.clear();
    }
}

fn control(scale: Scale) -> u8 {
    let is = |factor| scale == Scale::Times(factor);
    match () {
        () if is(1.0) => 0x90,
        () if is(10.0) => 0xA0,
        () if is(100.0) => 0xB0,
        () if is(10_000.0) => 0xC0,
        () if is(100_000_000.0) => 0xD0,
        () => 0x80,
    }
}

fn zigzag(number: i128) -> u128 {
    ((number << 1) ^ (number >> 127)) as u128
}

/// A form in which a block can have numbers: selector, extension, the bits of a value and of its count of zeros, and what that
/// count is multiplied with.
type Packing = (u64, u64, u32, u32, u32);

fn all_packings() -> impl Iterator<Item = Packing> {
    let base = (1..).zip(&BITS[1..]).map(|(selector, bits)| (selector, 0, *bits, 0, 0));
    let of_7 = (1..).zip(&BITS_OF_7[1..]).map(|(extension, bits)| (7, extension, *bits, 4, 1));
    let of_8 = (1..)
        .zip(&BITS_OF_8[1..])
        .map(|(extension, bits)| (8, extension, *bits, if extension < 8 { 4 } else { 5 }, 4));
    base.chain(of_7).chain(of_8)
}

/// Returns a number as a block of a packing has it; `None` if it does not fit.
fn packed(number: Option<u128>, is_wide: bool, packing: Packing) -> Option<u64> {
    let (_, _, bits, zero_bits, zero_step) = packing;
    let mask = (1 << (bits + zero_bits)) - 1;
    let Some(number) = number else { return Some(mask) };
    let most = ((1_u32 << zero_bits) - 1) * zero_step;
    let most = if is_wide { most } else { most.min(60) };
    let zeros = match zero_step {
        0 => 0,
        step => number.trailing_zeros().min(most) / step * step,
    };
    let zeros = if number == 0 { 0 } else { zeros };
    let value = u64::try_from(number >> zeros).ok().filter(|value| value >> bits == 0)?;
    let count = zeros.checked_div(zero_step).unwrap_or(0);
    Some(value << zero_bits | u64::from(count)).filter(|slot| *slot != mask)
}

fn packings(number: u128, is_wide: bool) -> impl Iterator<Item = Packing> {
    all_packings().filter(move |packing| packed(Some(number), is_wide, *packing).is_some())
}

/// Returns a block with the first numbers, and how many these are.
fn word(
    rest: &[Option<u128>],
    repeated: Option<u128>,
    is_wide: bool,
    random: &mut Generator,
) -> (u64, usize) {
    let run = rest.iter().take_while(|slot| **slot == repeated).count();
    let runs = (run / RUN_NUMBERS as usize).min(16);
    if runs > 0 && !random.one_in(3) {
        let runs = 1 + random.below(runs as u64);
        return (15 | (runs - 1) << 4, runs as usize * RUN_NUMBERS as usize);
    }
    let fitting: Vec<(u64, usize)> = all_packings()
        .filter_map(|packing| {
            let (selector, extension, bits, zero_bits, _) = packing;
            let header = if matches!(selector, 7 | 8) { 8 } else { 4 };
            let bits = bits + zero_bits;
            let count = ((64 - header) / bits) as usize;
            let slots = rest.get(..count)?;
            let mut word = selector | extension << 4;
            for (at, slot) in (0..).zip(slots) {
                word |= packed(*slot, is_wide, packing)? << (header + at * bits);
            }
            Some((word, count))
        })
        .collect();
    *random.pick(&fitting).expect("every number of a column has a packing for one number")
}
