//! The distinct values of `$addToSet`, with the number of children that give each of them, so that a
//! value leaves the set with its last child.

use quire_document::{ArrayBuf, DocBuf, Value, ValueBuf, compare};
use quire_error::Result;
use std::cmp::Ordering;

/// The most bytes of a set in memory. A parent can have at most 16 MB.
const BAG_BYTES_MAX: usize = 64 << 20;

/// Values with their counts, in MongoDB's order. Values that are equal but not identical, as 1 and
/// 1.0, are next to each other in the order of their bytes.
#[derive(Debug, Clone, Default)]
pub(super) struct Bag {
    entries: Vec<(DocBuf, i64)>,
    bytes: usize,
}

/// Wraps a value in a document, whose bytes order equal values.
fn wrapped(value: Value<'_>) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("", value);
    })
}

fn value_of(entry: &DocBuf) -> Value<'_> {
    entry.get("").unwrap_or(Value::Null)
}

fn order(a: &DocBuf, b: &DocBuf) -> Ordering {
    compare(value_of(a), value_of(b), None).then_with(|| a.as_bytes().cmp(b.as_bytes()))
}

impl Bag {
    /// Adds a value of one more child.
    ///
    /// # Errors
    /// 146 ExceededMemoryLimit beyond 64 MiB.
    pub(super) fn add(&mut self, value: Value<'_>) -> Result<()> {
        let value = wrapped(value);
        match self.entries.binary_search_by(|(known, _)| order(known, &value)) {
            Ok(at) => {
                if let Some((_, count)) = self.entries.get_mut(at) {
                    *count += 1;
                }
            }
            Err(at) => {
                self.bytes += value.as_bytes().len();
                self.entries.insert(at, (value, 1));
            }
        }
        super::check_bytes(self.bytes, BAG_BYTES_MAX)
    }

    /// Takes the value of one child away. Returns false if no child has given it.
    pub(super) fn take_away(&mut self, value: Value<'_>) -> bool {
        let value = wrapped(value);
        let Ok(at) = self.entries.binary_search_by(|(known, _)| order(known, &value)) else {
            return false;
        };
        let Some((_, count)) = self.entries.get_mut(at) else { return false };
        *count -= 1;
        if *count == 0 {
            self.bytes -= value.as_bytes().len();
            self.entries.remove(at);
        }
        true
    }

    /// Returns the set: of equal values the first one.
    pub(super) fn result(&self) -> ValueBuf {
        let mut values: Vec<Value<'_>> =
            self.entries.iter().map(|(value, _)| value_of(value)).collect();
        values.dedup_by(|later, earlier| compare(*later, *earlier, None).is_eq());
        values.into_iter().collect::<ArrayBuf>().into()
    }

    /// Returns the memory in bytes.
    pub(super) fn size(&self) -> usize {
        self.bytes
    }

    /// Returns the values and their counts as a value that [`load`](Self::load) reads.
    pub(super) fn save(&self) -> ValueBuf {
        let flat =
            self.entries.iter().flat_map(|(value, count)| [value_of(value), Value::Int64(*count)]);
        flat.collect::<ArrayBuf>().into()
    }

    /// Reads a saved set; `None` if it is damaged.
    pub(super) fn load(saved: Value<'_>) -> Option<Self> {
        let flat = saved.as_array()?.to_vec();
        let (pairs, odd) = flat.as_chunks::<2>();
        let entry = |[value, count]: &[Value<'_>; 2]| match *count {
            Value::Int64(count) if count > 0 => Some((wrapped(*value), count)),
            _ => None,
        };
        let entries: Vec<(DocBuf, i64)> = pairs.iter().map(entry).collect::<Option<_>>()?;
        let ordered = entries.is_sorted_by(|(a, _), (b, _)| order(a, b).is_lt());
        let bytes = entries.iter().map(|(value, _)| value.as_bytes().len()).sum();
        (odd.is_empty() && ordered).then_some(Bag { entries, bytes })
    }
}
