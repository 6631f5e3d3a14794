//! Equality as JSON Schema wants it: the order of an object's fields means nothing.

use quire_document::{Doc, Value, equal};

/// True if the values are equal, objects whatever the order of their fields.
pub(super) fn same(left: Value<'_>, right: Value<'_>) -> bool {
    match (left, right) {
        (Value::Document(left), Value::Document(right)) => same_fields(left, right),
        (Value::Array(left), Value::Array(right)) => {
            let (mut left, mut right) = (left.iter(), right.iter());
            loop {
                match (left.next(), right.next()) {
                    (None, None) => return true,
                    (Some(left), Some(right)) if same(left, right) => {}
                    _ => return false,
                }
            }
        }
        (left, right) => equal(left, right, None),
    }
}

fn same_fields(left: Doc<'_>, right: Doc<'_>) -> bool {
    let sorted = |doc: Doc<'_>| -> Vec<usize> {
        let mut order: Vec<usize> = (0..doc.count()).collect();
        let names: Vec<&[u8]> = doc.iter().map(|element| element.key_bytes()).collect();
        order.sort_by(|a, b| names[*a].cmp(names[*b]));
        order
    };
    let (left_fields, right_fields): (Vec<_>, Vec<_>) =
        (left.fields().collect(), right.fields().collect());
    left_fields.len() == right_fields.len()
        && sorted(left).into_iter().zip(sorted(right)).all(|(l, r)| {
            let ((left_name, left), (right_name, right)) = (left_fields[l], right_fields[r]);
            left_name == right_name && same(left, right)
        })
}

/// The first value that occurs twice, if one does.
pub(super) fn first_duplicate<'a>(values: &[Value<'a>]) -> Option<Value<'a>> {
    values.iter().enumerate().find_map(|(at, value)| {
        values.iter().take(at).any(|earlier| same(*earlier, *value)).then_some(*value)
    })
}
