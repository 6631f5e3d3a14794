//! Values as mongod's messages print them: `a: { b: 1, c: "x" }`. For people only.

use quire_document::{Doc, Element, Value, message};

/// A field as messages print it: `name: value`.
pub(crate) fn field(name: &str, value: Value<'_>) -> String {
    format!("{name}: {}", message(value))
}

/// An element as messages print it: `name: value`.
pub(crate) fn element(element: Element<'_>) -> String {
    field(element.key(), element.value())
}

/// A document as messages print it.
pub(crate) fn doc(doc: Doc<'_>) -> String {
    message(doc).to_string()
}

/// A value as messages print it.
pub(crate) fn value(value: Value<'_>) -> String {
    message(value).to_string()
}

/// The document's `_id` as messages name it: `{_id: 1}`.
pub(crate) fn id_of(doc: Doc<'_>) -> String {
    match doc.find("_id") {
        Some(id) => format!("{{{}}}", element(id)),
        None => "{no id}".to_owned(),
    }
}
