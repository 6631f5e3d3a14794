//! The shape of what an update writes: its operators with their paths, or its pipeline.

use super::{literal, pipeline, projection};
use quire_document::{Doc, DocBuf, DocWriter, Value, ValueBuf};

/// Returns the shape of an update: a document of operators, a pipeline, or `?object` for a
/// replacement.
pub(super) fn of(update: Value<'_>) -> ValueBuf {
    match update {
        Value::Array(stages) => pipeline::of(stages.iter()).into(),
        Value::Document(doc) if is_operators(doc) => DocBuf::build(|out| {
            for (operator, fields) in doc.fields() {
                match fields {
                    Value::Document(fields) => of_fields(operator, fields, out),
                    other => drop(out.append(operator, &*literal::of(other))),
                }
            }
        })
        .into(),
        other => ValueBuf::new(&*literal::of(other)),
    }
}

/// Returns true for a document of operators, false for a replacement.
fn is_operators(update: Doc<'_>) -> bool {
    update.first().is_some_and(|first| first.key().starts_with('$'))
}

fn of_fields(operator: &str, fields: Doc<'_>, out: &mut DocWriter<'_>) {
    let mut inner = out.document(operator);
    for (path, value) in fields.fields() {
        match (operator, value) {
            ("$rename", name) => drop(inner.append(path, name)),
            ("$push" | "$addToSet", Value::Document(modifiers)) if is_operators(modifiers) => {
                of_modifiers(modifiers, &mut inner.document(path));
            }
            (_, value) => drop(inner.append(path, &*literal::of(value))),
        }
    }
}

fn of_modifiers(modifiers: Doc<'_>, out: &mut DocWriter<'_>) {
    for (name, value) in modifiers.fields() {
        match (name, value) {
            ("$sort", Value::Document(sort)) => drop(out.append(name, &projection::of_sort(sort))),
            (_, value) => drop(out.append(name, &*literal::of(value))),
        }
    }
}
