//! Prints values as literals.

use crate::calendar::{ISO_RANGE, iso_text};
use crate::number::shortest_double;
use crate::{Binary, Doc, Regex, Value};
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use std::fmt::{self, Write};

/// Returns the literal of a value, on one line.
pub fn print<'v>(value: impl Into<Value<'v>>) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(value.into(), &mut text);
    text
}

/// Appends the literal of a value.
pub fn write(value: Value<'_>, out: &mut dyn Write) -> fmt::Result {
    match value {
        Value::Double(number) => write_double(number, out),
        Value::String(text) => quote(text, out),
        Value::Document(doc) => write_document(doc, out),
        Value::Array(array) => {
            out.write_char('[')?;
            for (at, value) in array.iter().enumerate() {
                out.write_str(if at > 0 { ", " } else { "" })?;
                write(value, out)?;
            }
            out.write_char(']')
        }
        Value::Binary(binary) => write_binary(binary, out),
        Value::Undefined => out.write_str("undefined"),
        Value::ObjectId(id) => write!(out, "ObjectId(\"{id}\")"),
        Value::Bool(flag) => write!(out, "{flag}"),
        Value::Date(millis) if ISO_RANGE.contains(&millis) => {
            write!(out, "ISODate(\"{}\")", iso_text(millis))
        }
        Value::Date(millis) => write!(out, "Date({millis})"),
        Value::Null => out.write_str("null"),
        Value::Regex(regex) => write_regex(regex, out),
        Value::DbPointer(pointer) => {
            out.write_str("DBPointer(")?;
            quote(pointer.namespace, out)?;
            write!(out, ", ObjectId(\"{}\"))", pointer.id)
        }
        Value::Code(code) => {
            out.write_str("Code(")?;
            quote(code, out)?;
            out.write_char(')')
        }
        Value::Symbol(text) => {
            out.write_str("Symbol(")?;
            quote(text, out)?;
            out.write_char(')')
        }
        Value::CodeWithScope(code) => {
            out.write_str("Code(")?;
            quote(code.code, out)?;
            out.write_str(", ")?;
            write_document(code.scope, out)?;
            out.write_char(')')
        }
        Value::Int32(number) => write!(out, "{number}"),
        Value::Timestamp(at) => write!(out, "Timestamp({}, {})", at.seconds, at.increment),
        Value::Int64(number) => write!(out, "NumberLong(\"{number}\")"),
        Value::Decimal(decimal) => write!(out, "NumberDecimal(\"{decimal}\")"),
        Value::MinKey => out.write_str("MinKey"),
        Value::MaxKey => out.write_str("MaxKey"),
    }
}

fn write_document(doc: Doc<'_>, out: &mut dyn Write) -> fmt::Result {
    out.write_char('{')?;
    for (at, (name, value)) in doc.fields().enumerate() {
        out.write_str(if at > 0 { ", " } else { "" })?;
        if is_identifier(name) {
            out.write_str(name)?;
        } else {
            quote(name, out)?;
        }
        out.write_str(": ")?;
        write(value, out)?;
    }
    out.write_char('}')
}

/// Returns true for names that need no quotes.
pub(super) fn is_identifier(name: &str) -> bool {
    let bytes = name.as_bytes();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    bytes.first().is_some_and(|byte| !byte.is_ascii_digit()) && bytes.iter().all(plain)
}

/// Writes a double in a form that differs from an integer.
pub(crate) fn write_double(number: f64, out: &mut dyn Write) -> fmt::Result {
    if number == 0.0 {
        return out.write_str(if number.is_sign_negative() { "-0.0" } else { "0.0" });
    }
    let text = shortest_double(number);
    out.write_str(&text)?;
    let whole = number.is_finite() && !text.contains(['.', 'e']);
    out.write_str(if whole { ".0" } else { "" })
}

/// Writes a JSON string. Escapes only quotes, backslashes and control characters.
pub(crate) fn quote(text: &str, out: &mut dyn Write) -> fmt::Result {
    out.write_char('"')?;
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0..0x20 => "\\u",
            _ => continue,
        };
        out.write_str(&text[plain..at])?;
        out.write_str(escape)?;
        if escape == "\\u" {
            write!(out, "{byte:04x}")?;
        }
        plain = at + 1;
    }
    out.write_str(&text[plain..])?;
    out.write_char('"')
}

/// Writes `/pattern/options` if it parses back to the same value, otherwise `RegExp(...)`.
fn write_regex(regex: Regex<'_>, out: &mut dyn Write) -> fmt::Result {
    let Regex { pattern, options } = regex;
    let options_plain =
        options.bytes().all(|byte| byte.is_ascii_lowercase()) && options.as_bytes().is_sorted();
    match slashed(pattern) {
        Some(text) if options_plain => write!(out, "/{text}/{options}"),
        _ => {
            out.write_str("RegExp(")?;
            quote(pattern, out)?;
            out.write_str(", ")?;
            quote(options, out)?;
            out.write_char(')')
        }
    }
}

/// Returns the pattern with its slashes escaped; `None` if that would be ambiguous.
fn slashed(pattern: &str) -> Option<String> {
    let mut text = String::with_capacity(pattern.len());
    let mut escaped = false;
    for letter in pattern.chars() {
        match letter {
            '\n' => return None,
            '/' if escaped => return None,
            '/' => text.push_str("\\/"),
            other => text.push(other),
        }
        escaped = letter == '\\' && !escaped;
    }
    (!text.is_empty() && !escaped).then_some(text)
}

fn write_binary(binary: Binary<'_>, out: &mut dyn Write) -> fmt::Result {
    if binary.subtype == 4 && binary.bytes.len() == 16 {
        out.write_str("UUID(\"")?;
        for (at, byte) in binary.bytes.iter().enumerate() {
            out.write_str(if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" })?;
            write!(out, "{byte:02x}")?;
        }
        return out.write_str("\")");
    }
    write!(out, "BinData({}, \"", binary.subtype)?;
    write_base64(binary.bytes, out)?;
    out.write_str("\")")
}

/// Appends the bytes in base64 with padding (RFC 4648, section 4).
pub(crate) fn write_base64(bytes: &[u8], out: &mut dyn Write) -> fmt::Result {
    write!(out, "{}", Base64Display::new(bytes, &STANDARD))
}
