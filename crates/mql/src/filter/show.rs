//! Values as error messages show them.

use quire_document::{Doc, Value};
use std::fmt::Write;

/// The value in the shell's spelling, shortened where it is long.
pub(crate) fn show(value: Value<'_>) -> String {
    let mut text = String::new();
    append(&mut text, value);
    if text.len() > 200 {
        let cut = (0..=150).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(cut);
        text.push_str("...");
    }
    text
}

/// A document as messages show it: `{ a: 1 }`.
pub(crate) fn show_doc(doc: Doc<'_>) -> String {
    show(Value::Document(doc))
}

fn append(text: &mut String, value: Value<'_>) {
    // Writing to a string cannot fail.
    let _ = match value {
        Value::Int32(number) => write!(text, "{number}"),
        Value::Int64(number) => write!(text, "{number}"),
        Value::Double(number) => write!(text, "{number:?}"),
        Value::String(string) => write!(text, "{string:?}"),
        Value::Bool(flag) => write!(text, "{flag}"),
        Value::Null => write!(text, "null"),
        Value::Undefined => write!(text, "undefined"),
        Value::MinKey => write!(text, "MinKey"),
        Value::MaxKey => write!(text, "MaxKey"),
        Value::ObjectId(id) => write!(text, "ObjectId('{id}')"),
        Value::Regex(regex) => write!(text, "/{}/{}", regex.pattern, regex.options),
        Value::Document(doc) => {
            text.push('{');
            for (at, (name, value)) in doc.fields().enumerate() {
                text.push_str(if at == 0 { " " } else { ", " });
                text.push_str(name);
                text.push_str(": ");
                append(text, value);
            }
            text.push_str(if doc.is_empty() { "}" } else { " }" });
            Ok(())
        }
        Value::Array(array) => {
            text.push('[');
            for (at, value) in array.iter().enumerate() {
                text.push_str(if at == 0 { " " } else { ", " });
                append(text, value);
            }
            text.push_str(if array.is_empty() { "]" } else { " ]" });
            Ok(())
        }
        other => write!(text, "{other:?}"),
    };
}
