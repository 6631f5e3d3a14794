//! Samples as records: a whole document, then for each sample of the same shape the differences of
//! its numbers from the sample before. Most numbers stand still, and a run of those takes two bytes.
//! A record that is not whole is the end of its file, because a crash can cut the last one.

use quire_document::limits::Limits;
use quire_document::{Doc, DocBuf, Type, Value, validate};
use twox_hash::XxHash3_64;

/// The bytes before the body: its length and its checksum.
const HEAD_BYTES: usize = 12;
/// The largest body.
const BODY_BYTES_MAX: usize = 1 << 20;

/// The first byte of a body with a whole document.
const WHOLE: u8 = 0;
/// The first byte of a body with differences.
const DIFFERENCES: u8 = 1;

/// The place of a number in the bytes of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    at: usize,
    width: usize,
}

/// A sample and the places of its numbers.
struct Sample {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
}

/// Writes the records of one file.
#[derive(Default)]
pub(super) struct Encoder {
    last: Option<Sample>,
}

/// Reads the records of one file, as long as they are whole.
pub(super) struct Decoder<'b> {
    rest: &'b [u8],
    last: Option<Sample>,
}

impl Sample {
    fn new(bytes: Vec<u8>) -> Sample {
        let mut slots = Vec::new();
        find_numbers(Doc::from_valid_bytes(&bytes), 0, &mut slots);
        Sample { bytes, slots }
    }

    /// Returns true if `other` has the same bytes outside of the numbers.
    fn has_shape_of(&self, other: &[u8]) -> bool {
        let mut from = 0;
        let parts = self.slots.iter().map(|slot| (slot.at, slot.at + slot.width));
        for (at, next) in parts.chain([(self.bytes.len(), 0)]) {
            if self.bytes.get(from..at) != other.get(from..at) {
                return false;
            }
            from = next;
        }
        self.bytes.len() == other.len()
    }
}

impl Encoder {
    /// Appends the record of a sample to `out`.
    pub(super) fn encode(&mut self, sample: Doc<'_>, out: &mut Vec<u8>) {
        let bytes = sample.as_bytes();
        let mut body = Vec::with_capacity(256);
        match &mut self.last {
            Some(last) if last.has_shape_of(bytes) => {
                body.push(DIFFERENCES);
                write_differences(last, bytes, &mut body);
                last.bytes.copy_from_slice(bytes);
            }
            last => {
                body.push(WHOLE);
                body.extend_from_slice(bytes);
                *last = Some(Sample::new(bytes.to_vec()));
            }
        }
        out.extend_from_slice(&(body.len() as u32).to_be_bytes());
        out.extend_from_slice(&XxHash3_64::oneshot(&body).to_be_bytes());
        out.extend_from_slice(&body);
    }
}

impl<'b> Decoder<'b> {
    /// Reads the records in `bytes`.
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Decoder { rest: bytes, last: None }
    }

    /// Returns the next sample; `None` at the end, or where a record is not whole.
    pub(super) fn next(&mut self) -> Option<DocBuf> {
        let (head, rest) = self.rest.split_at_checked(HEAD_BYTES)?;
        let (length, checksum) = head.split_at_checked(4)?;
        let length = u32::from_be_bytes(length.try_into().ok()?) as usize;
        let checksum = u64::from_be_bytes(checksum.try_into().ok()?);
        let (body, rest) = rest.split_at_checked(length)?;
        if length > BODY_BYTES_MAX || XxHash3_64::oneshot(body) != checksum {
            return None;
        }
        self.rest = rest;
        let (kind, content) = body.split_first()?;
        match *kind {
            WHOLE => {
                validate(content, &Limits::WIRE).ok()?;
                self.last = Some(Sample::new(content.to_vec()));
            }
            DIFFERENCES => add_differences(self.last.as_mut()?, content)?,
            _ => return None,
        }
        self.last.as_ref().map(|sample| DocBuf::from_valid_bytes(sample.bytes.clone()))
    }
}

/// Finds the numbers of a document that begins `base` bytes after the start of the outermost one.
fn find_numbers(doc: Doc<'_>, base: usize, slots: &mut Vec<Slot>) {
    let mut elements = doc.iter();
    while let Some(element) = elements.next() {
        let bytes = element.value_bytes();
        let at = base + 4 + elements.consumed(doc) - bytes.len();
        match (element.kind(), element.value()) {
            (_, Value::Document(inner)) => find_numbers(inner, at, slots),
            (_, Value::Array(inner)) => find_numbers(inner.as_doc(), at, slots),
            (Type::Double | Type::Date | Type::Int32 | Type::Int64 | Type::Timestamp, _) => {
                slots.push(Slot { at, width: bytes.len() })
            }
            _ => {}
        }
    }
}

/// Returns the number in a slot; one of four bytes is extended by its sign.
fn number(bytes: &[u8], slot: Slot) -> Option<i64> {
    let bytes = bytes.get(slot.at..slot.at + slot.width)?;
    match bytes.len() {
        4 => Some(i64::from(i32::from_le_bytes(bytes.try_into().ok()?))),
        _ => Some(i64::from_le_bytes(bytes.try_into().ok()?)),
    }
}

/// Writes for each slot the difference, zigzag-coded, as a varint; of slots without a difference a zero
/// and the number of the further ones that follow.
fn write_differences(last: &Sample, bytes: &[u8], body: &mut Vec<u8>) {
    let mut still = 0u64;
    for slot in &last.slots {
        let (was, is) = (number(&last.bytes, *slot), number(bytes, *slot));
        let difference = is.unwrap_or(0).wrapping_sub(was.unwrap_or(0));
        if difference == 0 {
            still += 1;
            continue;
        }
        end_run(&mut still, body);
        write_varint(((difference << 1) ^ (difference >> 63)) as u64, body);
    }
    end_run(&mut still, body);
}

/// Writes a run of slots without a difference, if there is one.
fn end_run(still: &mut u64, body: &mut Vec<u8>) {
    if *still > 0 {
        body.push(0);
        write_varint(*still - 1, body);
        *still = 0;
    }
}

/// Changes the numbers of a sample; `None` if there are not as many differences as numbers.
fn add_differences(sample: &mut Sample, mut content: &[u8]) -> Option<()> {
    let mut slots = sample.slots.iter();
    while !content.is_empty() {
        let coded = read_varint(&mut content)?;
        if coded == 0 {
            let more = usize::try_from(read_varint(&mut content)?).ok()?;
            slots.nth(more)?;
            continue;
        }
        let slot = *slots.next()?;
        let difference = ((coded >> 1) as i64) ^ -((coded & 1) as i64);
        let is = number(&sample.bytes, slot)?.wrapping_add(difference);
        let place = sample.bytes.get_mut(slot.at..slot.at + slot.width)?;
        place.copy_from_slice(is.to_le_bytes().get(..slot.width)?);
    }
    slots.next().is_none().then_some(())
}

fn write_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    fn sample(number: i64, name: &str) -> DocBuf {
        doc! {
            "name": name, "a": (number as i32), "b": [1, { "c": number, "d": (number as f64 / 3.0) }],
            "still": [1, 2, 3], "at": Value::Date(number), "on": true, "last": (number.wrapping_neg()),
        }
    }

    fn decoded(bytes: &[u8]) -> Vec<DocBuf> {
        let mut decoder = Decoder::new(bytes);
        std::iter::from_fn(|| decoder.next()).collect()
    }

    #[test]
    fn samples_come_back_also_when_their_shape_changes() {
        let samples = [
            sample(0, "one"),
            sample(5, "one"),
            sample(i64::MIN, "one"),
            sample(i64::MAX, "one"),
            sample(7, "another"),
            doc! {},
            doc! {},
            sample(7, "another"),
        ];
        let (mut encoder, mut bytes) = (Encoder::default(), Vec::new());
        samples.iter().for_each(|one| encoder.encode(one.as_doc(), &mut bytes));
        assert_eq!(decoded(&bytes), samples);
    }

    #[test]
    fn what_stands_still_takes_a_few_bytes() {
        let (mut encoder, mut bytes) = (Encoder::default(), Vec::new());
        encoder.encode(sample(5, "one").as_doc(), &mut bytes);
        let whole = bytes.len();
        encoder.encode(sample(5, "one").as_doc(), &mut bytes);
        assert_eq!(bytes.len() - whole, HEAD_BYTES + 3);
    }

    /// A crash cuts the last record, and a disk returns other bytes than it was given: what comes
    /// before is returned, and nothing else.
    #[test]
    fn a_damaged_record_ends_the_file() {
        let samples: Vec<DocBuf> = (0..20).map(|number| sample(number * 99, "one")).collect();
        let (mut encoder, mut bytes) = (Encoder::default(), Vec::new());
        samples.iter().for_each(|one| encoder.encode(one.as_doc(), &mut bytes));
        for end in 0..bytes.len() {
            let found = decoded(&bytes[..end]);
            assert!(found.len() < samples.len());
            assert_eq!(found, samples[..found.len()], "cut at {end}");
            let mut damaged = bytes.clone();
            damaged[end] ^= 0x10;
            let found = decoded(&damaged);
            assert_eq!(found, samples[..found.len()], "damaged at {end}");
        }
    }
}
