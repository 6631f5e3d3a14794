//! One bucket: packs points, and opens what was packed.

use std::ops::Range;

use bytes::Bytes;
use quire_columns::{Bucket, Column, pack};
use quire_document::{Doc, DocWriter, Type, Value, ValueBuf};
use quire_error::Result;
use quire_mql::column::Column as Values;
use quire_mql::time_series::TimeSeriesOptions;

use super::entry::BucketEntry;
use super::layout::Span;
use crate::RecordId;
use crate::layout::damaged;

/// The longest point that is closed, in bytes: a longer one stays a record.
const POINT_BYTES_MAX: usize = 64 << 10;
/// The longest meta value of a closed point, in bytes: the directories repeat it for each bucket.
const META_BYTES_MAX: usize = 512;

/// A bucket as it is stored.
#[derive(Debug)]
pub struct PackedBucket {
    /// What the directory says about it.
    pub entry: BucketEntry,
    /// The columns, which give the points and single fields of them.
    pub columns: Bucket<Bytes>,
}

impl PackedBucket {
    /// Opens the data of a bucket.
    ///
    /// # Errors
    /// 301 DataCorruptionDetected if they are damaged, or do not agree with the directory.
    pub(crate) fn open(entry: BucketEntry, data: Bytes) -> Result<Self> {
        let columns = Bucket::open(data)?;
        let agrees = columns.len() == entry.points as usize
            && columns.size() == entry.bytes as usize
            && columns.time_range() == (entry.min_ms, entry.max_ms);
        match agrees {
            true => Ok(PackedBucket { entry, columns }),
            false => Err(damaged("a bucket that differs from its directory")),
        }
    }

    /// Opens the data of the bucket with this number, whatever the directory says.
    ///
    /// # Errors
    /// 301 DataCorruptionDetected if they are damaged.
    pub(crate) fn of_data(number: u64, data: Bytes) -> Result<Self> {
        let columns = Bucket::open(data)?;
        let (min_ms, max_ms) = columns.time_range();
        let meta = columns.meta().map(ValueBuf::new);
        let (points, bytes) = (columns.len() as u32, columns.size() as u32);
        let entry = BucketEntry { number, min_ms, max_ms, points, bytes, meta };
        Ok(PackedBucket { entry, columns })
    }

    /// Returns the positions of the points whose times are in a span.
    ///
    /// # Errors
    /// 301 DataCorruptionDetected if they are damaged.
    pub fn within(&self, span: Span) -> Result<Range<usize>> {
        if span.first <= self.entry.min_ms && self.entry.max_ms <= span.last {
            return Ok(0..self.columns.len());
        }
        let times = self.columns.times()?;
        let start = times.partition_point(|time| *time < span.first);
        let end = times.partition_point(|time| *time <= span.last);
        Ok(start..end.max(start))
    }

    /// Returns the points at some positions, in the order of their times, as BSON.
    ///
    /// # Errors
    /// 301 DataCorruptionDetected if they are damaged.
    pub fn points(&self, at: impl ExactSizeIterator<Item = usize>) -> Result<Vec<Bytes>> {
        let mut points = self.columns.points()?;
        let share = self.columns.size() / self.columns.len().max(1) * at.len();
        let (mut bytes, mut ends) = (Vec::with_capacity(share), Vec::with_capacity(at.len()));
        for at in at {
            if points.position() != at {
                points.seek(at);
            }
            if !points.write_next(&mut bytes) {
                break;
            }
            ends.push(bytes.len());
        }
        Ok(slices(bytes, ends))
    }

    /// Returns the points at some positions with some of their fields; `None` if only whole points can be unpacked.
    ///
    /// # Errors
    /// 301 DataCorruptionDetected if they are damaged.
    pub fn narrow_points(
        &self,
        at: impl ExactSizeIterator<Item = usize>,
        fields: &[String],
    ) -> Result<Option<Vec<Bytes>>> {
        let mut columns = Vec::with_capacity(fields.len());
        for field in fields {
            match self.columns.column(field)? {
                Column::Missing => {}
                Column::Documents => return Ok(None),
                column => columns.push((field.as_str(), column)),
            }
        }
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(at.len()));
        for at in at {
            let mut writer = DocWriter::new(&mut bytes);
            for (field, column) in &columns {
                writer.append_some(field, value_at(column, at));
            }
            writer.finish();
            ends.push(bytes.len());
        }
        Ok(Some(slices(bytes, ends)))
    }

    /// Returns the columns of top-level fields; `None` if one of them can only be read from whole points.
    ///
    /// # Errors
    /// 301 DataCorruptionDetected if they are damaged.
    pub fn field_columns(&self, fields: &[String]) -> Result<Option<Vec<FieldColumn>>> {
        let mut columns = Vec::with_capacity(fields.len());
        for field in fields {
            match self.columns.column(field)? {
                Column::Documents => return Ok(None),
                column => columns.push(FieldColumn(column)),
            }
        }
        Ok(Some(columns))
    }

    /// Returns all points.
    ///
    /// # Errors
    /// 301 DataCorruptionDetected if they are damaged.
    pub fn all_points(&self) -> Result<Vec<Bytes>> {
        self.points(0..self.columns.len())
    }

    /// Returns the id that stands for a point of the bucket where a record id is expected.
    pub fn point_id(&self, at: usize) -> RecordId {
        RecordId::in_bucket(self.entry.number, at)
    }
}

/// A field of all points of a bucket.
#[derive(Debug)]
pub struct FieldColumn(Column);

impl FieldColumn {
    /// Returns the values of some points, as expressions read them.
    pub fn rows(&self, at: Range<usize>) -> Values<'_> {
        match &self.0 {
            Column::Ints(all) => Values::Int(all.get(at).unwrap_or_default().to_vec()),
            Column::Longs(all) => Values::Long(all.get(at).unwrap_or_default().to_vec()),
            Column::Doubles(all) => Values::Double(all.get(at).unwrap_or_default().to_vec()),
            Column::Dates(all) => Values::Date(all.get(at).unwrap_or_default().to_vec()),
            Column::Same(value) => Values::Same(Some(value.as_value()), at.len()),
            Column::Missing | Column::Documents => Values::Same(None, at.len()),
            Column::Values(values) => Values::Values(at.map(|at| values.get(at)).collect()),
        }
    }

    /// Returns the values of the points at some positions, as expressions read them.
    pub fn picked(&self, at: &[usize]) -> Values<'_> {
        match &self.0 {
            Column::Ints(all) => Values::Int(picked(all, at)),
            Column::Longs(all) => Values::Long(picked(all, at)),
            Column::Doubles(all) => Values::Double(picked(all, at)),
            Column::Dates(all) => Values::Date(picked(all, at)),
            Column::Same(value) => Values::Same(Some(value.as_value()), at.len()),
            Column::Missing | Column::Documents => Values::Same(None, at.len()),
            Column::Values(values) => Values::Values(at.iter().map(|at| values.get(*at)).collect()),
        }
    }
}

fn picked<T: Copy>(all: &[T], at: &[usize]) -> Vec<T> {
    at.iter().filter_map(|at| all.get(*at)).copied().collect()
}

/// Returns the parts of a buffer that end at these places.
fn slices(bytes: Vec<u8>, ends: Vec<usize>) -> Vec<Bytes> {
    let (bytes, mut start) = (Bytes::from(bytes), 0);
    let slice = |end| bytes.slice(std::mem::replace(&mut start, end)..end);
    ends.into_iter().map(slice).collect()
}

/// Returns the value of a point in a column.
fn value_at(column: &Column, at: usize) -> Option<Value<'_>> {
    match column {
        Column::Ints(all) => all.get(at).map(|value| Value::Int32(*value)),
        Column::Longs(all) => all.get(at).map(|value| Value::Int64(*value)),
        Column::Doubles(all) => all.get(at).map(|value| Value::Double(*value)),
        Column::Dates(all) => all.get(at).map(|value| Value::Date(*value)),
        Column::Same(value) => Some(value.as_value()),
        Column::Values(values) => values.get(at),
        Column::Missing | Column::Documents => None,
    }
}

/// Packs points of one source, sorted by time.
///
/// # Errors
/// Those of packing.
pub(crate) fn pack_points(points: &[Doc<'_>], series: &TimeSeriesOptions) -> Result<Bytes> {
    Ok(pack(points, &series.time_field, series.meta_field.as_deref())?.into())
}

/// Returns the key of a meta value: values that are equal in an index have the same key.
pub(crate) fn meta_key(meta: Option<Value<'_>>) -> Vec<u8> {
    quire_document::key::encode(meta.unwrap_or(Value::Null))
}

/// Returns true if a point is too long to be closed.
pub(crate) fn is_long(point: Doc<'_>) -> bool {
    point.len() > POINT_BYTES_MAX
}

/// Returns true if a point is never closed: if it is long, or if its meta value is long or an array, because a condition on
/// an element of an array is no condition on the whole value.
pub(crate) fn stays_row(point: Doc<'_>, meta: Option<Value<'_>>) -> bool {
    let is_long_meta = |meta: Value<'_>| ValueBuf::new(meta).bson_len() > META_BYTES_MAX;
    is_long(point) || meta.is_some_and(|meta| meta.kind() == Type::Array || is_long_meta(meta))
}
