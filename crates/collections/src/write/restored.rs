//! Writes the points of MongoDB's own buckets, as a dump of MongoDB has them, as points of a time-series collection. What is
//! remembered of a bucket is part of the same commit.

use quire_catalog::{Collection, IndexId};
use quire_document::{Doc, DocBuf, ObjectId, ValueBuf};
use quire_error::{Error, ErrorCode};
use quire_storage::{Snapshot, Space};

use super::Writer;
use crate::failure::Attempt;
use crate::series::{MongoBucket, RestoredBucket, layout};
use crate::{EmptyTimestamps, prepare_insert_with};

impl Writer {
    /// Inserts the points of a bucket, unless it was restored before. Returns false then. The buckets of the collection have a
    /// number ([`number_buckets`](crate::Store::number_buckets)).
    ///
    /// # Errors
    /// Those of inserting a point. Nothing of the bucket is written then.
    pub fn restore_bucket(
        &mut self,
        collection: &Collection,
        bucket: &MongoBucket<'_>,
    ) -> Attempt<bool> {
        if self.restored_bucket(collection, bucket.id)?.is_some() {
            return Ok(false);
        }
        let restored = RestoredBucket { points: 0, meta: bucket.meta.map(ValueBuf::new) };
        self.extend_bucket(collection, (bucket.id, restored), bucket.points.iter())?;
        Ok(true)
    }

    /// Inserts further points of a restored bucket, and remembers how many there are.
    ///
    /// # Errors
    /// Those of inserting a point. No point is written then.
    pub fn extend_bucket<'p>(
        &mut self,
        collection: &Collection,
        (id, mut bucket): (ObjectId, RestoredBucket),
        points: impl Iterator<Item = Doc<'p>>,
    ) -> Attempt<()> {
        let before = self.savepoint();
        let written = self.insert_points(collection, points).and_then(|points| {
            bucket.points += points;
            let key = layout::restored_key(number_of(collection)?, id);
            Ok(self.txn.put(Space::Idx, key, bucket.to_bytes())?)
        });
        if written.is_err() {
            self.rollback_to(before);
        }
        written
    }

    /// Returns what is remembered of a bucket; `None` if it was not restored.
    ///
    /// # Errors
    /// The errors of the engine; 301 DataCorruptionDetected for a damaged row.
    pub fn restored_bucket(
        &self,
        collection: &Collection,
        id: ObjectId,
    ) -> Attempt<Option<RestoredBucket>> {
        let Some(buckets) = collection.buckets else { return Ok(None) };
        let stored = self.txn.get(Space::Idx, &layout::restored_key(buckets, id))?;
        Ok(stored.map(|stored| RestoredBucket::from_bytes(&stored)).transpose()?)
    }

    /// Inserts points as they are: a restored point keeps the order of its fields. Returns how many there were.
    fn insert_points<'p>(
        &mut self,
        collection: &Collection,
        points: impl Iterator<Item = Doc<'p>>,
    ) -> Attempt<u64> {
        let (mut buffer, mut count) = (Vec::new(), 0);
        for point in points {
            let checked =
                prepare_insert_with(&self.store, point, EmptyTimestamps::Kept, &mut buffer)?;
            let point = if point.contains("_id") { point } else { checked };
            self.insert(collection, point)?;
            count += 1;
        }
        Ok(count)
    }
}

/// Returns the number under which the buckets of a collection are stored.
fn number_of(collection: &Collection) -> Attempt<IndexId> {
    let missing = || Error::internal("a time-series collection without a number of its buckets");
    Ok(collection.buckets.ok_or_else(missing)?)
}

/// Returns the error 11000 DuplicateKey for a bucket that was restored before, as mongod has it.
pub fn duplicate_bucket_error(collection: &Collection, id: ObjectId) -> Error {
    let namespace = &collection.namespace;
    let text = format!(
        "E11000 duplicate key error collection: {}.{}{} dup key: {{ _id: ObjectId('{id}') }}",
        namespace.db(),
        quire_catalog::time_series::BUCKETS,
        namespace.collection(),
    );
    let details = DocBuf::build(|details| {
        details.document("keyPattern").append("_id", 1);
        details.document("keyValue").append("_id", id);
    });
    Error::new(ErrorCode::DuplicateKey, text).with_details(details.into_bytes())
}
