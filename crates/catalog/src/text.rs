//! Documents as mongod's messages print them: `{ a: 1, b: "x" }`. For people only; nothing is
//! escaped and nothing reads it back.

use std::fmt::Write as _;

use quire_document::{Doc, Value};

/// The document as an error message shows it.
pub fn debug_doc(doc: Doc<'_>) -> String {
    let mut out = String::new();
    write_doc(&mut out, doc);
    out
}

/// The value as an error message shows it.
pub fn debug_value(value: Value<'_>) -> String {
    let mut out = String::new();
    write_value(&mut out, value);
    out
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
        Value::String(text) => write!(out, "\"{text}\""),
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
        Value::Binary(binary) if binary.subtype == 4 && binary.bytes.len() == 16 => {
            let mut uuid = crate::Uuid::default();
            uuid.0.copy_from_slice(binary.bytes);
            write!(out, "UUID(\"{uuid}\")")
        }
        Value::Binary(binary) => {
            let _ = write!(out, "BinData({}, ", binary.subtype);
            binary.bytes.iter().for_each(|byte| {
                let _ = write!(out, "{byte:02X}");
            });
            write!(out, ")")
        }
        Value::Undefined => write!(out, "undefined"),
        Value::ObjectId(id) => write!(out, "ObjectId('{id}')"),
        Value::Bool(flag) => write!(out, "{flag}"),
        Value::Date(ms) => write!(out, "new Date({ms})"),
        Value::Null => write!(out, "null"),
        Value::Regex(regex) => write!(out, "/{}/{}", regex.pattern, regex.options),
        Value::DbPointer(pointer) => write!(out, "DBRef('{}',{})", pointer.namespace, pointer.id),
        Value::Code(code) => write!(out, "{code}"),
        Value::Symbol(text) => write!(out, "\"{text}\""),
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

/// C's `%.16g`, with `.0` where no point is in it (so infinity prints as `inf.0`).
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

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    #[test]
    fn prints_as_mongod_does() {
        let doc = doc! { "a": 1, "b": 1.0, "c": "x", "d": { "e": [1, 2] }, "f": {}, "g": [], "h": -0.0, "i": 0.5 };
        let text = debug_doc(doc.as_doc());
        assert_eq!(
            text,
            r#"{ a: 1, b: 1.0, c: "x", d: { e: [ 1, 2 ] }, f: {}, g: [], h: -0.0, i: 0.5 }"#
        );
        assert_eq!(debug_value(Value::Double(f64::NAN)), "nan.0");
        assert_eq!(debug_value(Value::Double(f64::INFINITY)), "inf.0");
        assert_eq!(debug_value(Value::Double(1e30)), "1e+30.0");
        assert_eq!(debug_value(Value::Double(123456.789)), "123456.789");
    }
}
