//! Finds buckets in a directory by the time of their first point, and reads them.

use quire_catalog::{Collection, IndexId};
use quire_error::Result;
use quire_storage::{Direction, Page, ScanRequest, Space};

use super::bucket::PackedBucket;
use super::entry::BucketEntry;
use super::layout::{Span, data_key, directory, directory_entry, directory_range};
use crate::failure::from_storage;
use crate::layout::damaged;
use crate::{Record, StoredDoc, View};

/// A scan of a directory, page by page. It holds only bytes, so that it can continue on any later view.
#[derive(Debug)]
pub struct BucketCursor {
    start: Vec<u8>,
    end: Vec<u8>,
    direction: Direction,
    is_done: bool,
    page: Page,
}

impl BucketCursor {
    /// Returns a cursor over the buckets whose first point is in a span, in the order of these times.
    pub fn by_time(buckets: IndexId, begins: Span, direction: Direction) -> Self {
        BucketCursor::over(&directory(buckets, None), begins, direction)
    }

    /// Returns a cursor over the part of a directory with this prefix.
    pub(super) fn over(prefix: &[u8], begins: Span, direction: Direction) -> Self {
        let (start, end) = directory_range(prefix, begins);
        let is_done = begins.is_empty();
        BucketCursor { start, end, direction, is_done, page: Page::default() }
    }

    /// Appends the next buckets to `out`, at most `max`. Returns false if no more follow.
    ///
    /// # Errors
    /// The errors of the engine; 301 DataCorruptionDetected for a row that is none of a directory.
    pub fn next_page(
        &mut self,
        view: &View<'_>,
        max: usize,
        out: &mut Vec<BucketEntry>,
    ) -> Result<bool> {
        if self.is_done {
            return Ok(false);
        }
        let request = ScanRequest::new(Space::Idx, &self.start, &self.end).rows_max(max);
        let request = match self.direction {
            Direction::Forward => request,
            Direction::Reverse => request.reverse(),
        };
        view.snapshot().scan(&request, &mut self.page).map_err(from_storage)?;
        for (key, value) in &self.page.rows {
            out.push(directory_entry(key, value)?);
        }
        match (&self.page.resume, self.direction) {
            (None, _) => self.is_done = true,
            (Some(resume), Direction::Forward) => self.start = resume.to_vec(),
            (Some(resume), Direction::Reverse) => self.end = resume.to_vec(),
        }
        self.page.clear();
        Ok(!self.is_done)
    }
}

impl View<'_> {
    /// Returns true if the collection has a bucket in this view.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn has_buckets(&self, collection: &Collection) -> Result<bool> {
        let Some(buckets) = collection.buckets else { return Ok(false) };
        let mut found = Vec::new();
        BucketCursor::by_time(buckets, Span::ALL, Direction::Forward)
            .next_page(self, 1, &mut found)?;
        Ok(!found.is_empty())
    }

    /// Returns the sizes of all buckets of the collection in this view: how many there are, and the number of
    /// their points.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn bucket_counts(&self, collection: &Collection) -> Result<(u64, u64)> {
        let Some(buckets) = collection.buckets else { return Ok((0, 0)) };
        let mut cursor = BucketCursor::by_time(buckets, Span::ALL, Direction::Forward);
        let (mut page, mut count, mut points, mut more) = (Vec::new(), 0, 0, true);
        while more {
            page.clear();
            more = cursor.next_page(self, PAGE_ROWS, &mut page)?;
            count += page.len() as u64;
            points += page.iter().map(|entry| u64::from(entry.points)).sum::<u64>();
        }
        Ok((count, points))
    }

    /// Appends all points of the next bucket to `out`. Returns false if no more buckets follow.
    ///
    /// # Errors
    /// The errors of the engine; 301 DataCorruptionDetected for damaged buckets.
    pub fn next_points(
        &self,
        collection: &Collection,
        cursor: &mut BucketCursor,
        out: &mut Vec<Record>,
    ) -> Result<bool> {
        let mut page = Vec::new();
        let more = cursor.next_page(self, 1, &mut page)?;
        for entry in &page {
            let Some(bucket) = self.bucket_if_there(collection, entry)? else { continue };
            for (at, point) in bucket.all_points()?.into_iter().enumerate() {
                let doc = StoredDoc::of_bson(point);
                out.push(Record { id: bucket.point_id(at), doc });
            }
        }
        Ok(more)
    }

    /// Returns the bucket of an entry that was read on this view.
    ///
    /// # Errors
    /// The errors of the engine; 301 DataCorruptionDetected if its data are missing or damaged.
    pub fn bucket(&self, collection: &Collection, entry: &BucketEntry) -> Result<PackedBucket> {
        let found = self.bucket_if_there(collection, entry)?;
        found.ok_or_else(|| damaged("a bucket without data"))
    }

    /// Returns the bucket of an entry that was read on an older view; `None` if it is gone.
    ///
    /// # Errors
    /// The errors of the engine; 301 DataCorruptionDetected if its data are damaged.
    pub fn bucket_if_there(
        &self,
        collection: &Collection,
        entry: &BucketEntry,
    ) -> Result<Option<PackedBucket>> {
        let Some(buckets) = collection.buckets else { return Ok(None) };
        let key = data_key(buckets, entry.number);
        let data = self.snapshot().get(Space::Idx, &key).map_err(from_storage)?;
        data.map(|data| PackedBucket::open(entry.clone(), data)).transpose()
    }
}

/// The rows of a page of a directory that is read to its end.
const PAGE_ROWS: usize = 1000;
