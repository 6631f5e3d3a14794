//! A command of a shape that can be run: one value for each type in the shape.

use super::Kind;
use quire_document::{Array, ArrayBuf, Doc, DocBuf, ObjectId, Timestamp, Value, ValueBuf};

/// Returns a command of a shape. `None` for a write: a shape says which paths it writes, not what.
pub(super) fn of(kind: Kind, shape: Doc<'_>) -> Option<DocBuf> {
    let namespace = shape.get("cmdNs")?.as_document()?;
    let collection = namespace.get("coll")?.as_str()?;
    match kind {
        Kind::Find | Kind::Aggregate | Kind::Count | Kind::Distinct => {}
        Kind::Insert | Kind::Update | Kind::Delete | Kind::FindAndModify => return None,
    }
    Some(DocBuf::build(|out| {
        match collection {
            "$cmd.aggregate" => out.append(kind.name(), 1),
            collection => out.append(kind.name(), collection),
        };
        for (name, value) in shape.fields() {
            match name {
                "cmdNs" | "command" => {}
                "collation" | "key" => drop(out.append(name, value)),
                _ => drop(out.append(name, &filled("", value))),
            }
        }
        if kind == Kind::Aggregate {
            out.document("cursor").finish();
        }
    }))
}

/// Returns the value with a value in place of each type. `operator` is the name of its field.
fn filled(operator: &str, value: Value<'_>) -> ValueBuf {
    match value {
        Value::String(text) => placeholder(operator, text).unwrap_or_else(|| ValueBuf::new(text)),
        Value::Document(doc) => DocBuf::build(|out| {
            for (name, value) in doc.fields() {
                out.append(name, &filled(name, value));
            }
        })
        .into(),
        Value::Array(items) => list(items).into(),
        other => ValueBuf::new(other),
    }
}

fn list(items: Array<'_>) -> ArrayBuf {
    ArrayBuf::build(|out| {
        items.iter().for_each(|item| {
            out.push(&filled("", item));
        });
    })
}

/// Returns a value of the type that a text names; `None` for another text.
fn placeholder(operator: &str, text: &str) -> Option<ValueBuf> {
    if text == "[]" {
        return Some(ArrayBuf::new().into());
    }
    let inner = text.strip_prefix("?array<").and_then(|inner| inner.strip_suffix('>'));
    if let Some(inner) = inner {
        let element = placeholder(operator, inner).unwrap_or_else(|| ValueBuf::new(1));
        let elements = ArrayBuf::build(|out| {
            out.push(&element).push(&element);
        });
        return Some(elements.into());
    }
    Some(match text {
        "?number" => ValueBuf::new(1),
        "?string" if operator == "$options" => ValueBuf::new("i"),
        "?string" => ValueBuf::new("string"),
        "?object" => DocBuf::new().into(),
        "?array" => ArrayBuf::new().into(),
        "?binData" => {
            ValueBuf::new(Value::Binary(quire_document::Binary { subtype: 0, bytes: &[] }))
        }
        "?undefined" => ValueBuf::new(Value::Undefined),
        "?objectId" => ValueBuf::new(ObjectId::from_parts(0, [0; 5], 0)),
        "?bool" => ValueBuf::new(true),
        "?date" => ValueBuf::new(Value::Date(0)),
        "?null" => ValueBuf::new(Value::Null),
        "?regex" => {
            ValueBuf::new(Value::Regex(quire_document::Regex { pattern: "string", options: "" }))
        }
        "?javascript" => ValueBuf::new(Value::Code("return true")),
        "?symbol" => ValueBuf::new(Value::Symbol("string")),
        "?timestamp" => ValueBuf::new(Timestamp::from_u64(0)),
        "?minKey" => ValueBuf::new(Value::MinKey),
        "?maxKey" => ValueBuf::new(Value::MaxKey),
        _ => return None,
    })
}
