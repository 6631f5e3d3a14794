//! The distinct values at a path, for a `distinct`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::ControlFlow;
use std::sync::Arc;

use quire_catalog::key::Part;
use quire_document::path::{Leaf, Path};
use quire_document::{Array, ArrayBuf, Doc, Value, ValueBuf, compare, key};
use quire_error::Result;
use quire_mql::Collation;

use crate::env::Scope;
use crate::row::Row;
use crate::taking::{Documents, Given, Scratch, Taken, Taker};

/// The sets of [`Recent`] and the slots of each set: with one slot a thousand values would evict
/// each other.
const RECENT_SETS: usize = 512;
const RECENT_SLOTS: usize = 4;
/// The longest value that fits into a slot, in bytes.
const RECENT_BYTES: usize = 30;

/// The last values, as bytes. A value that is among them need not be encoded and looked up.
#[derive(Default)]
struct Recent {
    /// The hash of a value selects its set. Empty before the first value.
    sets: Vec<[[u8; RECENT_BYTES + 2]; RECENT_SLOTS]>,
}

impl Recent {
    /// Returns true if this value was among the last ones; else stores it. False for long values
    /// and rare types, which are not stored.
    fn has(&mut self, value: Value<'_>) -> bool {
        let number;
        let (kind, bytes) = match value {
            Value::String(text) => (1, text.as_bytes()),
            Value::Int32(int) => {
                number = i64::from(int).to_le_bytes();
                (2, &number[..])
            }
            Value::Int64(int) => {
                number = int.to_le_bytes();
                (3, &number[..])
            }
            Value::Double(double) => {
                number = double.to_bits().to_le_bytes();
                (4, &number[..])
            }
            Value::Date(date) => {
                number = date.to_le_bytes();
                (5, &number[..])
            }
            _ => return false,
        };
        let mut wanted = [0; RECENT_BYTES + 2];
        let [first, length, place @ ..] = &mut wanted;
        let Some(place) = place.get_mut(..bytes.len()) else { return false };
        place.copy_from_slice(bytes);
        (*first, *length) = (kind, bytes.len() as u8);
        if self.sets.is_empty() {
            self.sets.resize(RECENT_SETS, [[0; RECENT_BYTES + 2]; RECENT_SLOTS]);
        }
        let words = wanted.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        // After multiplication by an odd number (Knuth, TAOCP 6.4) the upper bits depend on all
        // bits.
        let hash = words.fold(0_u64, |hash, word| {
            (hash.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        });
        let number = (hash >> 32) as usize % RECENT_SETS;
        let Some(set) = self.sets.get_mut(number) else { return false };
        let known = set.contains(&wanted);
        if !known {
            set.rotate_right(1);
            set[0] = wanted;
        }
        known
    }
}

/// The values found so far.
#[derive(Default)]
pub(crate) struct DistinctValues {
    recent: Recent,
    /// The values by their encoded form.
    found: BTreeMap<Vec<u8>, ValueBuf>,
    bytes: usize,
}

impl DistinctValues {
    /// Returns the size of the values, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the values of rows, or those that a thread has found.
    pub fn add_given(&mut self, given: Given, taker: &DistinctTaker) -> Result<()> {
        match given {
            Given::Rows(rows) => rows.iter().try_for_each(|row| taker.add_row(row, self)),
            Given::Taken(Taken::Values(values)) => {
                values.found.into_iter().for_each(|(encoded, value)| self.insert(encoded, value));
                Ok(())
            }
            Given::Taken(_) => Err(Taken::mistaken("distinct")),
        }
    }

    fn add(&mut self, value: Value<'_>, collation: Option<&Collation>) {
        if self.recent.has(value) {
            return;
        }
        let encoded = match collation {
            None => key::encode(value),
            Some(collation) => {
                let (mut encoded, mut bits) = (Vec::new(), key::TypeBits::new());
                key::append_full(value, false, Some(collation), &mut encoded, &mut bits);
                encoded
            }
        };
        if !self.found.contains_key(&encoded) {
            self.insert(encoded, ValueBuf::new(value));
        }
    }

    fn insert(&mut self, encoded: Vec<u8>, value: ValueBuf) {
        if let Entry::Vacant(place) = self.found.entry(encoded) {
            self.bytes += value.size() + 8;
            place.insert(value);
        }
    }

    /// Returns the values in MongoDB's order.
    pub fn sorted(&self) -> ArrayBuf {
        self.found.values().collect()
    }
}

/// Finds the values at a path; the elements of an array replace it.
pub(crate) struct DistinctTaker {
    path: Path,
    name: String,
    collation: Option<Arc<Collation>>,
}

impl DistinctTaker {
    pub fn new(path: &str, collation: Option<Arc<Collation>>) -> Self {
        Self { path: Path::new(path), name: path.to_owned(), collation }
    }

    /// Adds the value of a row: from the document, or from an index key that has the value.
    fn add_row(&self, row: &Row, values: &mut DistinctValues) -> Result<()> {
        if let Some(doc) = &row.doc {
            self.add(Doc::from_valid_bytes(doc), values);
            return Ok(());
        }
        let Some((keys, key)) = row.key_values()? else { return Ok(()) };
        let mut fields = keys.fields().iter().zip(&key);
        match fields.find(|(field, _)| field.part == Part::Value && field.path == self.name) {
            Some((_, Some(value))) if !matches!(value.as_value(), Value::Array(_)) => {
                values.add(value.as_value(), self.collation.as_deref());
            }
            Some((_, None)) => {}
            _ => self.add(Doc::from_valid_bytes(&row.doc_or_key()?), values),
        }
        Ok(())
    }

    fn add(&self, doc: Doc<'_>, values: &mut DistinctValues) {
        let collation = self.collation.as_deref();
        let _ = self.path.visit::<()>(doc, Leaf::Whole, |found| {
            match found.value {
                Some(Value::Array(array)) if collation.is_some() => {
                    smallest_first(array).into_iter().for_each(|it| values.add(it, collation));
                }
                Some(Value::Array(array)) => array.iter().for_each(|it| values.add(it, collation)),
                Some(other) => values.add(other, collation),
                None => {}
            }
            ControlFlow::Continue(())
        });
    }
}

/// Returns the elements of an array in the order of their bytes. Of elements that are equal under a
/// collation the first one is kept, as in mongod.
fn smallest_first(array: Array<'_>) -> Vec<Value<'_>> {
    let mut elements: Vec<Value<'_>> = array.iter().collect();
    elements.sort_by(|a, b| compare(*a, *b, None));
    elements
}

impl Taker for DistinctTaker {
    fn take(&self, docs: &Documents<'_>, _: &mut Scratch, _: Scope<'_>) -> Option<Taken> {
        let mut values = DistinctValues::default();
        docs.docs.iter().for_each(|doc| self.add(*doc, &mut values));
        values.recent = Recent::default();
        Some(Taken::Values(values))
    }
}
