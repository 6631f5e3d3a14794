//! The text of projections in explain.

use super::tree::{Kind, Projection};
use crate::expression::Expression;
use quire_document::{Doc, DocBuf, DocWriter, Value, ValueBuf};
use std::collections::HashMap;

/// The computed fields of a projection, by their dotted paths.
type Computed<'p> = HashMap<String, &'p Expression>;

impl Projection {
    /// Returns the projection as explain shows it: `{_id: true, a: true}` for `{a: 1}`.
    pub fn print(&self) -> DocBuf {
        print(self)
    }
}

/// Returns the flag in a value of a projection: true if the field is kept, false if it is dropped.
/// Returns `None` if the value is not a flag.
pub fn flag(value: Value<'_>) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(flag),
        Value::Int32(number) => Some(number != 0),
        Value::Int64(number) => Some(number != 0),
        Value::Double(number) => Some(number != 0.0),
        Value::Decimal(number) => Some(!number.is_zero()),
        _ => None,
    }
}

fn print(projection: &Projection) -> DocBuf {
    let source = projection.to_bson().as_doc();
    let computed: Computed<'_> = projection.computed_fields().into_iter().collect();
    match projection.kind() {
        Kind::Inclusion => {
            let flat = flat_inclusion(source, &computed);
            let fields = flat.as_doc().fields().collect();
            DocBuf::build(|writer| write_nested(fields, writer))
        }
        Kind::AddFields => DocBuf::build(|writer| {
            for (name, value) in source.fields() {
                writer.append(name, &printed_value(name, value, &computed));
            }
        }),
        Kind::Exclusion => {
            let paths = source
                .fields()
                .filter(|(name, value)| *name != "_id" || flag(*value) == Some(false))
                .map(|(name, _)| (name, Value::Bool(false)));
            let paths: Vec<(&str, Value<'_>)> = paths.collect();
            let keeps_id = !paths.iter().any(|(path, _)| *path == "_id");
            DocBuf::build(|writer| {
                write_nested(paths, writer);
                if keeps_id {
                    writer.append("_id", true);
                }
            })
        }
    }
}

/// Returns a computed field, with its constants folded and marked.
fn printed_value(path: &str, value: Value<'_>, computed: &Computed<'_>) -> ValueBuf {
    match (computed.get(path), value) {
        (Some(expression), _) => expression.to_bson(),
        (None, Value::Document(doc)) => ValueBuf::from(DocBuf::build(|writer| {
            for (inner, value) in doc.fields() {
                let path = format!("{path}.{inner}");
                writer.append(inner, &printed_value(&path, value, computed));
            }
        })),
        (None, other) => ValueBuf::new(other),
    }
}

/// The content of a name: a value, or values at paths below it.
enum Place<'f> {
    Value(Value<'f>),
    Below(Vec<(&'f str, Value<'f>)>),
}

/// Writes `{"o.x": true}` as `{o: {x: true}}`. Names are in the order of their first occurrence.
fn write_nested(fields: Vec<(&str, Value<'_>)>, writer: &mut DocWriter<'_>) {
    let mut places: Vec<(&str, Place<'_>)> = Vec::with_capacity(fields.len());
    let mut known: HashMap<&str, usize> = HashMap::new();
    for (path, value) in fields {
        let Some((top, rest)) = path.split_once('.') else {
            places.push((path, Place::Value(value)));
            continue;
        };
        let at = *known.entry(top).or_insert_with(|| {
            places.push((top, Place::Below(Vec::new())));
            places.len() - 1
        });
        if let Some((_, Place::Below(below))) = places.get_mut(at) {
            below.push((rest, value));
        }
    }
    for (name, place) in places {
        match place {
            Place::Value(value) => {
                writer.append(name, value);
            }
            Place::Below(below) => write_nested(below, &mut writer.document(name)),
        }
    }
}

fn flat_inclusion(source: Doc<'_>, computed: &Computed<'_>) -> DocBuf {
    DocBuf::build(|writer| {
        let dropped = matches!(source.get("_id"), Some(value) if flag(value) == Some(false));
        let below_id = source.fields().any(|(name, _)| name.starts_with("_id."));
        let given = source.get("_id").is_some_and(|value| flag(value).is_none());
        if !dropped && !below_id && !given {
            writer.append("_id", true);
        }
        for (name, value) in source.fields() {
            match flag(value) {
                Some(_) if name == "_id" => {}
                Some(kept) => {
                    writer.append(name, kept);
                }
                None => print_kept(name, name, value, computed, writer),
            }
        }
        if dropped {
            writer.append("_id", false);
        }
    })
}

/// Writes a field of an inclusion that is not a flag: computed, or a document of nested fields.
fn print_kept(
    path: &str,
    name: &str,
    value: Value<'_>,
    computed: &Computed<'_>,
    writer: &mut DocWriter<'_>,
) {
    let nested = value
        .as_document()
        .filter(|doc| doc.first().is_some_and(|first| !first.key().starts_with('$')));
    let Some(nested) = nested else {
        writer.append(name, &printed_value(path, value, computed));
        return;
    };
    let mut inner = writer.document(name);
    for (name, value) in nested.fields() {
        match flag(value) {
            Some(kept) => {
                inner.append(name, kept);
            }
            None => print_kept(&format!("{path}.{name}"), name, value, computed, &mut inner),
        }
    }
}
