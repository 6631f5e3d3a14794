//! The values of one column, typed where all are of one type.

use quire_document::{Type, Value, ValueBuf};
use quire_error::Result;

use crate::bytes::{Reader, damaged};
use crate::header::Header;
use crate::integers;
use crate::layout::{META, Token};
use crate::stream::{ELEMENTS, Stream, bytes_min};

/// The values of a field in all points, in the order of the points.
#[derive(Debug)]
pub enum Column {
    /// An int in every point.
    Ints(Vec<i32>),
    /// A long in every point.
    Longs(Vec<i64>),
    /// A double in every point.
    Doubles(Vec<f64>),
    /// A date in every point, in milliseconds since the epoch.
    Dates(Vec<i64>),
    /// The same value in every point.
    Same(ValueBuf),
    /// No point has the field.
    Missing,
    /// Values of any type, or missing in some points.
    Values(Values),
    /// The values are in documents, which must be built: [`Bucket::points`](crate::Bucket::points).
    Documents,
}

/// Values of any type, of which some may be missing.
#[derive(Debug)]
pub struct Values {
    column: Columnar,
    /// The number of each point's value; `MISSING` without one. Empty if all points have one.
    rows: Vec<u32>,
}

const MISSING: u32 = u32::MAX;

impl Values {
    /// Returns the value in a point; `None` if it is missing, or if there are not as many points.
    pub fn get(&self, point: usize) -> Option<Value<'_>> {
        let value = match self.rows.is_empty() {
            true => point,
            false => *self.rows.get(point).filter(|row| **row != MISSING)? as usize,
        };
        let (stream, at) = self.column.place(value)?;
        Some(stream.value(at))
    }
}

impl Column {
    /// Returns the column of a value that all points have.
    pub(crate) fn same(value: Value<'_>) -> Column {
        Column::Same(ValueBuf::new(value))
    }

    pub(crate) fn decode(header: &Header, bytes: &[u8], column: usize) -> Result<Column> {
        let counts = header.counts.get(column).copied().unwrap_or_default();
        if counts.present > counts.values {
            return Ok(Column::Documents);
        }
        let decoded = Columnar::decode(header, bytes, column)?;
        if counts.present == 0 {
            return Ok(Column::Missing);
        }
        if counts.present < header.points {
            return Ok(Column::Values(Values { rows: rows(header, column), column: decoded }));
        }
        if decoded.streams.len() > 1 {
            return Ok(Column::Values(Values { rows: Vec::new(), column: decoded }));
        }
        Ok(match decoded.into_only_stream() {
            Some(Stream::Integers(Type::Int32, all)) => {
                Column::Ints(all.into_iter().map(|number| number as i32).collect())
            }
            Some(Stream::Integers(Type::Int64, all)) => Column::Longs(all),
            Some(Stream::Integers(Type::Date, all)) => Column::Dates(all),
            Some(Stream::Doubles(all)) => Column::Doubles(all),
            Some(Stream::Nothing(kind)) => Column::same(Stream::Nothing(kind).value(0)),
            Some(other) => {
                Column::Values(Values { rows: Vec::new(), column: Columnar::one(other) })
            }
            None => Column::Missing,
        })
    }
}

/// Returns the number of each point's value in a column.
fn rows(header: &Header, column: usize) -> Vec<u32> {
    let has: Vec<bool> =
        header.layouts.iter().map(|layout| layout.contains(&Token::Value(column as u32))).collect();
    let mut next = 0;
    let row = |point: usize| {
        let layout = header.layout_of.get(point).copied().unwrap_or(0);
        match has.get(usize::from(layout)) {
            Some(true) => {
                next += 1;
                next - 1
            }
            _ => MISSING,
        }
    };
    (0..header.points).map(row).collect()
}

/// The decoded values of a column.
#[derive(Debug, Default)]
pub(crate) struct Columnar {
    /// The values of each type.
    streams: Vec<Stream>,
    /// For each value its stream, and its number there. Empty if there is only one stream.
    places: Vec<(u8, u32)>,
}

impl Columnar {
    /// Returns a column with the values of one stream.
    fn one(stream: Stream) -> Columnar {
        Columnar { streams: vec![stream], places: Vec::new() }
    }

    /// Decodes a column.
    pub fn decode(header: &Header, bytes: &[u8], column: usize) -> Result<Columnar> {
        Columnar::decode_within(header, bytes, column, &mut header.size.clone())
    }

    /// Decodes a column whose texts fit into `room`, which gets smaller by them.
    pub fn decode_within(
        header: &Header,
        bytes: &[u8],
        column: usize,
        room: &mut usize,
    ) -> Result<Columnar> {
        let values = header.counts.get(column).map_or(0, |counts| counts.values);
        let data = header.data.get(column).and_then(|data| bytes.get(data.clone()));
        let mut reader = Reader::new(data.unwrap_or_default());
        let kinds = reader.count(256)?;
        let kinds: Vec<Option<Type>> = reader
            .take(kinds)?
            .iter()
            .map(|byte| match *byte {
                ELEMENTS => Ok(None),
                byte => Type::from_byte(byte).map(Some).ok_or_else(|| damaged("a type")),
            })
            .collect::<Result<_>>()?;
        let is_meta = column == META as usize && header.meta.is_some();
        if is_meta || (kinds.is_empty() && values == 0) {
            return Ok(Columnar::default());
        }
        let (counts, places) = read_order(&mut reader, kinds.len(), values)?;
        let least: usize =
            kinds.iter().zip(&counts).map(|(kind, count)| bytes_min(*kind) * count).sum();
        if least > header.size {
            return Err(damaged("more values than its documents can have"));
        }
        let mut streams = Vec::with_capacity(kinds.len());
        for (kind, count) in kinds.into_iter().zip(counts) {
            streams.push(Stream::decode(&mut reader, kind, count, room)?);
        }
        if reader.left() > 0 {
            return Err(damaged("the length of a column"));
        }
        Ok(Columnar { streams, places })
    }

    /// Returns the stream of a value, and its number there.
    #[inline]
    pub fn place(&self, value: usize) -> Option<(&Stream, usize)> {
        if self.places.is_empty() {
            return self.streams.first().map(|stream| (stream, value));
        }
        let (stream, at) = self.places.get(value)?;
        self.streams.get(usize::from(*stream)).map(|stream| (stream, *at as usize))
    }

    /// Returns the stream of a column with values of one type.
    pub fn into_only_stream(mut self) -> Option<Stream> {
        if self.streams.len() == 1 { self.streams.pop() } else { None }
    }
}

/// The number of values of each type, and the place of each value among those of its type.
type Order = (Vec<usize>, Vec<(u8, u32)>);

fn read_order(reader: &mut Reader<'_>, kinds: usize, values: usize) -> Result<Order> {
    let mut counts = vec![0; kinds];
    match counts.as_mut_slice() {
        [] => Err(damaged("a column without types")),
        [only] => {
            *only = values;
            Ok((counts, Vec::new()))
        }
        several => {
            let mut places = Vec::with_capacity(values);
            for kind in integers::decode(reader, values)? {
                let count = usize::try_from(kind).ok().and_then(|kind| several.get_mut(kind));
                let count = count.ok_or_else(|| damaged("the type of a value"))?;
                places.push((kind as u8, *count as u32));
                *count += 1;
            }
            Ok((counts, places))
        }
    }
}
