//! Equality in JSON Schema: the order of an object's fields does not matter.

use crate::context::Shared;
use crate::context::work::sort_by;
use quire_document::{Doc, Value, compare};
use quire_error::Result;
use std::cmp::Ordering;

/// Returns true if the values are equal; the order of fields in objects does not matter.
pub(super) fn same(left: Value<'_>, right: Value<'_>) -> bool {
    order(left, right).is_eq()
}

/// Returns the first value that equals an earlier one, if any.
pub(super) fn first_duplicate<'a>(
    values: &[Value<'a>],
    shared: &Shared,
) -> Result<Option<Value<'a>>> {
    let mut places: Vec<usize> = (0..values.len()).collect();
    sort_by(&mut places, shared, |a, b| order(values[*a], values[*b]))?;
    let twice = places.windows(2).filter(|pair| same(values[pair[0]], values[pair[1]]));
    Ok(twice.map(|pair| pair[1]).min().map(|place| values[place]))
}

/// Compares values. Fields of objects are compared in the order of their names.
fn order(left: Value<'_>, right: Value<'_>) -> Ordering {
    match (left, right) {
        (Value::Document(left), Value::Document(right)) => {
            let by_name = |(left_name, left): &(&str, Value<'_>),
                           (right_name, right): &(&str, Value<'_>)| {
                left_name.cmp(right_name).then_with(|| order(*left, *right))
            };
            lexicographic(&sorted_fields(left), &sorted_fields(right), by_name)
        }
        (Value::Array(left), Value::Array(right)) => {
            lexicographic(&left.to_vec(), &right.to_vec(), |left, right| order(*left, *right))
        }
        (left, right) => compare(left, right, None),
    }
}

fn sorted_fields(doc: Doc<'_>) -> Vec<(&str, Value<'_>)> {
    let mut fields: Vec<_> = doc.fields().collect();
    fields.sort_by_key(|(name, _)| *name);
    fields
}

fn lexicographic<T>(left: &[T], right: &[T], order: impl Fn(&T, &T) -> Ordering) -> Ordering {
    let pairs = left.iter().zip(right);
    let first = pairs.map(|(left, right)| order(left, right)).find(|found| found.is_ne());
    first.unwrap_or_else(|| left.len().cmp(&right.len()))
}
