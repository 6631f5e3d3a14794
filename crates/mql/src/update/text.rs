//! Values as mongod's messages print them: `a: { b: 1, c: "x" }`. For people only.

use quire_document::{Doc, Element, Value};
use std::fmt::Write as _;

/// A field as messages print it: `name: value`.
pub(crate) fn field(name: &str, value: Value<'_>) -> String {
    let mut out = format!("{name}: ");
    write_value(&mut out, value);
    out
}

/// An element as messages print it: `name: value`.
pub(crate) fn element(element: Element<'_>) -> String {
    field(element.key(), element.value())
}

/// A document as messages print it.
pub(crate) fn doc(doc: Doc<'_>) -> String {
    value(Value::Document(doc))
}

/// A value as messages print it.
pub(crate) fn value(value: Value<'_>) -> String {
    let mut out = String::new();
    write_value(&mut out, value);
    out
}

/// The document's `_id` as messages name it: `{_id: 1}`.
pub(crate) fn id_of(doc: Doc<'_>) -> String {
    match doc.find("_id") {
        Some(id) => format!("{{{}}}", element(id)),
        None => "{no id}".to_owned(),
    }
}

fn write_doc(out: &mut String, doc: Doc<'_>) {
    if doc.is_empty() {
        out.push_str("{}");
        return;
    }
    out.push_str("{ ");
    for (at, (name, value)) in doc.fields().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        out.push_str(name);
        out.push_str(": ");
        write_value(out, value);
    }
    out.push_str(" }");
}

fn write_value(out: &mut String, value: Value<'_>) {
    // Writing to a String cannot fail.
    let _ = match value {
        Value::Double(number) => write_double(out, number),
        Value::String(text) | Value::Symbol(text) => write!(out, "\"{text}\""),
        Value::Document(doc) => {
            write_doc(out, doc);
            Ok(())
        }
        Value::Array(array) if array.is_empty() => write!(out, "[]"),
        Value::Array(array) => {
            out.push_str("[ ");
            for (at, value) in array.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                write_value(out, value);
            }
            write!(out, " ]")
        }
        Value::Binary(binary) => write_binary(out, binary.subtype, binary.bytes),
        Value::Undefined => write!(out, "undefined"),
        Value::ObjectId(id) => write!(out, "ObjectId('{id}')"),
        Value::Bool(flag) => write!(out, "{flag}"),
        Value::Date(ms) => write!(out, "new Date({ms})"),
        Value::Null => write!(out, "null"),
        Value::Regex(regex) => write!(out, "/{}/{}", regex.pattern, regex.options),
        Value::DbPointer(pointer) => write!(out, "DBRef('{}',{})", pointer.namespace, pointer.id),
        Value::Code(code) => write!(out, "{code}"),
        Value::CodeWithScope(code) => {
            let _ = write!(out, "CodeWScope( {}, ", code.code);
            write_doc(out, code.scope);
            write!(out, ")")
        }
        Value::Int32(number) => write!(out, "{number}"),
        Value::Timestamp(at) => write!(out, "Timestamp({}, {})", at.seconds, at.increment),
        Value::Int64(number) => write!(out, "{number}"),
        Value::Decimal(number) => write!(out, "{number}"),
        Value::MinKey => write!(out, "MinKey"),
        Value::MaxKey => write!(out, "MaxKey"),
    };
}

fn write_binary(out: &mut String, subtype: u8, bytes: &[u8]) -> std::fmt::Result {
    if subtype == 4 && bytes.len() == 16 {
        out.push_str("UUID(\"");
        for (at, byte) in bytes.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                out.push('-');
            }
            write!(out, "{byte:02x}")?;
        }
        return write!(out, "\")");
    }
    write!(out, "BinData({subtype}, ")?;
    bytes.iter().try_for_each(|byte| write!(out, "{byte:02X}"))?;
    write!(out, ")")
}

/// C's `%.16g`, with `.0` where no point is in it.
fn write_double(out: &mut String, number: f64) -> std::fmt::Result {
    let text = general(number, 16);
    let point = if text.contains('.') { "" } else { ".0" };
    write!(out, "{text}{point}")
}

fn general(number: f64, digits: usize) -> String {
    if number.is_nan() {
        return "nan".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let scientific = format!("{number:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    trimmed(&format!("{number:.decimals$}")).to_owned()
}

fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}
