//! Index bounds as bytes: the position of a key relative to the intervals of each field, and where
//! to seek. (The rules are those of "index bounds" in the MongoDB manual's pages on explain: a scan
//! skips from interval to interval, and counts each key that it reads.)

use quire_catalog::key::KeySpec;
use quire_document::key::{self, KeyError};
use quire_error::Result;
use quire_planner::{IndexScan, Intervals};

/// The intervals that are encoded between two checks of the interrupt.
const ENCODED_AT_ONCE: usize = 4096;

/// The intervals of one field in the byte order of the index.
#[derive(Debug)]
struct FieldBounds {
    descending: bool,
    /// The encoded ends of all intervals.
    bytes: Vec<u8>,
    intervals: Vec<ByteInterval>,
}

/// An end of an interval: its place in the bytes of the field, and whether it belongs to the
/// interval.
#[derive(Debug, Clone, Copy)]
struct ByteEnd {
    begin: usize,
    end: usize,
    inclusive: bool,
}

/// The ends of an interval. Both ends of a single value are the same bytes.
#[derive(Debug)]
struct ByteInterval {
    low: ByteEnd,
    high: ByteEnd,
}

/// The bounds of a scan.
#[derive(Debug)]
pub(crate) struct ByteBounds {
    fields: Vec<FieldBounds>,
    backward: bool,
}

/// The decision about a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The key is within the bounds.
    Valid,
    /// Continue with the first key at or (exclusive) after these bytes, in the direction of the
    /// scan.
    Seek(Seek),
    /// No later key can be within the bounds.
    Done,
}

/// A position at which to continue.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Seek {
    /// Encoded values of the first fields.
    pub bytes: Vec<u8>,
    /// True to skip all keys that begin with `bytes`.
    pub exclusive: bool,
}

enum Place {
    Within,
    /// Before the interval with this number, in the direction of the scan.
    Before(usize),
    /// After all intervals.
    After,
}

impl ByteBounds {
    /// Encodes the bounds of a scan. Calls `check` between parts of a long list of intervals, and
    /// fails if it fails.
    pub fn new(scan: &IndexScan, check: &dyn Fn() -> Result<()>) -> Result<Self> {
        let fields = scan
            .bounds
            .iter()
            .enumerate()
            .map(|(field, intervals)| FieldBounds::new(&scan.keys, field, intervals, check))
            .collect::<Result<_>>()?;
        Ok(ByteBounds { fields, backward: scan.backward })
    }

    /// Returns where the scan begins; `None` if no key can be within the bounds.
    pub fn start(&self) -> Option<Seek> {
        self.seek_from(&[], 0, self.first_interval(0)?)
    }

    fn first_interval(&self, field: usize) -> Option<usize> {
        let last = self.fields.get(field)?.intervals.len().checked_sub(1)?;
        Some(if self.backward { last } else { 0 })
    }

    /// Returns the seek to an interval of a field, and to the first intervals of the later fields.
    fn seek_from(&self, prefix: &[u8], field: usize, interval: usize) -> Option<Seek> {
        let mut seek = Seek { bytes: prefix.to_vec(), exclusive: false };
        for at in field..self.fields.len() {
            let chosen = if at == field { interval } else { self.first_interval(at)? };
            let bounds = self.fields.get(at)?;
            let interval = bounds.intervals.get(chosen)?;
            let end = if self.backward { interval.high } else { interval.low };
            seek.bytes.extend_from_slice(bounds.value(end));
            if !end.inclusive {
                seek.exclusive = true;
                break;
            }
        }
        Some(seek)
    }

    /// Decides about a key by its encoded values.
    pub fn check(&self, values: &[u8]) -> Result<Verdict, KeyError> {
        let mut rest = values;
        let mut begin = 0;
        let mut space_left = false;
        for (at, field) in self.fields.iter().enumerate() {
            rest = key::skip(rest, field.descending)?;
            let end = values.len() - rest.len();
            let value = values.get(begin..end).unwrap_or(&[]);
            match field.place(value, self.backward) {
                Place::Within => {
                    begin = end;
                    space_left |= !field.is_last(value, self.backward);
                }
                Place::Before(interval) => {
                    let prefix = values.get(..begin).unwrap_or(&[]);
                    return Ok(match self.seek_from(prefix, at, interval) {
                        Some(seek) => Verdict::Seek(seek),
                        None => Verdict::Done,
                    });
                }
                Place::After if !space_left => return Ok(Verdict::Done),
                Place::After => {
                    let bytes = values.get(..begin).unwrap_or(&[]).to_vec();
                    return Ok(Verdict::Seek(Seek { bytes, exclusive: true }));
                }
            }
        }
        Ok(Verdict::Valid)
    }
}

impl FieldBounds {
    fn new(
        keys: &KeySpec,
        field: usize,
        intervals: &Intervals,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Self> {
        let descending = keys.is_descending(field);
        let mut bytes = Vec::with_capacity(32);
        let mut encoded = Vec::with_capacity(intervals.0.len());
        for (at, interval) in intervals.0.iter().enumerate() {
            if at % ENCODED_AT_ONCE == ENCODED_AT_ONCE - 1 {
                check()?;
            }
            let mut low = (&interval.low, interval.low_inclusive);
            let mut high = (&interval.high, interval.high_inclusive);
            if descending {
                (low, high) = (high, low);
            }
            let begin = bytes.len();
            keys.append_bound(field, low.0.as_value(), &mut bytes);
            let first = ByteEnd { begin, end: bytes.len(), inclusive: low.1 };
            let mut second = ByteEnd { inclusive: high.1, ..first };
            if low.0 != high.0 {
                second.begin = bytes.len();
                keys.append_bound(field, high.0.as_value(), &mut bytes);
                second.end = bytes.len();
            }
            encoded.push(ByteInterval { low: first, high: second });
        }
        if descending {
            encoded.reverse();
        }
        Ok(FieldBounds { descending, bytes, intervals: encoded })
    }

    fn value(&self, end: ByteEnd) -> &[u8] {
        &self.bytes[end.begin..end.end]
    }

    /// Returns true if no greater value (in the direction of the scan) is within the intervals.
    fn is_last(&self, value: &[u8], backward: bool) -> bool {
        let last = match backward {
            true => self.intervals.first().map(|first| first.low),
            false => self.intervals.last().map(|last| last.high),
        };
        last.is_some_and(|end| end.inclusive && self.value(end) == value)
    }

    fn place(&self, value: &[u8], backward: bool) -> Place {
        // The first interval that does not end before the value.
        let at = self.intervals.partition_point(|interval| {
            let high = self.value(interval.high);
            if interval.high.inclusive { high < value } else { high <= value }
        });
        let within = self.intervals.get(at).is_some_and(|interval| {
            let low = self.value(interval.low);
            if interval.low.inclusive { low <= value } else { low < value }
        });
        match (within, backward) {
            (true, _) => Place::Within,
            (false, false) if at < self.intervals.len() => Place::Before(at),
            (false, true) if at > 0 => Place::Before(at - 1),
            _ => Place::After,
        }
    }
}
