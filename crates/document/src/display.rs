//! Values as MongoDB's error messages print them: `dup key: { a: 1, b: "x" }`.

use crate::number::message_text;
use crate::{Doc, Value};
use std::fmt;

/// Prints a value as error messages do.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a>(Value<'a>);

/// Returns the text of a value for an error message. Strings are quoted but not escaped.
pub fn message<'a>(value: impl Into<Value<'a>>) -> Message<'a> {
    Message(value.into())
}

impl fmt::Display for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Double(number) => f.write_str(&message_text(number)),
            Value::String(text) | Value::Symbol(text) => write!(f, "\"{text}\""),
            Value::Document(doc) => write_fields(doc, f),
            Value::Array(array) if array.is_empty() => f.write_str("[]"),
            Value::Array(array) => {
                f.write_str("[ ")?;
                for (at, value) in array.iter().enumerate() {
                    f.write_str(if at > 0 { ", " } else { "" })?;
                    message(value).fmt(f)?;
                }
                f.write_str(" ]")
            }
            Value::Binary(binary) => match <[u8; 16]>::try_from(binary.bytes) {
                Ok(uuid) if binary.subtype == 4 => write_uuid(uuid, f),
                _ => {
                    write!(f, "BinData({}, ", binary.subtype)?;
                    binary.bytes.iter().try_for_each(|byte| write!(f, "{byte:02X}"))?;
                    f.write_str(")")
                }
            },
            Value::Undefined => f.write_str("undefined"),
            Value::ObjectId(id) => write!(f, "ObjectId('{id}')"),
            Value::Bool(flag) => write!(f, "{flag}"),
            Value::Date(millis) => write!(f, "new Date({millis})"),
            Value::Null => f.write_str("null"),
            Value::Regex(regex) => write!(f, "/{}/{}", regex.pattern, regex.options),
            Value::DbPointer(pointer) => {
                write!(f, "DBRef('{}',{})", pointer.namespace, pointer.id)
            }
            Value::Code(code) => f.write_str(code),
            Value::CodeWithScope(code) => {
                write!(f, "CodeWScope( {}, ", code.code)?;
                write_fields(code.scope, f)?;
                f.write_str(")")
            }
            Value::Int32(number) => write!(f, "{number}"),
            Value::Timestamp(at) => write!(f, "Timestamp({}, {})", at.seconds, at.increment),
            Value::Int64(number) => write!(f, "{number}"),
            Value::Decimal(decimal) => write!(f, "{decimal}"),
            Value::MinKey => f.write_str("MinKey"),
            Value::MaxKey => f.write_str("MaxKey"),
        }
    }
}

fn write_fields(doc: Doc<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if doc.is_empty() {
        return f.write_str("{}");
    }
    f.write_str("{ ")?;
    for (at, (name, value)) in doc.fields().enumerate() {
        f.write_str(if at > 0 { ", " } else { "" })?;
        write!(f, "{name}: {}", message(value))?;
    }
    f.write_str(" }")
}

fn write_uuid(uuid: [u8; 16], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("UUID(\"")?;
    for (at, byte) in uuid.iter().enumerate() {
        f.write_str(if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" })?;
        write!(f, "{byte:02x}")?;
    }
    f.write_str("\")")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::literal::parse;

    #[test]
    fn as_in_recorded_messages() {
        for (literal, text) in [
            ("{}", "{}"),
            ("{a: 1, b: {x: 1.0, \"y.z\": NumberLong(\"2\")}}", "{ a: 1, b: { x: 1.0, y.z: 2 } }"),
            ("[]", "[]"),
            ("[1, \"x\"]", "[ 1, \"x\" ]"),
            ("NaN", "nan.0"),
            ("NumberDecimal(\"NaN\")", "NaN"),
            ("NumberDecimal(\"1.50\")", "1.50"),
            ("BinData(0, \"AQID\")", "BinData(0, 010203)"),
            (
                "UUID(\"00112233-4455-6677-8899-aabbccddeeff\")",
                "UUID(\"00112233-4455-6677-8899-aabbccddeeff\")",
            ),
            ("ObjectId(\"0123456789abcdef01234567\")", "ObjectId('0123456789abcdef01234567')"),
            ("ISODate(\"2020-02-03T03:58:26.007Z\")", "new Date(1580702306007)"),
            ("/x/i", "/x/i"),
            ("Timestamp(5, 6)", "Timestamp(5, 6)"),
            ("MinKey", "MinKey"),
            ("null", "null"),
        ] {
            assert_eq!(message(&parse(literal).unwrap()).to_string(), text);
        }
    }
}
