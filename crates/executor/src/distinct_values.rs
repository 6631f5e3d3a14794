//! Sets of values, for a `distinct`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use quire_document::memory::{self, Charge};
use quire_document::{ArrayBuf, Value, ValueBuf, key};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::Collation;
use quire_mql::context::units;

use crate::env::Env;

/// The largest reply in bytes. MongoDB: 16 MiB (17217).
const REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The work of adding a value, in units of about ten nanoseconds.
const ADD_UNITS: u32 = 32;
/// An estimate of the memory of a value in the map, besides the value and its encoded form.
const ENTRY_BYTES: usize = 64;
/// Memory is charged in steps of so many bytes.
const CHARGED_BYTES: usize = 1 << 20;

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
    /// The length of their array in BSON.
    reply_bytes: usize,
    /// An estimate of their memory.
    held_bytes: usize,
    charge: Charge,
}

impl DistinctValues {
    /// Returns an estimate of the memory of the values, in bytes.
    pub fn size(&self) -> usize {
        self.held_bytes
    }

    /// Adds values that were found later.
    pub fn append(&mut self, later: Self) -> Result<()> {
        let mut found = later.found.into_iter();
        found.try_for_each(|(encoded, value)| self.insert(encoded, value))
    }

    /// Frees memory that only further values need.
    pub fn settle(&mut self) {
        self.recent = Recent::default();
    }

    /// Adds a value.
    ///
    /// # Errors
    /// 17217 if the values do not fit into a reply; 146 if there is no memory; the interrupt's.
    pub fn add(
        &mut self,
        value: Value<'_>,
        collation: Option<&Collation>,
        env: &Env,
    ) -> Result<()> {
        if self.recent.has(value) {
            return Ok(());
        }
        let encoded = match collation {
            None => key::encode(value),
            Some(collation) => {
                let (mut encoded, mut bits) = (Vec::new(), key::TypeBits::new());
                key::append_full(value, false, Some(collation), &mut encoded, &mut bits);
                encoded
            }
        };
        env.shared.work(ADD_UNITS + units(encoded.len()))?;
        if self.found.contains_key(&encoded) {
            return Ok(());
        }
        self.insert(encoded, ValueBuf::new(value))
    }

    fn insert(&mut self, encoded: Vec<u8>, value: ValueBuf) -> Result<()> {
        let number = self.found.len();
        let Entry::Vacant(place) = self.found.entry(encoded) else { return Ok(()) };
        // In the reply: its type, its number in decimal digits, a zero, and the value.
        let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
        self.reply_bytes += digits + 2 + value.bson_len();
        self.held_bytes += place.key().len() + value.size() + ENTRY_BYTES;
        place.insert(value);
        if self.reply_bytes > REPLY_BYTES_MAX {
            return Err(Error::location(17217, "distinct too big, 16mb cap"));
        }
        if self.held_bytes > self.charge.bytes() + CHARGED_BYTES {
            let refused = |_| Error::new(ErrorCode::ExceededMemoryLimit, memory::exhausted());
            return self.charge.resize(self.held_bytes).map_err(refused);
        }
        Ok(())
    }

    /// Returns the values in MongoDB's order.
    pub fn sorted(&self) -> ArrayBuf {
        self.found.values().collect()
    }
}
