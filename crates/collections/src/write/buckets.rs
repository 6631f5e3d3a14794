//! Moves points of a time-series collection between records and buckets. Either move is part of one commit, so that
//! every snapshot has a point exactly once.

use bytes::Bytes;
use quire_catalog::{Collection, IndexId};
use quire_document::{Doc, ValueBuf};
use quire_error::Error;
use quire_mql::time_series::TimeSeriesOptions;
use quire_storage::{Snapshot, Space};

use super::Writer;
use crate::failure::Attempt;
use crate::layout::doc_key;
use crate::series::{BucketEntry, PackedBucket, layout, meta_key, pack_points, source_index};
use crate::{RecordId, StoredDoc};

/// Points of one source that are records: sorted by time, and with the same meta value.
pub(crate) struct ClosingPoints {
    /// The records with their documents.
    pub rows: Vec<(RecordId, StoredDoc)>,
    /// The times of the first and of the last point, in milliseconds since 1970.
    pub times: (i64, i64),
    /// The meta value of all of them.
    pub meta: Option<ValueBuf>,
}

impl Writer {
    /// Replaces records by buckets, one for each of `closing`, which are in the order of the index of sources. The commit
    /// fails with a conflict if one of the records changes meanwhile.
    pub(crate) fn close_points(
        &mut self,
        collection: &Collection,
        (buckets, series): (IndexId, &TimeSeriesOptions),
        closing: &[ClosingPoints],
    ) -> Attempt<()> {
        self.guard(collection)?;
        for closing in closing {
            let points: Vec<Doc<'_>> = closing.rows.iter().map(|(_, doc)| doc.as_doc()).collect();
            let data = pack_points(&points, series)?;
            let too_large = |_| Error::internal("a bucket with too many points or bytes");
            let bytes: usize = points.iter().map(|point| point.len()).sum();
            let entry = BucketEntry {
                number: self.take_bucket_number(buckets)?,
                min_ms: closing.times.0,
                max_ms: closing.times.1,
                points: u32::try_from(points.len()).map_err(too_large)?,
                bytes: u32::try_from(bytes).map_err(too_large)?,
                meta: closing.meta.clone(),
            };
            self.put_bucket(buckets, &entry, data)?;
        }
        let rows = closing.iter().flat_map(|closing| &closing.rows);
        self.delete_points(collection, series, rows)?;
        self.note_deleted(collection)?;
        self.charge_growth()
    }

    /// Deletes records, which are in the order of the index of sources: first the documents, then the entries of one index
    /// after the other. A key that is near the one before it costs little in the buffer and in the memtable, and each
    /// index gets its keys as nearly in their order as that is known.
    fn delete_points<'p>(
        &mut self,
        collection: &Collection,
        series: &TimeSeriesOptions,
        by_source: impl Iterator<Item = &'p (RecordId, StoredDoc)> + Clone,
    ) -> Attempt<()> {
        let mut by_id: Vec<&(RecordId, StoredDoc)> = by_source.clone().collect();
        by_id.sort_by_key(|(id, _)| *id);
        for (id, _) in &by_id {
            let key = self.pieces.copy(&doc_key(collection.id, *id));
            self.txn.delete(Space::Doc, key)?;
        }
        let sources = source_index(collection, series).map(|index| index.id);
        for index in collection.indexes.iter() {
            if Some(index.id) == sources {
                let rows = by_source.clone().map(|(id, doc)| (*id, doc.as_doc()));
                self.delete_entries_of(index, rows)?;
            } else {
                let rows = by_id.iter().map(|(id, doc)| (*id, doc.as_doc()));
                self.delete_entries_of(index, rows)?;
            }
        }
        Ok(())
    }

    /// Replaces a bucket, which was read on this writer's view, by records with the same points.
    pub(crate) fn reopen_bucket(
        &mut self,
        collection: &Collection,
        buckets: IndexId,
        bucket: &PackedBucket,
    ) -> Attempt<()> {
        self.guard(collection)?;
        self.remove_bucket(buckets, &bucket.entry)?;
        for point in bucket.all_points()? {
            self.insert_record(collection, Doc::from_valid_bytes(&point))?;
        }
        self.charge_growth()
    }

    /// Deletes a bucket with its points.
    pub(crate) fn drop_bucket(
        &mut self,
        collection: &Collection,
        buckets: IndexId,
        entry: &BucketEntry,
    ) -> Attempt<()> {
        self.guard(collection)?;
        self.remove_bucket(buckets, entry)?;
        self.count(collection, -i64::from(entry.points), -i64::from(entry.bytes));
        Ok(())
    }

    fn take_bucket_number(&mut self, buckets: IndexId) -> Attempt<u64> {
        let key = layout::last_key(buckets);
        let last = match self.txn.get(Space::Idx, &key)? {
            Some(value) => layout::last_number(&value)?,
            None => 0,
        };
        self.txn.put(Space::Idx, key, Bytes::copy_from_slice(&(last + 1).to_be_bytes()))?;
        Ok(last + 1)
    }

    fn put_bucket(&mut self, buckets: IndexId, entry: &BucketEntry, data: Bytes) -> Attempt<()> {
        self.txn.put(Space::Idx, layout::data_key(buckets, entry.number), data)?;
        let value = layout::directory_value(entry);
        for key in layout::directory_keys(buckets, &key_of(entry), entry) {
            self.txn.put_entry(Space::Idx, key, value.clone())?;
        }
        Ok(())
    }

    /// Deletes the rows of a bucket. Two commits that delete the same one conflict.
    fn remove_bucket(&mut self, buckets: IndexId, entry: &BucketEntry) -> Attempt<()> {
        self.txn.delete(Space::Idx, layout::data_key(buckets, entry.number))?;
        for key in layout::directory_keys(buckets, &key_of(entry), entry) {
            self.txn.delete_entry(Space::Idx, key)?;
        }
        Ok(())
    }
}

fn key_of(entry: &BucketEntry) -> Vec<u8> {
    meta_key(entry.meta.as_ref().map(ValueBuf::as_value))
}
