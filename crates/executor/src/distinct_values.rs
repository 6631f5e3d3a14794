//! Sets of values, for a `distinct`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use quire_document::memory::{self, Charge};
use quire_document::{ArrayBuf, Value, ValueBuf, key};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::Collation;
use quire_mql::context::units;

use crate::env::Env;
use crate::recent_values::RecentValues;

/// The largest reply in bytes. MongoDB: 16 MiB (17217).
const REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The work of adding a value, in units of about ten nanoseconds.
const ADD_UNITS: u32 = 32;
/// An estimate of the memory of a value in the map, besides the value and its encoded form.
const ENTRY_BYTES: usize = 64;
/// The step in which memory is charged, in bytes.
const CHARGED_BYTES: usize = 1 << 20;

/// The values found so far.
#[derive(Default)]
pub(crate) struct DistinctValues {
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

    /// Adds a value, and remembers it in `recent` if it is short. Does nothing for a value in
    /// `recent`: it is already here, or in an earlier set that this one will be appended to.
    ///
    /// # Errors
    /// 17217 if the values do not fit into a reply; 146 if there is no memory; the interrupt's.
    pub fn add(
        &mut self,
        value: Value<'_>,
        collation: Option<&Collation>,
        recent: &mut RecentValues,
        env: &Env,
    ) -> Result<()> {
        if recent.has(value) {
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
