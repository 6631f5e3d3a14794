//! The text of values in mongod's messages: `a: { b: 1, c: "x" }`, whole or truncated. Only for people.

use quire_document::{Doc, Element, Value, message};

/// The most bytes of a value in a message.
const SHOWN_BYTES_MAX: usize = 150;

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

/// Returns the text of a value as in MongoDB's messages. A long one is truncated.
pub(crate) fn show(value: Value<'_>) -> String {
    let mut text = message(value).to_string();
    if text.len() > SHOWN_BYTES_MAX {
        let end = (0..=SHOWN_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
    }
    text
}

/// Returns the text of a document as in messages: `{ a: 1 }`.
pub(crate) fn show_doc(doc: Doc<'_>) -> String {
    show(Value::Document(doc))
}
