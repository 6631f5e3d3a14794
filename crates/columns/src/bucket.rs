//! A bucket that was packed: what its head says, its points, and its columns.

use quire_document::{DocBuf, Element, Type, Value};
use quire_error::Result;

use crate::bounds::Bounds;
use crate::bytes::damaged;
use crate::header::{Header, Place};
use crate::layout::{META, TIME};
use crate::points::Points;
use crate::stream::Stream;
use crate::typed::{Column, Columnar};

/// A bucket of points, as [`pack`](crate::pack) wrote it. `B` are its bytes, borrowed or owned.
///
/// Only the head is decoded when it is opened. A call that decodes columns takes memory of at most 32
/// times [`size`](Bucket::size), whatever the bytes are.
#[derive(Debug)]
pub struct Bucket<B> {
    bytes: B,
    header: Header,
}

impl<B: AsRef<[u8]>> Bucket<B> {
    /// Opens a bucket: checks version, checksum and lengths, and decodes the head.
    ///
    /// # Errors
    /// 301 DataCorruptionDetected for bytes that are no bucket.
    pub fn open(bytes: B) -> Result<Self> {
        let header = Header::read(bytes.as_ref())?;
        Ok(Bucket { bytes, header })
    }

    /// Returns the number of points, which is at least one.
    #[expect(clippy::len_without_is_empty, reason = "a bucket is never empty")]
    pub fn len(&self) -> usize {
        self.header.points
    }

    /// Returns the sum of the BSON lengths of all points, in bytes.
    pub fn size(&self) -> usize {
        self.header.size
    }

    /// Returns the smallest and the largest time, in milliseconds since the epoch.
    pub fn time_range(&self) -> (i64, i64) {
        self.header.times
    }

    /// Returns the meta value of all points; `None` if they have none.
    pub fn meta(&self) -> Option<Value<'_>> {
        self.header.meta.as_ref().map(|place| self.value(place))
    }

    /// Returns what values a dotted path has in the points; `None` if that is not known, because the
    /// path leads to or through arrays or documents, to values longer than
    /// [`BOUND_BYTES_MAX`](crate::BOUND_BYTES_MAX), or because the points differ too much.
    pub fn bounds(&self, path: &str) -> Option<Bounds<'_>> {
        if self.header.has_elements() {
            if path.contains('.') {
                return None;
            }
            let column = self.header.column(self.bytes.as_ref(), None, 0, path)?;
            return self.fixed_bounds(column);
        }
        let mut parent = None;
        let mut column = None;
        for name in path.split('.') {
            let bytes = self.bytes.as_ref();
            let Some(found) = self.header.column(bytes, parent, 0, name) else {
                return self
                    .is_only_split(column)
                    .then_some(Bounds { range: None, is_missing: true });
            };
            // Of two fields with one name readers may take either.
            if self.header.column(bytes, parent, 1, name).is_some()
                || self.header.counts.get(found).is_none_or(|counts| counts.has_array)
            {
                return None;
            }
            (parent, column) = (Some(found as u32), Some(found));
        }
        let column = column?;
        if let Some(bounds) = self.fixed_bounds(column) {
            return Some(bounds);
        }
        let at = self.header.bounds.binary_search_by_key(&column, |(column, ..)| *column).ok()?;
        let (_, least, most) = self.header.bounds.get(at)?;
        let is_missing = self.header.counts.get(column)?.present < self.header.points;
        Some(Bounds { range: Some((self.value(least), self.value(most))), is_missing })
    }

    /// Returns true if a column, or the whole point without one, has no documents or arrays that could
    /// contain fields without columns.
    fn is_only_split(&self, column: Option<usize>) -> bool {
        let Some(column) = column else { return true };
        let values = self.header.counts.get(column).map_or(0, |counts| counts.values);
        let at = self.header.bounds.binary_search_by_key(&column, |(column, ..)| *column);
        match at.ok().and_then(|at| self.header.bounds.get(at)) {
            _ if values == 0 => true,
            Some((_, (least, _), (most, _))) => {
                most.rank() < Type::Document.rank() || least.rank() > Type::Array.rank()
            }
            None => false,
        }
    }

    /// Returns the bounds of the time and of the meta field.
    fn fixed_bounds(&self, column: usize) -> Option<Bounds<'_>> {
        let range = match (column as u32, self.meta()) {
            (TIME, _) => {
                let (first, last) = self.header.times;
                (Value::Date(first), Value::Date(last))
            }
            (META, Some(Value::Array(_))) => return None,
            (META, Some(meta)) => (meta, meta),
            _ => return None,
        };
        Some(Bounds { range: Some(range), is_missing: false })
    }

    /// Returns the times of all points, in milliseconds since the epoch.
    ///
    /// # Errors
    /// 301 DataCorruptionDetected.
    pub fn times(&self) -> Result<Vec<i64>> {
        let times = Columnar::decode(&self.header, self.bytes.as_ref(), TIME as usize)?;
        match times.into_only_stream() {
            Some(Stream::Integers(Type::Date, times)) => Ok(times),
            _ => Err(damaged("its times")),
        }
    }

    /// Returns the values that a field at the top has in the points. If there are several of that
    /// name in a point, it is the first.
    ///
    /// # Errors
    /// 301 DataCorruptionDetected.
    pub fn column(&self, field: &str) -> Result<Column> {
        let bytes = self.bytes.as_ref();
        let column = self.header.column(bytes, None, 0, field);
        let fixed = if self.header.meta.is_some() { META } else { TIME } as usize;
        if self.header.has_elements() && column.is_none_or(|column| column > fixed) {
            return Ok(Column::Documents);
        }
        match (column, self.meta()) {
            (None, _) => Ok(Column::Missing),
            (Some(column), Some(meta)) if column == META as usize => Ok(Column::same(meta)),
            (Some(column), _) => Column::decode(&self.header, bytes, column),
        }
    }

    /// Decodes all columns, and returns the points in order.
    ///
    /// # Errors
    /// 301 DataCorruptionDetected.
    pub fn points(&self) -> Result<Points<'_>> {
        Points::decode(&self.header, self.bytes.as_ref())
    }

    /// Returns the point at `at`; `None` if there are not as many. It decodes all columns: for
    /// several points use [`points`](Bucket::points).
    ///
    /// # Errors
    /// 301 DataCorruptionDetected.
    pub fn point(&self, at: usize) -> Result<Option<DocBuf>> {
        Ok(self.points()?.nth(at))
    }

    /// Returns the bytes of the bucket.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    fn value(&self, (kind, at): &Place) -> Value<'_> {
        let bytes = self.bytes.as_ref().get(at.clone()).unwrap_or_default();
        Element::from_parts(*kind, b"", bytes).value()
    }
}
