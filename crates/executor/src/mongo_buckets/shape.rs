//! The types of the fields of a bucket. MongoDB opens another bucket when a value of another type comes, because the smallest
//! and the largest value of a field would not bound both; it takes buckets of a dump that mix types only if it is told to.

use quire_document::{Doc, Value};

/// The type of a field: documents field by field, arrays position by position.
pub(super) enum Shape {
    /// The place of the type in the order of types; all numbers have the same.
    Value(u8),
    Fields(Vec<(String, Shape)>),
    Elements(Vec<Shape>),
}

impl Shape {
    /// Returns the shape of documents without fields.
    pub fn of_nothing() -> Self {
        Shape::Fields(Vec::new())
    }

    fn of(value: Value<'_>) -> Self {
        match value {
            Value::Document(doc) => {
                let field = |(name, value): (&str, Value<'_>)| (name.to_owned(), Shape::of(value));
                Shape::Fields(doc.fields().map(field).collect())
            }
            Value::Array(array) => Shape::Elements(array.iter().map(Shape::of).collect()),
            value => Shape::Value(value.kind().rank()),
        }
    }

    /// Returns true if all fields of a document that are known have their types.
    pub fn fits_document(&self, doc: Doc<'_>) -> bool {
        let Shape::Fields(known) = self else { return false };
        doc.fields().enumerate().all(|(at, (name, value))| {
            position(known, at, name)
                .and_then(|at| known.get(at))
                .is_none_or(|(_, shape)| shape.fits(value))
        })
    }

    fn fits(&self, value: Value<'_>) -> bool {
        match (self, value) {
            (Shape::Fields(_), Value::Document(doc)) => self.fits_document(doc),
            (Shape::Elements(known), Value::Array(array)) => {
                known.iter().zip(array.iter()).all(|(shape, value)| shape.fits(value))
            }
            (Shape::Value(rank), value) => *rank == value.kind().rank(),
            _ => false,
        }
    }

    /// Adds the fields of a document that fits.
    pub fn add_document(&mut self, doc: Doc<'_>) {
        let Shape::Fields(known) = self else { return };
        for (at, (name, value)) in doc.fields().enumerate() {
            match position(known, at, name).and_then(|at| known.get_mut(at)) {
                Some((_, shape)) => shape.add(value),
                None => known.push((name.to_owned(), Shape::of(value))),
            }
        }
    }

    fn add(&mut self, value: Value<'_>) {
        match (self, value) {
            (fields @ Shape::Fields(_), Value::Document(doc)) => fields.add_document(doc),
            (Shape::Elements(known), Value::Array(array)) => {
                for (at, value) in array.iter().enumerate() {
                    match known.get_mut(at) {
                        Some(shape) => shape.add(value),
                        None => known.push(Shape::of(value)),
                    }
                }
            }
            _ => {}
        }
    }
}

/// Returns the position of a field, which is mostly at the same place as in the documents before.
fn position(known: &[(String, Shape)], near: usize, name: &str) -> Option<usize> {
    match known.get(near) {
        Some((own, _)) if own == name => Some(near),
        _ => known.iter().position(|(own, _)| own == name),
    }
}

#[cfg(test)]
mod tests {
    use quire_document::doc;

    use super::*;

    #[test]
    fn a_value_of_another_type_does_not_fit() {
        let mut shape = Shape::of_nothing();
        for added in [doc! { "a": 1, "d": { "b": "x" } }, doc! { "l": [1, "x"], "a": 2.5 }] {
            assert!(shape.fits_document(added.as_doc()));
            shape.add_document(added.as_doc());
        }
        for (doc, fits) in [
            (doc! { "new": true, "a": 3_i64, "d": { "c": 1 }, "l": [2] }, true),
            (doc! { "a": "x" }, false),
            (doc! { "a": Value::Null }, false),
            (doc! { "d": { "b": 1 } }, false),
            (doc! { "d": [1] }, false),
            (doc! { "l": [1, 2] }, false),
            (doc! { "l": [1, "y", 3] }, true),
        ] {
            assert_eq!(shape.fits_document(doc.as_doc()), fits, "{doc:?}");
        }
    }
}
