//! Keys and values of buckets in `Space::Idx` (docs/format.md, "Buckets of a collection").

use bytes::Bytes;
use quire_catalog::IndexId;
use quire_document::{DocBuf, ObjectId, Value, ValueBuf};
use quire_error::Result;

use super::entry::BucketEntry;
use crate::layout::damaged;
use crate::meta::meta_doc;

/// The most points of a bucket.
pub const POINTS_MAX: usize = 1000;

/// The key of the last number that a bucket got.
const LAST: u8 = 0x00;
/// The keys of the data, by number.
const DATA: u8 = 0x01;
/// The keys of the directory by time.
const BY_TIME: u8 = 0x02;
/// The keys of the directory by meta value and time.
const BY_META: u8 = 0x03;
/// The keys of what is remembered of restored buckets of MongoDB, by their `_id`.
const RESTORED: u8 = 0x04;

/// The number of bytes of the collection and of the kind of a key.
const PREFIX_BYTES: usize = 5;
/// The number of bytes of a time and of a number in a key.
const NUMBER_BYTES: usize = 8;

/// The times, in milliseconds since 1970, from `first` to `last`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first time.
    pub first: i64,
    /// The last time.
    pub last: i64,
}

impl Span {
    /// The span that contains every time.
    pub const ALL: Span = Span { first: i64::MIN, last: i64::MAX };

    /// Returns true if no time is in it.
    pub fn is_empty(self) -> bool {
        self.first > self.last
    }
}

fn tagged(buckets: IndexId, tag: u8) -> Vec<u8> {
    let mut key = Vec::with_capacity(32);
    key.extend_from_slice(&buckets.to_bytes());
    key.push(tag);
    key
}

/// Returns a time so that the order of the bytes is that of the times.
fn time_bytes(time_ms: i64) -> [u8; NUMBER_BYTES] {
    (time_ms as u64 ^ 1 << 63).to_be_bytes()
}

/// Returns the key of the last number.
pub(crate) fn last_key(buckets: IndexId) -> Bytes {
    tagged(buckets, LAST).into()
}

/// Returns the number in the value of [`last_key`].
pub(crate) fn last_number(value: &[u8]) -> Result<u64> {
    let bytes = value.try_into().map_err(|_| damaged("the number of the last bucket"))?;
    Ok(u64::from_be_bytes(bytes))
}

/// Returns the key of a bucket's data.
pub(crate) fn data_key(buckets: IndexId, number: u64) -> Bytes {
    let mut key = tagged(buckets, DATA);
    key.extend_from_slice(&number.to_be_bytes());
    key.into()
}

/// Returns the key of what is remembered of a restored bucket of MongoDB.
pub(crate) fn restored_key(buckets: IndexId, id: ObjectId) -> Bytes {
    let mut key = tagged(buckets, RESTORED);
    key.extend_from_slice(&id.0);
    key.into()
}

/// Returns the range of the data of all buckets.
pub(crate) fn data_range(buckets: IndexId) -> (Vec<u8>, Vec<u8>) {
    (tagged(buckets, DATA), tagged(buckets, DATA + 1))
}

/// Returns the prefix of the directory by time, or of the part of the directory by meta value that has one value.
pub(super) fn directory(buckets: IndexId, meta_key: Option<&[u8]>) -> Vec<u8> {
    match meta_key {
        None => tagged(buckets, BY_TIME),
        Some(meta) => {
            let mut key = tagged(buckets, BY_META);
            key.extend_from_slice(meta);
            key
        }
    }
}

/// Returns the range of the keys of a directory whose buckets begin in a span.
pub(super) fn directory_range(prefix: &[u8], begins: Span) -> (Vec<u8>, Vec<u8>) {
    let start = [prefix, &time_bytes(begins.first)].concat();
    let end = match begins.last.checked_add(1) {
        Some(after) => [prefix, &time_bytes(after)].concat(),
        None => quire_storage::prefix_end(prefix),
    };
    (start, end)
}

/// Returns the whole range of the directory by time, and of that by meta value.
pub(crate) fn directories(buckets: IndexId) -> [(Vec<u8>, Vec<u8>); 2] {
    [BY_TIME, BY_META].map(|tag| (tagged(buckets, tag), tagged(buckets, tag + 1)))
}

/// Returns the keys of a bucket in both directories.
pub(crate) fn directory_keys(buckets: IndexId, meta_key: &[u8], entry: &BucketEntry) -> [Bytes; 2] {
    [None, Some(meta_key)].map(|meta| {
        let mut key = directory(buckets, meta);
        key.extend_from_slice(&time_bytes(entry.min_ms));
        key.extend_from_slice(&entry.number.to_be_bytes());
        key.into()
    })
}

/// Returns the value of a bucket in both directories.
pub(crate) fn directory_value(entry: &BucketEntry) -> Bytes {
    let value = DocBuf::build(|writer| {
        writer.append("last", Value::Date(entry.max_ms));
        writer.append("points", i64::from(entry.points));
        writer.append("bytes", i64::from(entry.bytes));
        writer.append_some("meta", entry.meta.as_ref().map(ValueBuf::as_value));
    });
    value.into_bytes().into()
}

/// Returns the key of the meta value in a key of the directory by meta value.
pub(super) fn source_of(key: &[u8]) -> Result<&[u8]> {
    let end = key.len().checked_sub(2 * NUMBER_BYTES);
    let source = end.and_then(|end| key.get(PREFIX_BYTES..end));
    source.ok_or_else(|| damaged("a directory of buckets"))
}

/// Returns what a row of a directory says.
pub(crate) fn directory_entry(key: &[u8], value: &[u8]) -> Result<BucketEntry> {
    let broken = || damaged("a directory of buckets");
    let (rest, number) = key.split_last_chunk::<NUMBER_BYTES>().ok_or_else(broken)?;
    let (_, first) = rest.split_last_chunk::<NUMBER_BYTES>().ok_or_else(broken)?;
    let value = meta_doc(value)?;
    let count = |name: &str| match value.get(name) {
        Some(Value::Int64(count)) => u32::try_from(count).map_err(|_| broken()),
        _ => Err(broken()),
    };
    let Some(Value::Date(max_ms)) = value.get("last") else { return Err(broken()) };
    Ok(BucketEntry {
        number: u64::from_be_bytes(*number),
        min_ms: (u64::from_be_bytes(*first) ^ 1 << 63) as i64,
        max_ms,
        points: count("points")?,
        bytes: count("bytes")?,
        meta: value.get("meta").map(ValueBuf::new),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_rows_are_read_back_and_sorted_by_time() {
        let entry = |number, min_ms| BucketEntry {
            number,
            min_ms,
            max_ms: min_ms + 5,
            points: 3,
            bytes: 700,
            meta: Some(ValueBuf::new("a")),
        };
        let times = [i64::MIN, -1, 0, 1, i64::MAX - 5];
        let keys = times.map(|time| directory_keys(IndexId(7), b"m", &entry(9, time)));
        assert!(keys.is_sorted());
        for (time, keys) in times.into_iter().zip(&keys) {
            let value = directory_value(&entry(9, time));
            for key in keys {
                assert_eq!(directory_entry(key, &value).unwrap(), entry(9, time));
            }
            assert_eq!(source_of(&keys[1]).unwrap(), b"m");
            let (start, end) =
                directory_range(&directory(IndexId(7), None), Span { first: time, last: time });
            assert!(start[..] <= keys[0][..] && keys[0][..] < end[..]);
        }
        assert!(directory_entry(b"short", b"").is_err());
    }
}
