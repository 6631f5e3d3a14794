//! The smallest and the largest value of a column.

use quire_document::{DocBuf, ObjectId, Type, Value, ValueBuf, compare};
use std::cmp::Ordering;

use crate::bytes::{put_blob, put_varint};
use crate::gather::{Gathering, Parts};
use crate::layout::{META, TIME};
use crate::limits::BOUND_BYTES_MAX;
use crate::stream::{Gathered, integer_value, text_value};

/// The values of a field in the points of a bucket.
///
/// A filter of one field may skip the bucket if no value from `range` can match it and, if
/// `is_missing` is true, a missing field does not match it either. That holds for every comparison in
/// MongoDB's order without a collation.
#[derive(Clone, Copy, Debug)]
pub struct Bounds<'b> {
    /// The smallest and the largest value in MongoDB's order, both included; NaN is the smallest
    /// number. `None` if the field is missing in all points.
    pub range: Option<(Value<'b>, Value<'b>)>,
    /// True if the field is missing in some points.
    pub is_missing: bool,
}

/// Appends the bounds of all columns that have some.
///
/// Arrays have none, since a filter compares their elements; neither have fields whose documents are
/// split, or any field if some points have elements without columns.
pub(crate) fn encode(points: &Parts<'_>, out: &mut Vec<u8>) {
    let fixed = if points.meta.is_some() { META } else { TIME };
    let mut found = Vec::new();
    if !points.has_elements {
        for (column, gathering) in points.columns.iter().enumerate().skip(fixed as usize + 1) {
            found.extend(of_column(gathering).map(|bounds| (column, bounds)));
        }
    }
    put_varint(out, found.len() as u64);
    for (column, (least, most)) in &found {
        put_varint(out, *column as u64);
        for bound in [least, most] {
            out.push(bound.kind().byte());
            put_blob(out, &wire(bound));
        }
    }
}

/// Returns a value in BSON's wire form, without its type.
fn wire(value: &ValueBuf) -> Vec<u8> {
    let doc = DocBuf::build(|writer| {
        writer.append("", value);
    });
    doc.as_doc().first().map(|element| element.value_bytes().to_vec()).unwrap_or_default()
}

fn of_column(gathering: &Gathering<'_>) -> Option<(ValueBuf, ValueBuf)> {
    if gathering.is_split || gathering.has_array {
        return None;
    }
    let mut all: Option<(ValueBuf, ValueBuf)> = None;
    for (kind, stream) in gathering.kinds.iter().zip(&gathering.streams) {
        let (least, most) = of_stream((*kind)?, stream)?;
        let (old_least, old_most) = all.get_or_insert_with(|| (least.clone(), most.clone()));
        if compare(least.as_value(), old_least.as_value(), None) == Ordering::Less {
            *old_least = least;
        }
        if compare(most.as_value(), old_most.as_value(), None) == Ordering::Greater {
            *old_most = most;
        }
    }
    all.filter(|(least, most)| {
        least.bson_len() <= BOUND_BYTES_MAX && most.bson_len() <= BOUND_BYTES_MAX
    })
}

fn of_stream(kind: Type, stream: &Gathered<'_>) -> Option<(ValueBuf, ValueBuf)> {
    let both = |(least, most): (Value<'_>, Value<'_>)| (ValueBuf::new(least), ValueBuf::new(most));
    match stream {
        Gathered::Integers(all) if kind == Type::Timestamp => {
            range(all.iter().copied(), |a, b| (*a as u64).cmp(&(*b as u64)))
                .map(|(least, most)| both((integer_value(kind, least), integer_value(kind, most))))
        }
        Gathered::Integers(all) => range(all.iter().copied(), Ord::cmp)
            .map(|(least, most)| both((integer_value(kind, least), integer_value(kind, most)))),
        Gathered::Doubles(all) => range(all.iter().copied(), order_of_doubles)
            .map(|(least, most)| both((Value::Double(least), Value::Double(most)))),
        Gathered::Ids(all) => range(all.iter().copied(), ObjectId::cmp)
            .map(|(least, most)| both((Value::ObjectId(least), Value::ObjectId(most)))),
        Gathered::Texts(all) => {
            let values = all.iter().map(|bytes| text_value(kind, bytes));
            range(values, |a, b| compare(*a, *b, None)).map(both)
        }
        Gathered::Nothing(_) => {
            let value = text_value(kind, &[]);
            Some(both((value, value)))
        }
    }
}

/// Compares doubles in MongoDB's order: NaN first, and both zeros equal.
fn order_of_doubles(a: &f64, b: &f64) -> Ordering {
    a.partial_cmp(b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

/// Returns the first smallest and the first largest of some values.
fn range<T: Copy>(
    mut values: impl Iterator<Item = T>,
    order: impl Fn(&T, &T) -> Ordering,
) -> Option<(T, T)> {
    let first = values.next()?;
    let (mut least, mut most) = (first, first);
    for value in values {
        if order(&value, &least) == Ordering::Less {
            least = value;
        } else if order(&value, &most) == Ordering::Greater {
            most = value;
        }
    }
    Some((least, most))
}
