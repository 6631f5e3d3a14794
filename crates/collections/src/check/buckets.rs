//! Checks the buckets of a time-series collection: their data and points, and both directories.

use std::sync::Arc;

use bytes::Bytes;
use quire_catalog::IndexId;
use quire_document::{Doc, Value, ValueBuf, identical, limits::Limits, validate};
use quire_error::{ErrorCode, Result};
use quire_mql::time_series::TimeSeriesOptions;
use quire_storage::{CommitOptions, Mode, Snapshot, Space, begin};

use super::Checker;
use super::walks::walk;
use crate::failure::from_storage;
use crate::findings::{Problem, Repair};
use crate::series::layout::{
    data_range, directories, directory_entry, directory_keys, directory_value,
};
use crate::series::{BucketEntry, PackedBucket, meta_key};

/// The sums over the buckets of a collection.
#[derive(Default)]
pub(super) struct BucketSums {
    /// The number of their points.
    pub points: u64,
    /// The sum of their lengths as BSON.
    pub bytes: u64,
    /// True if data could not be read.
    pub is_unreadable: bool,
}

/// The writes that correct the directories: deletes have no value.
type Writes = Vec<(Bytes, Option<Bytes>)>;

impl Checker<'_> {
    /// Checks every bucket, and that both directories have exactly the buckets.
    pub(super) fn check_buckets(&mut self, snapshot: &dyn Snapshot) -> Result<BucketSums> {
        let mut sums = BucketSums::default();
        // The number may be from after the collection was looked up.
        let catalog = self.store.catalog();
        let found = catalog.by_id(self.collection.id).cloned();
        let Some((found, buckets)) =
            found.and_then(|found| Some((Arc::clone(&found), found.buckets?)))
        else {
            return Ok(sums);
        };
        let Some(series) = found.options.time_series() else { return Ok(sums) };
        let (mut writes, mut count) = (Writes::new(), 0_u64);
        let (start, end) = data_range(buckets);
        let interrupt = self.interrupt;
        let read = walk(snapshot, Space::Idx, start, &end, interrupt, |key, data| {
            count += 1;
            let Some(entry) = self.check_bucket(key, data, series) else { return Ok(()) };
            sums.points += u64::from(entry.points);
            sums.bytes += u64::from(entry.bytes);
            self.check_listed(snapshot, buckets, &entry, &mut writes)
        });
        if let Err(error) = read {
            if error.code() != ErrorCode::DataCorruptionDetected {
                return Err(error);
            }
            sums.is_unreadable = true;
            self.find("buckets cannot be read".to_owned(), Problem::Other, false);
        } else {
            self.check_directories(snapshot, (buckets, count), &mut writes)?;
        }
        self.repair_directories(writes)?;
        Ok(sums)
    }

    /// Returns what the directories must say about a bucket; `None` after a finding.
    fn check_bucket(
        &mut self,
        key: &Bytes,
        data: &Bytes,
        series: &TimeSeriesOptions,
    ) -> Option<BucketEntry> {
        let number = key.last_chunk::<8>().map(|number| u64::from_be_bytes(*number))?;
        let found = PackedBucket::of_data(number, data.clone());
        let points = found.as_ref().ok().map(PackedBucket::all_points);
        let (Ok(bucket), Some(Ok(points))) = (found, points) else {
            self.find(format!("bucket {number} is damaged"), Problem::Other, false);
            return None;
        };
        if let Some(problem) = problem_of(&bucket.entry, &points, series) {
            self.find(format!("bucket {number} has {problem}"), Problem::Other, false);
        }
        Some(bucket.entry)
    }

    /// Checks that both directories have a bucket.
    fn check_listed(
        &mut self,
        snapshot: &dyn Snapshot,
        buckets: IndexId,
        entry: &BucketEntry,
        writes: &mut Writes,
    ) -> Result<()> {
        let value = directory_value(entry);
        for key in directory_keys(buckets, &key_of(entry), entry) {
            if snapshot.get(Space::Idx, &key).map_err(from_storage)?.as_ref() != Some(&value) {
                let problem = format!("a directory lacks bucket {}", entry.number);
                self.find(problem, Problem::Other, self.repair == Repair::All);
                writes.push((key, Some(value.clone())));
            }
        }
        Ok(())
    }

    /// Checks that the directories have no other buckets. `count` is the number of buckets.
    fn check_directories(
        &mut self,
        snapshot: &dyn Snapshot,
        (buckets, count): (IndexId, u64),
        writes: &mut Writes,
    ) -> Result<()> {
        let interrupt = self.interrupt;
        for (start, end) in directories(buckets) {
            let mut listed = 0;
            walk(snapshot, Space::Idx, start.clone(), &end, interrupt, |_, _| {
                listed += 1;
                Ok(())
            })?;
            if listed == count && writes.is_empty() {
                continue;
            }
            walk(snapshot, Space::Idx, start, &end, interrupt, |key, value| {
                if !is_right(snapshot, buckets, key, value)? {
                    let problem = "a directory lists a bucket that does not exist".to_owned();
                    self.find(problem, Problem::Other, self.repair == Repair::All);
                    writes.insert(0, (key.clone(), None));
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn repair_directories(&self, writes: Writes) -> Result<()> {
        if self.repair != Repair::All || writes.is_empty() {
            return Ok(());
        }
        let mut txn = begin(self.store.engine(), Mode::Write).map_err(from_storage)?;
        for (key, value) in writes {
            match value {
                Some(value) => txn.put(Space::Idx, key, value),
                None => txn.delete(Space::Idx, key),
            }
            .map_err(from_storage)?;
        }
        txn.commit(CommitOptions::synced()).map_err(from_storage)?;
        Ok(())
    }
}

fn key_of(entry: &BucketEntry) -> Vec<u8> {
    meta_key(entry.meta.as_ref().map(ValueBuf::as_value))
}

/// Returns true if a row of a directory belongs to a bucket whose data say the same.
fn is_right(snapshot: &dyn Snapshot, buckets: IndexId, key: &Bytes, value: &Bytes) -> Result<bool> {
    let Ok(listed) = directory_entry(key, value) else { return Ok(false) };
    let data = crate::series::layout::data_key(buckets, listed.number);
    let Some(data) = snapshot.get(Space::Idx, &data).map_err(from_storage)? else {
        return Ok(false);
    };
    let is_same = |found: PackedBucket| {
        let entry = &found.entry;
        *entry == listed && directory_keys(buckets, &key_of(entry), entry).contains(key)
    };
    // Of a bucket that cannot be read the directory is kept.
    Ok(PackedBucket::of_data(listed.number, data).map_or(true, is_same))
}

/// Returns what is wrong with the points of a bucket.
fn problem_of(
    entry: &BucketEntry,
    points: &[Bytes],
    series: &TimeSeriesOptions,
) -> Option<&'static str> {
    let meta = entry.meta.as_ref().map(ValueBuf::as_value);
    let mut last = entry.min_ms;
    for point in points {
        if validate(point, &Limits::WIRE).is_err() {
            return Some("a point that is no valid document");
        }
        let point = Doc::from_valid_bytes(point);
        let Some(Value::Date(time)) = point.get(&series.time_field) else {
            return Some("a point without a date");
        };
        if time < last || time > entry.max_ms {
            return Some("points out of order");
        }
        last = time;
        let own = series.meta_field.as_deref().and_then(|field| point.get(field));
        let is_same = match (own, meta) {
            (None, None) => true,
            (Some(own), Some(meta)) => identical(own, meta),
            _ => false,
        };
        if !is_same {
            return Some("a point of another source");
        }
    }
    None
}
