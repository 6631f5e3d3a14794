//! The head of a bucket: everything before the data of the columns.

use quire_document::Type;
use quire_error::Result;
use std::ops::Range;
use twox_hash::XxHash3_64;

use crate::bytes::{Reader, damaged};
use crate::layout::{Field, Role, Token, read_layout};
use crate::limits::{
    BOUND_BYTES_MAX, BUCKET_BYTES_MAX, BUCKET_POINTS_MAX, COLUMNS_MAX, LAYOUTS_MAX,
};
use crate::{integers, texts};

/// The version of the format.
pub(crate) const VERSION: u8 = 1;

/// The bytes of a checksum.
const CHECKSUM_BYTES: usize = 8;

/// A value: its type, and where its bytes are in the bucket.
pub(crate) type Place = (Type, Range<usize>);

/// The head of a bucket. Names and values are places in its bytes.
#[derive(Debug)]
pub(crate) struct Header {
    pub points: usize,
    /// The sum of the lengths of all documents.
    pub size: usize,
    pub times: (i64, i64),
    pub meta: Option<Place>,
    pub fields: Vec<Field<Range<usize>>>,
    pub layouts: Vec<Vec<Token>>,
    /// The layout of each point; empty if all have the first.
    pub layout_of: Vec<u16>,
    /// How many points have each column, and how many of them have a value in it.
    pub counts: Vec<Counts>,
    /// Smallest and largest values of columns, by rising column.
    pub bounds: Vec<(usize, Place, Place)>,
    /// Where the data of each column are.
    pub data: Vec<Range<usize>>,
}

/// How many points have a column.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub present: usize,
    /// Those whose value is in the column's own data.
    pub values: usize,
    /// True if arrays begin in the column.
    pub has_array: bool,
}

impl Header {
    /// Reads the head of a bucket, and checks its version, its checksum and all lengths.
    pub fn read(bytes: &[u8]) -> Result<Header> {
        let checked = bytes.split_last_chunk::<CHECKSUM_BYTES>();
        let (content, checksum) = checked.ok_or_else(|| damaged("it ends early"))?;
        if XxHash3_64::oneshot(content) != u64::from_le_bytes(*checksum) {
            return Err(damaged("its checksum"));
        }
        let mut reader = Reader::new(content);
        if reader.byte()? != VERSION {
            return Err(damaged("its version"));
        }
        let at = |reader: &Reader<'_>| content.len() - reader.left();
        let points = reader.count(BUCKET_POINTS_MAX)?;
        let size = reader.count(BUCKET_BYTES_MAX)?;
        let first = reader.signed()?;
        let last = first.wrapping_add(reader.varint()? as i64);
        let meta = read_value(&mut reader, &at, usize::MAX)?;
        let fields = read_fields(&mut reader, &at)?;
        let fixed = 1 + usize::from(meta.is_some());
        let is_fixed = |field: &&Field<_>| field.role == Role::Field && field.parent.is_none();
        if fields.iter().take(fixed).filter(is_fixed).count() < fixed {
            return Err(damaged("its columns"));
        }
        let layouts = read_layouts(&mut reader, &fields, fixed, size)?;
        let layout_of = read_layout_of(&mut reader, points, layouts.len())?;
        let counts = count(&layouts, &layout_of, points, fields.len());
        let bounds = read_bounds(&mut reader, &at, fields.len())?;
        let lengths = (0..fields.len()).map(|_| reader.count(content.len()));
        let lengths = lengths.collect::<Result<Vec<usize>>>()?;
        let mut data = Vec::with_capacity(fields.len());
        for length in lengths {
            let start = at(&reader);
            reader.take(length)?;
            data.push(start..start + length);
        }
        // A value has at least a type and the zero of its name.
        let least: usize = fields
            .iter()
            .zip(&counts)
            .map(|(field, all)| all.present * (2 + field.name.len()))
            .sum();
        if points == 0 || reader.left() > 0 || least > size {
            return Err(damaged("its lengths"));
        }
        let times = (first, last);
        Ok(Header { points, size, times, meta, fields, layouts, layout_of, counts, bounds, data })
    }

    /// Returns the layout of a point.
    pub fn layout(&self, point: usize) -> &[Token] {
        let number = self.layout_of.get(point).copied().unwrap_or(0);
        self.layouts.get(usize::from(number)).map_or(&[], Vec::as_slice)
    }

    /// Returns the column of the `occurrence`th field of a name in documents of column `parent`.
    pub fn column(
        &self,
        bytes: &[u8],
        parent: Option<u32>,
        occurrence: u32,
        name: &str,
    ) -> Option<usize> {
        self.fields.iter().position(|field| {
            field.role == Role::Field
                && field.parent == parent
                && field.occurrence == occurrence
                && bytes.get(field.name.clone()) == Some(name.as_bytes())
        })
    }

    /// Returns true if some points have elements that belong to no column.
    pub fn has_elements(&self) -> bool {
        self.fields.iter().any(|field| field.role == Role::Elements)
    }
}

/// Reads a value of at most `bytes_max` bytes; `None` if there is none.
fn read_value(
    reader: &mut Reader<'_>,
    at: &impl Fn(&Reader<'_>) -> usize,
    bytes_max: usize,
) -> Result<Option<Place>> {
    let byte = reader.byte()?;
    if byte == 0 {
        return Ok(None);
    }
    let kind = Type::from_byte(byte).ok_or_else(|| damaged("a type"))?;
    let length = reader.blob()?.len();
    if length > bytes_max {
        return Err(damaged("the length of a value"));
    }
    Ok(Some((kind, at(reader) - length..at(reader))))
}

fn read_fields(
    reader: &mut Reader<'_>,
    at: &impl Fn(&Reader<'_>) -> usize,
) -> Result<Vec<Field<Range<usize>>>> {
    let count = reader.count(COLUMNS_MAX.min(reader.left()))?;
    let mut fields = Vec::with_capacity(count);
    for column in 0..count {
        let role = match reader.byte()? {
            0 => Role::Field,
            1 => Role::Elements,
            _ => return Err(damaged("a role")),
        };
        let parent = reader.count(column)?.checked_sub(1).map(|parent| parent as u32);
        let occurrence = reader.count(u32::MAX as usize)? as u32;
        let length = reader.blob()?.len();
        fields.push(Field { role, parent, occurrence, name: at(reader) - length..at(reader) });
    }
    Ok(fields)
}

fn read_layouts(
    reader: &mut Reader<'_>,
    fields: &[Field<Range<usize>>],
    fixed: usize,
    size: usize,
) -> Result<Vec<Vec<Token>>> {
    let count = reader.count(LAYOUTS_MAX)?;
    let layouts = texts::decode(reader, count, &mut size.clone())?;
    layouts.iter().map(|layout| read_layout(layout, fields, fixed)).collect()
}

/// Reads the number of each point's layout; none if all have the first.
fn read_layout_of(reader: &mut Reader<'_>, points: usize, layouts: usize) -> Result<Vec<u16>> {
    if points > 0
        && let Some(layout) = integers::decode_constant(reader)?
    {
        return match u16::try_from(layout) {
            Ok(0) if layouts > 0 => Ok(Vec::new()),
            Ok(layout) if usize::from(layout) < layouts => Ok(vec![layout; points]),
            _ => Err(damaged("the number of a layout")),
        };
    }
    let numbers = integers::decode(reader, points)?;
    let last = numbers.iter().copied().max().unwrap_or(0);
    let first = numbers.iter().copied().min().unwrap_or(0);
    if first < 0 || last >= layouts as i64 {
        return Err(damaged("the number of a layout"));
    }
    if last == 0 {
        return Ok(Vec::new());
    }
    Ok(numbers.into_iter().map(|number| number as u16).collect())
}

/// Counts the points that have each column.
fn count(layouts: &[Vec<Token>], layout_of: &[u16], points: usize, columns: usize) -> Vec<Counts> {
    let mut users = vec![0; layouts.len()];
    match (layout_of, users.first_mut()) {
        ([], Some(first)) => *first = points,
        _ => layout_of.iter().for_each(|layout| users[usize::from(*layout)] += 1),
    }
    let mut counts = vec![Counts::default(); columns];
    for (layout, users) in layouts.iter().zip(users) {
        for token in layout {
            let (Token::Value(column) | Token::Document(column) | Token::Array(column)) = *token
            else {
                continue;
            };
            if let Some(counts) = counts.get_mut(column as usize) {
                counts.present += users;
                counts.values += if matches!(token, Token::Value(_)) { users } else { 0 };
                counts.has_array |= matches!(token, Token::Array(_));
            }
        }
    }
    counts
}

fn read_bounds(
    reader: &mut Reader<'_>,
    at: &impl Fn(&Reader<'_>) -> usize,
    columns: usize,
) -> Result<Vec<(usize, Place, Place)>> {
    let count = reader.count(columns)?;
    let mut bounds = Vec::with_capacity(count);
    for _ in 0..count {
        let column = reader.count(columns)?;
        let mut bound = || read_value(reader, at, BOUND_BYTES_MAX);
        match (bound()?, bound()?) {
            (Some(least), Some(most)) => bounds.push((column, least, most)),
            _ => return Err(damaged("a bound")),
        }
    }
    Ok(bounds)
}
