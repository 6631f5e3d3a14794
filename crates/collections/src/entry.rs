//! Keys and values of `Space::Idx` (docs/format.md, "Index entries").
//!
//! An ordinary entry is `index id | values | record id -> type bits`, a unique one
//! `index id | values -> record id | type bits`. Values are in the order-preserving encoding of
//! `quire_document::key`; more than [`LONG_KEY_BYTES`] of them are stored as that many bytes and
//! a hash of all.

use std::cmp::Ordering;

use bytes::{Buf, Bytes};
use quire_catalog::key::{GeneratedKeys, KeySpec};
use quire_catalog::{Index, IndexId};
use quire_document::key::TypeBits;
use quire_document::limits::{KEY_BYTES_PER_DOCUMENT_MAX, KEYS_PER_DOCUMENT_MAX};
use quire_document::{Value, ValueBuf};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::context::{count_work, stoppable};
use smallvec::SmallVec;
use twox_hash::XxHash3_128;

use crate::RecordId;
use crate::layout::damaged;

/// The longest encoded values that are stored whole, in bytes.
pub(crate) const LONG_KEY_BYTES: usize = 1024;
/// The length of the hash that follows the first [`LONG_KEY_BYTES`] of a longer key.
const HASH_BYTES: usize = 16;
/// The capacity for the key of an ObjectId or a number, which most keys are, so that its buffer
/// does not grow in steps.
const USUAL_KEY_BYTES: usize = 32;
const ID_BYTES: usize = 4;
const RECORD_BYTES: usize = 8;

/// The units of work of encoding a key and of sorting it among the others of its document.
const KEY_UNITS: u32 = 32;

/// The encoded entries of one document in one index, in key order, without duplicates. Reused for
/// the next document.
#[derive(Debug, Default)]
pub struct EntryKeys {
    keys: Vec<u8>,
    bits: Vec<u8>,
    entries: SmallVec<[Entry; 1]>,
    long: bool,
    collected: TypeBits,
}

/// One entry within the buffers of [`EntryKeys`].
#[derive(Debug, Clone, Copy)]
struct Entry {
    key: (u32, u32),
    bits: (u32, u32),
    /// The number of the generated key that it came from.
    source: u32,
}

/// A parsed index key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyOfEntry<'k> {
    /// The encoded values.
    pub values: &'k [u8],
    /// True if `values` is the prefix of a longer key and a hash.
    pub shortened: bool,
}

/// The decoded values of an index key, one for each field.
#[derive(Debug, Clone, Default)]
pub struct DecodedKey {
    /// The values in the order of the index's fields; `None` for a missing field.
    pub values: Vec<Option<ValueBuf>>,
}

impl EntryKeys {
    /// Encodes all generated keys of a document.
    ///
    /// # Errors
    /// 201 CannotBuildIndexKeys for more than [`KEYS_PER_DOCUMENT_MAX`] keys, or for more than
    /// [`KEY_BYTES_PER_DOCUMENT_MAX`] bytes: an array beside a long value repeats that value in
    /// each key.
    pub fn encode(&mut self, index: &Index, generated: &GeneratedKeys<'_>) -> Result<()> {
        self.clear();
        if generated.keys().count() > KEYS_PER_DOCUMENT_MAX {
            return Err(too_many_keys());
        }
        let mut left = KEY_BYTES_PER_DOCUMENT_MAX;
        for (source, values) in generated.keys().enumerate() {
            if source > 0 {
                count_work(KEY_UNITS)?;
            }
            let bytes = self.push(index, values, source as u32)?;
            left = left.checked_sub(bytes).ok_or_else(too_many_bytes)?;
        }
        if self.entries.len() > 1 {
            let keys = &self.keys;
            self.entries.sort_by(|a, b| slice(keys, a.key).cmp(slice(keys, b.key)));
            self.entries.dedup_by(|b, a| slice(keys, a.key) == slice(keys, b.key));
        }
        Ok(())
    }

    /// Encodes one key with one value.
    pub fn encode_single(&mut self, index: &Index, value: Value<'_>) -> Result<()> {
        self.clear();
        self.push(index, &[Some(value)], 0).map(|_| ())
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.bits.clear();
        self.entries.clear();
        self.long = false;
    }

    /// Encodes one key. Returns its length before it is shortened.
    fn push(&mut self, index: &Index, values: &[Option<Value<'_>>], source: u32) -> Result<usize> {
        let (key_start, bits_start) = (self.keys.len(), self.bits.len());
        self.keys.reserve(USUAL_KEY_BYTES);
        self.keys.extend_from_slice(&index.id.to_bytes());
        self.collected.clear();
        if index.keys.collation().is_none() {
            index.keys.append(values, &mut self.keys, &mut self.collected);
        } else {
            stoppable(|| {
                index.keys.append(values, &mut self.keys, &mut self.collected);
                Ok(())
            })?;
        }
        self.bits.extend_from_slice(self.collected.as_bytes());
        let bytes = self.keys.len() - key_start;
        self.long |= shorten(&mut self.keys, key_start + ID_BYTES);
        let too_many = |_| too_many_bytes();
        self.entries.push(Entry {
            key: (
                u32::try_from(key_start).map_err(too_many)?,
                u32::try_from(self.keys.len()).map_err(too_many)?,
            ),
            bits: (bits_start as u32, u32::try_from(self.bits.len()).map_err(too_many)?),
            source,
        });
        Ok(bytes)
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if the document is not in the index.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns true if a key was too long to be stored whole.
    pub(crate) fn has_long(&self) -> bool {
        self.long
    }

    /// Returns the number of the generated key that this entry came from.
    pub(crate) fn source(&self, at: usize) -> usize {
        self.entries.get(at).map_or(0, |entry| entry.source as usize)
    }

    /// Returns the index id and the values of an entry: the whole key of a unique entry.
    pub(crate) fn unique_key(&self, _: &Index, at: usize) -> &[u8] {
        self.entries.get(at).map_or(&[], |entry| slice(&self.keys, entry.key))
    }

    /// Returns the position of the entry with this index id and these values.
    pub(crate) fn find(&self, key: &[u8]) -> Option<usize> {
        self.entries.binary_search_by(|entry| slice(&self.keys, entry.key).cmp(key)).ok()
    }

    /// Returns the values of an entry.
    pub(crate) fn values(&self, at: usize) -> &[u8] {
        let whole = self.entries.get(at).map_or(&[][..], |entry| slice(&self.keys, entry.key));
        whole.get(ID_BYTES..).unwrap_or(&[])
    }

    /// Returns the type bits of an entry.
    pub(crate) fn type_bits(&self, at: usize) -> &[u8] {
        self.entries.get(at).map_or(&[], |entry| slice(&self.bits, entry.bits))
    }

    /// Returns the key and the value under which an entry is stored, each in two parts. `record` is
    /// the [`record_bytes`] of its document.
    pub(crate) fn parts<'k>(
        &'k self,
        index: &Index,
        at: usize,
        record: &'k [u8],
    ) -> ([&'k [u8]; 2], [&'k [u8]; 2]) {
        let (key, bits) = (self.unique_key(index, at), self.type_bits(at));
        match index.unique {
            true => ([key, &[]], [record, bits]),
            false => ([key, record], [bits, &[]]),
        }
    }

    /// Returns the key and the value under which an entry is stored.
    pub(crate) fn stored(&self, index: &Index, at: usize, id: RecordId) -> (Bytes, Bytes) {
        let record = record_bytes(id);
        let (key, value) = self.parts(index, at, &record);
        (Bytes::from(key.concat()), Bytes::from(value.concat()))
    }

    /// Merges both in key order. Reports the entries that are only in `old`, those that are only in
    /// `new`, and those that are in both with different type bits, as both.
    pub(crate) fn difference(
        old: &EntryKeys,
        new: &EntryKeys,
        removed: &mut Vec<usize>,
        added: &mut Vec<usize>,
    ) {
        removed.clear();
        added.clear();
        let (mut a, mut b) = (0, 0);
        loop {
            let (left, right) = (old.entries.get(a), new.entries.get(b));
            let order = match (left, right) {
                (None, None) => return,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(x), Some(y)) => slice(&old.keys, x.key).cmp(slice(&new.keys, y.key)),
            };
            match order {
                Ordering::Less => {
                    removed.push(a);
                    a += 1;
                }
                Ordering::Greater => {
                    added.push(b);
                    b += 1;
                }
                Ordering::Equal => {
                    if old.type_bits(a) != new.type_bits(b) {
                        removed.push(a);
                        added.push(b);
                    }
                    a += 1;
                    b += 1;
                }
            }
        }
    }
}

fn too_many_keys() -> Error {
    let text = format!("One document has more than {KEYS_PER_DOCUMENT_MAX} keys in an index");
    Error::new(ErrorCode::CannotBuildIndexKeys, text)
}

fn too_many_bytes() -> Error {
    let text = format!(
        "The keys of one document in an index have more than {KEY_BYTES_PER_DOCUMENT_MAX} bytes"
    );
    Error::new(ErrorCode::CannotBuildIndexKeys, text)
}

fn slice(buffer: &[u8], range: (u32, u32)) -> &[u8] {
    buffer.get(range.0 as usize..range.1 as usize).unwrap_or(&[])
}

/// Shortens the values from `start` on to their stored length. Returns true if they were shortened.
pub(crate) fn shorten(key: &mut Vec<u8>, start: usize) -> bool {
    if key.len() - start <= LONG_KEY_BYTES {
        return false;
    }
    let hash = XxHash3_128::oneshot(&key[start..]);
    key.truncate(start + LONG_KEY_BYTES);
    key.extend_from_slice(&hash.to_be_bytes());
    true
}

/// Returns a record id in the encoding of index entries.
pub(crate) fn record_bytes(id: RecordId) -> [u8; RECORD_BYTES] {
    id.0.to_be_bytes()
}

/// Returns the record id in a unique entry's value.
pub(crate) fn record_id_of_unique(value: &[u8]) -> Result<RecordId> {
    match value.first_chunk::<RECORD_BYTES>() {
        Some(bytes) => Ok(RecordId(u64::from_be_bytes(*bytes))),
        None => Err(damaged("a unique index entry")),
    }
}

/// Splits an entry: the values in its key, the record id, the type bits.
pub(crate) fn split_entry(
    unique: bool,
    key: &Bytes,
    value: &Bytes,
) -> Result<(Bytes, RecordId, Bytes)> {
    into_parts(unique, key.clone(), value.clone())
}

/// Splits an entry by moving its key and value, which avoids two updates of reference counts.
#[inline]
pub(crate) fn into_parts(
    unique: bool,
    mut key: Bytes,
    mut value: Bytes,
) -> Result<(Bytes, RecordId, Bytes)> {
    let record = if unique {
        let record = record_id_of_unique(&value)?;
        value.advance(RECORD_BYTES);
        record
    } else {
        let (rest, record) = key
            .split_last_chunk::<RECORD_BYTES>()
            .ok_or_else(|| damaged("an index entry's key"))?;
        let (length, record) = (rest.len(), RecordId(u64::from_be_bytes(*record)));
        key.truncate(length);
        record
    };
    if key.len() < ID_BYTES {
        return Err(damaged("an index entry's key"));
    }
    key.advance(ID_BYTES);
    Ok((key, record, value))
}

/// Returns true if encoded values are the prefix of a longer key and a hash.
pub(crate) fn is_shortened(values: &[u8]) -> bool {
    values.len() == LONG_KEY_BYTES + HASH_BYTES
}

/// Returns the values of an entry as they were in the document; `None` if the key was too long to
/// be stored whole.
pub fn decode_entry(keys: &KeySpec, values: &[u8], type_bits: &[u8]) -> Result<Option<DecodedKey>> {
    if is_shortened(values) {
        return Ok(None);
    }
    let values = keys.decode(values, type_bits).map_err(|_| damaged("an index key"))?;
    Ok(Some(DecodedKey { values }))
}

/// Returns the range of the entries of an index.
pub(crate) fn index_range(id: IndexId) -> (Vec<u8>, Vec<u8>) {
    let start = id.to_bytes().to_vec();
    let end = quire_storage::prefix_end(&start);
    (start, end)
}
