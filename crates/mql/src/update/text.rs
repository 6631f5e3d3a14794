//! The text of values in mongod's messages: `a: { b: 1, c: "x" }`. Only for people.

use quire_document::{Doc, Element, Value, message};

/// Returns the text of a field: `name: value`.
pub(crate) fn field(name: &str, value: Value<'_>) -> String {
    format!("{name}: {}", message(value))
}

/// Returns the text of an element: `name: value`.
pub(crate) fn element(element: Element<'_>) -> String {
    field(element.key(), element.value())
}

/// Returns the text of a document.
pub(crate) fn doc(doc: Doc<'_>) -> String {
    message(doc).to_string()
}

/// Returns the text of a value.
pub(crate) fn value(value: Value<'_>) -> String {
    message(value).to_string()
}

/// Returns the text of the document's `_id`: `{_id: 1}`.
pub(crate) fn id_of(doc: Doc<'_>) -> String {
    match doc.find("_id") {
        Some(id) => format!("{{{}}}", element(id)),
        None => "{no id}".to_owned(),
    }
}
