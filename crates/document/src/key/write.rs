//! Appends values to a key.

use super::bits::TypeBits;
use super::{class, number};
use crate::{Collator, Doc, Value};

/// The destination of encoded values: key and type bits, and the collation of the strings.
pub(super) struct Writer<'k, 'c> {
    pub(super) key: &'k mut Vec<u8>,
    pub(super) bits: &'k mut TypeBits,
    pub(super) collator: Option<&'c dyn Collator>,
}

impl Writer<'_, '_> {
    pub(super) fn value(&mut self, value: Value<'_>) {
        match value {
            Value::Int32(_) | Value::Int64(_) | Value::Double(_) | Value::Decimal(_) => {
                number::append(value, self.key, self.bits);
            }
            Value::String(text) => self.string(text, 0),
            Value::Symbol(text) => self.string(text, 1),
            Value::Document(doc) => {
                self.key.push(class::DOCUMENT);
                self.document(doc);
            }
            Value::Array(array) => {
                self.key.push(class::ARRAY);
                array.iter().for_each(|value| self.value(value));
                self.key.push(0);
            }
            Value::Binary(binary) => {
                self.key.push(class::BINARY);
                append_length(binary.bytes.len(), self.key);
                self.key.push(binary.subtype);
                self.key.extend_from_slice(binary.bytes);
            }
            Value::ObjectId(id) => {
                self.key.push(class::OBJECT_ID);
                self.key.extend_from_slice(&id.0);
            }
            Value::Bool(flag) => self.key.push(if flag { class::TRUE } else { class::FALSE }),
            Value::Date(millis) => {
                self.key.push(class::DATE);
                self.key.extend_from_slice(&(millis as u64 ^ 1 << 63).to_be_bytes());
            }
            Value::Timestamp(at) => {
                self.key.push(class::TIMESTAMP);
                self.key.extend_from_slice(&at.to_u64().to_be_bytes());
            }
            Value::Null => {
                self.key.push(class::NULL);
                self.bits.push(0, 1);
            }
            Value::Undefined => self.key.push(class::UNDEFINED),
            Value::MinKey => self.key.push(class::MIN_KEY),
            Value::MaxKey => self.key.push(class::MAX_KEY),
            Value::Regex(_) | Value::DbPointer(_) | Value::Code(_) | Value::CodeWithScope(_) => {
                self.rarer(value);
            }
        }
    }

    fn rarer(&mut self, value: Value<'_>) {
        match value {
            Value::Regex(regex) => {
                self.key.push(class::REGEX);
                append_escaped(regex.pattern.as_bytes(), self.key);
                append_escaped(regex.options.as_bytes(), self.key);
            }
            Value::DbPointer(pointer) => {
                self.key.push(class::DB_POINTER);
                append_length(pointer.namespace.len(), self.key);
                self.key.extend_from_slice(pointer.namespace.as_bytes());
                self.key.extend_from_slice(&pointer.id.0);
            }
            Value::Code(code) => {
                self.key.push(class::CODE);
                append_escaped(code.as_bytes(), self.key);
            }
            Value::CodeWithScope(code) => {
                self.key.push(class::CODE_WITH_SCOPE);
                append_escaped(code.code.as_bytes(), self.key);
                // The collation does not apply within a scope.
                let collator = self.collator.take();
                self.document(code.scope);
                self.collator = collator;
            }
            _ => {}
        }
    }

    fn string(&mut self, text: &str, symbol: u128) {
        self.key.push(class::STRING);
        self.bits.push(symbol, 1);
        match self.collator {
            None => append_escaped(text.as_bytes(), self.key),
            Some(collator) => {
                let mut sort_key = Vec::new();
                collator.sort_key(text, &mut sort_key);
                append_escaped(&sort_key, self.key);
            }
        }
    }

    /// Appends each field as the first class of its type, its name and its value, and then a zero.
    fn document(&mut self, doc: Doc<'_>) {
        for element in doc.iter() {
            self.key.push(class::range(element.kind()).0);
            append_escaped(element.key_bytes(), self.key);
            self.value(element.value());
        }
        self.key.push(0);
    }
}

/// Appends `bytes` in an encoding that keeps their order and of which none is a prefix of another:
/// 0x00 becomes 0x01 0x01, 0x01 becomes 0x01 0x02, and 0x00 is the terminator.
pub(super) fn append_escaped(bytes: &[u8], key: &mut Vec<u8>) {
    append_escaped_prefix(bytes, key);
    key.push(0);
}

/// Appends `bytes` as [`append_escaped`] does, without the 0x00 at the end.
pub(super) fn append_escaped_prefix(bytes: &[u8], key: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|&byte| byte <= 1) {
        key.extend_from_slice(&rest[..at]);
        key.extend_from_slice(&[1, rest[at] + 1]);
        rest = &rest[at + 1..];
    }
    key.extend_from_slice(rest);
}

/// Appends a length in an encoding that keeps the order: one byte up to 247, otherwise 247 + n and
/// n bytes.
pub(super) fn append_length(length: usize, key: &mut Vec<u8>) {
    if length <= 247 {
        return key.push(length as u8);
    }
    let bytes = (length as u64).to_be_bytes();
    let skipped = (length as u64).leading_zeros() as usize / 8;
    key.push(247 + 8 - skipped as u8);
    key.extend_from_slice(&bytes[skipped..]);
}
