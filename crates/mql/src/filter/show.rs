//! The text of values in error messages.

use quire_document::{Doc, Value, message};

/// The most bytes of a value in a message.
const SHOWN_BYTES_MAX: usize = 150;

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
