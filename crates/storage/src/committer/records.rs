//! The engine's own records in `Meta` and the keys of `Log` (docs/format.md, "Storage engine").

use std::collections::HashMap;

use bytes::{BufMut, Bytes, BytesMut};

use crate::backend::RawSnapshot;
use crate::committer::PendingDrop;
use crate::contract::{
    ClusterTime, Counts, DropRange, Op, Page, ScanRequest, Snapshot, Space, Version,
};
use crate::error::{Result, StorageError};

const STATE: [u8; 2] = [0, 1];
const COUNTS: u8 = 2;
const DROPPED: u8 = 3;
const LOG_BEGIN: [u8; 2] = [0, 4];

/// The end of the keys of change records. The keys of `Log` from here on belong to the layer above.
pub const LOG_END: [u8; 1] = [0xff];

/// The counters of each collection, by its id. The hash is a fast one, because every commit looks
/// up a counter. It need not resist chosen keys, because the server assigns the ids.
pub(crate) type CountsByCollection = HashMap<u32, Counts, foldhash::fast::RandomState>;

/// The state of an engine as its records describe it when it is opened.
pub(crate) struct Recovered {
    pub version: u64,
    pub cluster_time: ClusterTime,
    pub counts: CountsByCollection,
    pub drops: Vec<PendingDrop>,
    pub log_begin: u64,
}

/// The place of a group in the log, which every group records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupPlace {
    /// The last version of the group.
    pub version: u64,
    /// The last version of the previous group, if the record has it. Consecutive groups have no gap
    /// between them.
    pub before: Option<u64>,
    /// The version up to which everything was on stable storage when the group was written, if the
    /// record has it.
    pub durable: Option<u64>,
}

/// The numbers in the records of a group.
#[derive(Clone, Copy)]
pub(crate) struct GroupEnd {
    pub version: u64,
    pub time: ClusterTime,
    pub before: u64,
    pub durable: u64,
}

impl GroupEnd {
    fn put(self, value: &mut BytesMut) {
        value.put_u64(self.version);
        value.put_u64(self.time.0);
        value.put_u64(self.before);
        value.put_u64(self.durable);
    }
}

/// Decodes the place of a group from one of the records in `Meta` that contain it. Returns `None`
/// for every other key.
pub fn group_place(key: &[u8], value: &[u8]) -> Option<GroupPlace> {
    let numbers = match key {
        [0, 1] => value,
        [0, COUNTS, ..] => value.get(16..)?,
        _ => return None,
    };
    let ([version, _], rest) = place_of(numbers)?;
    let (before, durable) = rest.unzip();
    Some(GroupPlace { version, before, durable })
}

/// Version and cluster time; then the version before and the durable one, if the record has them.
type StoredPlace = ([u64; 2], Option<(u64, u64)>);

/// Decodes version and cluster time and, in the present format, the version before and the durable
/// one.
fn place_of(bytes: &[u8]) -> Option<StoredPlace> {
    if let Some([version, time, before, durable]) = numbers(bytes) {
        return Some(([version, time], Some((before, durable))));
    }
    Some((numbers(bytes)?, None))
}

/// Returns the record `00 01`: the place of a group without counters.
pub(crate) fn state(end: GroupEnd) -> (Bytes, Bytes) {
    let mut value = BytesMut::with_capacity(32);
    end.put(&mut value);
    (Bytes::from_static(&STATE), value.freeze())
}

/// Returns the key of a counter record, `00 02 collection`.
pub(crate) fn counts_key(collection: u32) -> Bytes {
    let mut key = BytesMut::with_capacity(6);
    key.put_slice(&[0, COUNTS]);
    key.put_u32(collection);
    key.freeze()
}

/// Returns the value of a counter record, which also contains the group's place.
pub(crate) fn counts_value(counts: Counts, end: GroupEnd) -> Bytes {
    let mut value = BytesMut::with_capacity(48);
    value.put_u64(counts.documents);
    value.put_u64(counts.bytes);
    end.put(&mut value);
    value.freeze()
}

/// Returns the record `00 03 version index`: a dropped range that is not permanently gone.
pub(crate) fn dropped(version: u64, index: u32, range: &DropRange) -> (Bytes, Bytes) {
    let mut key = BytesMut::with_capacity(14);
    key.put_slice(&[0, DROPPED]);
    key.put_u64(version);
    key.put_u32(index);
    let mut value = BytesMut::with_capacity(5 + range.start.len() + range.end.len());
    value.put_u8(range.space as u8);
    value.put_u32(u32::try_from(range.start.len()).unwrap_or(u32::MAX));
    value.put_slice(&range.start);
    value.put_slice(&range.end);
    (key.freeze(), value.freeze())
}

/// Returns the record `00 04`: the version at which the change records begin.
pub(crate) fn log_begin(version: u64) -> Op {
    let value = Bytes::copy_from_slice(&version.to_be_bytes());
    Op { space: Space::Meta, key: Bytes::from_static(&LOG_BEGIN), value: Some(value) }
}

/// Returns the key of a change record: the version of its commit and its position in the commit.
pub fn log_key(version: u64, index: u32) -> Bytes {
    let mut key = BytesMut::with_capacity(12);
    key.put_u64(version);
    key.put_u32(index);
    key.freeze()
}

/// Decodes a key that [`log_key`] made.
pub fn split_log_key(key: &[u8]) -> Option<(u64, u32)> {
    let (version, index) = key.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*version), u32::from_be_bytes(index.try_into().ok()?)))
}

/// Returns the value of a change record: the cluster time, then the caller's bytes.
pub(crate) fn log_value(time: ClusterTime, record: &[u8]) -> Bytes {
    let mut value = BytesMut::with_capacity(8 + record.len());
    value.put_u64(time.0);
    value.put_slice(record);
    value.freeze()
}

/// Returns the cluster time in a change record's value.
fn log_time(value: &[u8]) -> Option<ClusterTime> {
    value.first_chunk::<8>().map(|time| ClusterTime(u64::from_be_bytes(*time)))
}

/// Returns the key of the first change record that is not earlier than `time`, or `None` if all are
/// earlier. Does a binary search over the versions from `begins_at` to that of `snapshot`, and
/// reads one record for each step.
pub fn seek_log(
    snapshot: &dyn Snapshot,
    begins_at: Version,
    time: ClusterTime,
) -> Result<Option<Bytes>> {
    let mut page = Page::default();
    let mut first_from = |version: u64| -> Result<Option<(Bytes, ClusterTime)>> {
        let start = log_key(version, 0);
        let request = ScanRequest::new(Space::Log, &start, &LOG_END).rows_max(1);
        snapshot.scan(&request, &mut page)?;
        let Some((key, value)) = page.rows.pop() else { return Ok(None) };
        let time = log_time(&value).ok_or_else(|| corrupt(&key))?;
        Ok(Some((key, time)))
    };
    // Cluster times ascend with the versions.
    let (mut low, mut high) = (begins_at.as_u64(), snapshot.version().as_u64() + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        match first_from(middle)? {
            Some((key, found)) if found < time => {
                low = split_log_key(&key).ok_or_else(|| corrupt(&key))?.0 + 1;
            }
            _ => high = middle,
        }
    }
    Ok(first_from(low)?.map(|(key, _)| key))
}

fn corrupt(key: &[u8]) -> StorageError {
    StorageError::Corruption { place: format!("meta record {key:02x?}") }
}

fn numbers<const N: usize>(bytes: &[u8]) -> Option<[u64; N]> {
    let mut out = [0; N];
    let (chunks, rest) = bytes.as_chunks::<8>();
    if chunks.len() != N || !rest.is_empty() {
        return None;
    }
    for (to, from) in out.iter_mut().zip(chunks) {
        *to = u64::from_be_bytes(*from);
    }
    Some(out)
}

fn parse_dropped(key: &Bytes, value: &Bytes) -> Option<PendingDrop> {
    let (version, _) = split_log_key(key.get(2..)?)?;
    let space = Space::from_index(*value.first()?)?;
    let (length, rest) = value.get(1..)?.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (start, end) = (rest.get(..length)?, rest.get(length..)?);
    let range = DropRange { space, start: value.slice_ref(start), end: value.slice_ref(end) };
    Some(PendingDrop { version, record: key.clone(), range, freed: false })
}

/// Reads all records of the engine.
pub(crate) fn recover(snap: &impl RawSnapshot) -> Result<Recovered> {
    let mut found = Recovered {
        version: 0,
        cluster_time: ClusterTime::default(),
        counts: CountsByCollection::default(),
        drops: Vec::new(),
        log_begin: 0,
    };
    let mut page = Page::default();
    let mut start = Bytes::from_static(&[0]);
    loop {
        page.clear();
        snap.scan(&ScanRequest::new(Space::Meta, &start, &[1]), &mut page)?;
        for (key, value) in &page.rows {
            read_record(key, value, &mut found).ok_or_else(|| corrupt(key))?;
        }
        match page.resume.take() {
            Some(next) => start = next,
            None => return Ok(found),
        }
    }
}

fn read_record(key: &Bytes, value: &Bytes, found: &mut Recovered) -> Option<()> {
    let mut seen = |version: u64, time: u64| {
        found.version = found.version.max(version);
        found.cluster_time = found.cluster_time.max(ClusterTime(time));
    };
    match key.get(1)? {
        1 => {
            let ([version, time], _) = place_of(value)?;
            seen(version, time);
        }
        &COUNTS => {
            let collection = u32::from_be_bytes(key.get(2..)?.try_into().ok()?);
            let [documents, bytes] = numbers(value.get(..16)?)?;
            let ([version, time], _) = place_of(value.get(16..)?)?;
            seen(version, time);
            found.counts.insert(collection, Counts { documents, bytes });
        }
        &DROPPED => {
            let drop = parse_dropped(key, value)?;
            seen(drop.version, 0);
            found.drops.push(drop);
        }
        4 => found.log_begin = u64::from_be_bytes(value.as_ref().try_into().ok()?),
        _ => return None,
    }
    Some(())
}
