//! Index values to bytes and back: `quire_document::key` under an index's directions.

use quire_catalog::Index;
use quire_document::key::{self, KeyReader, TypeBits};
use quire_document::{Value, ValueBuf};
use quire_error::Result;

use crate::layout::damaged;

/// Appends the values of one key. Fewer values than fields are the beginning of a key.
pub(crate) fn append(
    index: &Index,
    values: &[Option<Value<'_>>],
    key: &mut Vec<u8>,
    bits: &mut TypeBits,
) {
    for (field, value) in index.fields.iter().zip(values) {
        match value {
            Some(value) => key::append_full(*value, field.descending, None, key, bits),
            None => key::append_missing(field.descending, key, bits),
        }
    }
}

/// Appends the first values of a key, for a bound.
pub(crate) fn append_bound(index: &Index, values: &[Value<'_>], key: &mut Vec<u8>) {
    for (field, value) in index.fields.iter().zip(values) {
        key::append(*value, field.descending, key);
    }
}

/// The values of a key as they were; `None` where the document has no such field.
pub(crate) fn decode(index: &Index, key: &[u8], bits: &[u8]) -> Result<Vec<Option<ValueBuf>>> {
    let mut reader = KeyReader::new(key, bits);
    index
        .fields
        .iter()
        .map(|field| reader.next(field.descending).map_err(|_| damaged("an index key")))
        .collect()
}
