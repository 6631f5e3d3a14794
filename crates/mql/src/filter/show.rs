//! Values as error messages show them.

use quire_document::{Doc, Value, message};

/// How many bytes of a value a message shows.
const SHOWN_BYTES_MAX: usize = 150;

/// The value as MongoDB's messages show it, shortened where it is long.
pub(crate) fn show(value: Value<'_>) -> String {
    let mut text = message(value).to_string();
    if text.len() > SHOWN_BYTES_MAX {
        let end = (0..=SHOWN_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
    }
    text
}

/// A document as messages show it: `{ a: 1 }`.
pub(crate) fn show_doc(doc: Doc<'_>) -> String {
    show(Value::Document(doc))
}
