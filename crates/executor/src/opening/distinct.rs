//! Runs a `distinct`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::ControlFlow;
use std::sync::Arc;

use quire_catalog::key::Part;
use quire_document::path::{Leaf, Path};
use quire_document::{Array, ArrayBuf, Doc, Value, ValueBuf, compare, key};
use quire_error::{Error, Result};
use quire_mql::Collation;
use quire_planner::ReadRequest;

use crate::examined::Examined;
use crate::opening::open::open;
use crate::params::ExecParams;
use crate::row::Row;
use crate::views::Views;

/// The largest reply in bytes. MongoDB: 16 MiB (17217).
const REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Returns the distinct values at the path `key`, with the elements of arrays, in MongoDB's order
/// of values. The request is a `distinct`, or the pipeline of a `distinct` on a view.
///
/// # Errors
/// The errors of `mql` about the filter and of the planner about the hint; 17217 if the values do
/// not fit into a reply.
pub fn distinct<'r>(
    key: &str,
    request: impl Into<ReadRequest<'r>>,
    views: &mut dyn Views,
    params: ExecParams,
) -> Result<(ArrayBuf, Examined)> {
    let interrupt = Arc::clone(&params.interrupt);
    let mut execution = open(request, views, params)?;
    let mut values = Values::new(key, execution.plan.collation.clone());
    let mut failure = None;
    execution.rows(views, &interrupt, usize::MAX, |row| {
        if let Err(error) = values.take_row(row) {
            failure = Some(error);
        }
        failure.is_none() && values.bytes <= REPLY_BYTES_MAX
    })?;
    if let Some(error) = failure {
        return Err(error);
    }
    if values.bytes > REPLY_BYTES_MAX {
        return Err(Error::location(17217, "distinct too big, 16mb cap"));
    }
    Ok((values.sorted(), execution.examined()))
}

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
struct Values {
    path: Arc<Path>,
    name: String,
    recent: Recent,
    /// The values by their encoded form.
    found: BTreeMap<Vec<u8>, ValueBuf>,
    bytes: usize,
    collation: Option<Arc<Collation>>,
}

impl Values {
    fn new(path: &str, collation: Option<Arc<Collation>>) -> Self {
        Values {
            path: Arc::new(Path::new(path)),
            name: path.to_owned(),
            recent: Recent::default(),
            found: BTreeMap::new(),
            bytes: 0,
            collation,
        }
    }

    /// Adds the value of a row at the path: from the document, or from an index key that has the
    /// value.
    fn take_row(&mut self, row: &Row) -> Result<()> {
        if let Some(doc) = &row.doc {
            self.take(Doc::from_valid_bytes(doc));
            return Ok(());
        }
        let Some((keys, key)) = row.key_values()? else { return Ok(()) };
        let mut fields = keys.fields().iter().zip(&key);
        match fields.find(|(field, _)| field.part == Part::Value && field.path == self.name) {
            // The elements replace an array.
            Some((_, Some(value))) if !matches!(value.as_value(), Value::Array(_)) => {
                self.add(value.as_value());
            }
            Some((_, None)) => {}
            _ => self.take(Doc::from_valid_bytes(&row.doc_or_key()?)),
        }
        Ok(())
    }

    /// Adds the value at the path; the elements replace an array.
    fn take(&mut self, doc: Doc<'_>) {
        let path = self.path.clone();
        let _ = path.visit::<()>(doc, Leaf::Whole, |found| {
            match found.value {
                Some(Value::Array(array)) if self.collation.is_some() => self.add_sorted(array),
                Some(Value::Array(array)) => array.iter().for_each(|element| self.add(element)),
                Some(other) => self.add(other),
                None => {}
            }
            ControlFlow::Continue(())
        });
    }

    /// Adds the elements of an array. Of elements that are equal under a collation the one with the
    /// smallest bytes is kept, as in mongod.
    fn add_sorted(&mut self, array: Array<'_>) {
        let mut elements: Vec<Value<'_>> = array.iter().collect();
        elements.sort_by(|a, b| compare(*a, *b, None));
        elements.into_iter().for_each(|element| self.add(element));
    }

    fn add(&mut self, value: Value<'_>) {
        if self.recent.has(value) {
            return;
        }
        let encoded = match &self.collation {
            None => key::encode(value),
            Some(collation) => {
                let (mut encoded, mut bits) = (Vec::new(), key::TypeBits::new());
                key::append_full(value, false, Some(&**collation), &mut encoded, &mut bits);
                encoded
            }
        };
        if let Entry::Vacant(place) = self.found.entry(encoded) {
            let value = ValueBuf::new(value);
            self.bytes += value.size() + 8;
            place.insert(value);
        }
    }

    fn sorted(&self) -> ArrayBuf {
        self.found.values().collect()
    }
}
