//! Finds the meta values of buckets, one after the other, without reading the other buckets of each.

use bytes::Bytes;
use quire_catalog::IndexId;
use quire_document::Value;
use quire_error::Result;
use quire_storage::{Direction, Page, ScanRequest, Space};

use super::bucket::meta_key;
use super::cursor::BucketCursor;
use super::entry::BucketEntry;
use super::layout::{Span, directories, directory, directory_entry, source_of};
use crate::View;
use crate::failure::from_storage;

/// A meta value of buckets, as their directory has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source(Bytes);

impl Source {
    /// Returns a meta value. Values that are equal in an index are the same source.
    pub fn of(meta: Option<Value<'_>>) -> Self {
        Source(meta_key(meta).into())
    }

    /// Returns a cursor over its buckets whose first point is in a span, in the order of these times.
    pub fn buckets(&self, buckets: IndexId, begins: Span, direction: Direction) -> BucketCursor {
        BucketCursor::over(&directory(buckets, Some(&self.0)), begins, direction)
    }
}

/// A walk over the meta values of all buckets in their order. It holds only bytes, so that it can continue on any later
/// view.
#[derive(Debug)]
pub struct SourceCursor {
    buckets: IndexId,
    start: Vec<u8>,
    end: Vec<u8>,
    direction: Direction,
}

impl SourceCursor {
    /// Returns a cursor over all meta values.
    pub fn new(buckets: IndexId, direction: Direction) -> Self {
        let [_, (start, end)] = directories(buckets);
        SourceCursor { buckets, start, end, direction }
    }

    /// Returns the next meta value and one of its buckets; `None` if no more follow.
    ///
    /// # Errors
    /// The errors of the engine; 301 DataCorruptionDetected for a row that is none of a directory.
    pub fn next(&mut self, view: &View<'_>) -> Result<Option<(Source, BucketEntry)>> {
        let request = ScanRequest::new(Space::Idx, &self.start, &self.end).rows_max(1);
        let request = match self.direction {
            Direction::Forward => request,
            Direction::Reverse => request.reverse(),
        };
        let mut page = Page::default();
        view.snapshot().scan(&request, &mut page).map_err(from_storage)?;
        let Some((key, value)) = page.rows.first() else { return Ok(None) };
        let entry = directory_entry(key, value)?;
        let source = Bytes::copy_from_slice(source_of(key)?);
        let own = directory(self.buckets, Some(&source));
        match self.direction {
            Direction::Forward => self.start = quire_storage::prefix_end(&own),
            Direction::Reverse => self.end = own,
        }
        Ok(Some((Source(source), entry)))
    }
}
