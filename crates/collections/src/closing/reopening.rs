//! Reopening: gives points of buckets back to records, before a statement that writes them one by one.

use std::sync::Arc;

use quire_catalog::Collection;
use quire_error::Result;
use quire_storage::{Direction, Interrupt, Space};

use crate::failure::{Attempt, from_storage};
use crate::series::layout::data_key;
use crate::series::{BucketCursor, BucketEntry, PackedBucket, Span};
use crate::write::Attempts;
use crate::{RecordId, Store, WriterMode};

/// The buckets of a page of the directory.
const PAGE_ROWS: usize = 256;

impl Store {
    /// Reopens the buckets whose points may be in a span and that `is_wanted` picks, each in a commit of its own. The
    /// caller is within `SeriesWrites::run`, so that they stay records. Returns how many were reopened.
    ///
    /// # Errors
    /// The errors of `is_wanted`, of reading and of the commits; the error of an interrupt.
    pub fn reopen_buckets(
        self: &Arc<Self>,
        collection: &Collection,
        span: Span,
        interrupt: &Arc<Interrupt>,
        is_wanted: &mut dyn FnMut(&PackedBucket) -> Result<bool>,
    ) -> Result<u64> {
        // A cached description of the collection may be from before its first bucket.
        let catalog = self.catalog();
        let found = catalog.by_id(collection.id);
        let Some((collection, buckets)) = found.and_then(|found| Some((found, found.buckets?)))
        else {
            return Ok(0);
        };
        let begins = Span { first: i64::MIN, last: span.last };
        let mut cursor = BucketCursor::by_time(buckets, begins, Direction::Forward);
        let (mut page, mut more, mut count) = (Vec::new(), true, 0);
        while more {
            let view = self.read_view()?;
            page.clear();
            more = cursor.next_page(&view.view(), PAGE_ROWS, &mut page)?;
            for entry in page.drain(..).filter(|entry: &BucketEntry| entry.max_ms >= span.first) {
                interrupt.check().map_err(crate::from_interruption)?;
                if is_wanted(&view.view().bucket(collection, &entry)?)? {
                    count += u64::from(self.reopen(collection, &entry, interrupt)?);
                }
            }
        }
        Ok(count)
    }

    /// Reopens the bucket of a point, if it still exists.
    ///
    /// # Errors
    /// The errors of reading and of the commit; the error of an interrupt.
    pub fn reopen_bucket_of(
        self: &Arc<Self>,
        collection: &Collection,
        point: RecordId,
        interrupt: &Arc<Interrupt>,
    ) -> Result<()> {
        let catalog = self.catalog();
        let buckets = catalog.by_id(collection.id).and_then(|found| found.buckets);
        let (Some(buckets), Some(number)) = (buckets, point.bucket()) else { return Ok(()) };
        let key = data_key(buckets, number);
        let view = self.read_view()?;
        let data = view.view().snapshot().get(Space::Idx, &key).map_err(from_storage)?;
        if let Some(data) = data {
            let entry = PackedBucket::of_data(number, data)?.entry;
            self.reopen(collection, &entry, interrupt)?;
        }
        Ok(())
    }

    /// Reopens all buckets of a collection, and runs `work` while its points are records.
    ///
    /// # Errors
    /// Those of reopening, and of `work`.
    pub fn with_all_as_records<T>(
        self: &Arc<Self>,
        collection: &Collection,
        interrupt: &Arc<Interrupt>,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let writes = self.series_writes(collection);
        writes.run(|| {
            self.reopen_buckets(collection, Span::ALL, interrupt, &mut |_| Ok(true))?;
            work()
        })
    }

    /// Reopens one bucket. Returns false if it is gone: another statement has reopened it, or it has expired.
    fn reopen(
        self: &Arc<Self>,
        collection: &Collection,
        entry: &BucketEntry,
        interrupt: &Arc<Interrupt>,
    ) -> Result<bool> {
        let mut attempts = Attempts::new(self, interrupt);
        loop {
            match self.try_reopen(&attempts, collection, entry) {
                Ok(reopened) => return Ok(reopened),
                Err(failure) => attempts.wait_after(failure)?,
            }
        }
    }

    fn try_reopen(
        self: &Arc<Self>,
        attempts: &Attempts<'_>,
        collection: &Collection,
        entry: &BucketEntry,
    ) -> Attempt<bool> {
        let turn = attempts.begin()?;
        let mut writer = self.writer(WriterMode::Statement)?;
        writer.set_turn(turn);
        let found =
            writer.collection(&collection.namespace).filter(|found| found.id == collection.id);
        let Some((collection, buckets)) =
            found.and_then(|found| Some((Arc::clone(&found), found.buckets?)))
        else {
            return Ok(false);
        };
        let Some(bucket) = writer.view().bucket_if_there(&collection, entry)? else {
            return Ok(false);
        };
        writer.reopen_bucket(&collection, buckets, &bucket)?;
        self.commit_move(writer, collection.id, attempts)?;
        Ok(true)
    }
}
