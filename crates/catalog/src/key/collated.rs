//! Key values under a collation: strings become sort keys, whose byte order is the order of the
//! collation. A [`Value`] represents a sort key as a string with one character for each byte: the
//! character with that code point. Therefore the plain order of these strings is the order of the
//! sort keys, and intervals of key values need no collation.

use std::cmp::Ordering;

use quire_document::key::{TypeBits, append_full};
use quire_document::{ArrayBuf, Collator, Doc, DocBuf, Value, ValueBuf};

/// Returns the key value of a value: all its strings become sort keys, also those within documents
/// and arrays.
pub(super) fn key_value(value: Value<'_>, collator: &dyn Collator) -> ValueBuf {
    match value {
        Value::String(text) | Value::Symbol(text) => {
            let mut bytes = Vec::new();
            collator.sort_key(text, &mut bytes);
            let key: String = bytes.into_iter().map(char::from).collect();
            ValueBuf::new(key.as_str())
        }
        Value::Document(doc) => ValueBuf::new(&with_keys(doc, collator)),
        Value::Array(array) => {
            let keys: Vec<ValueBuf> =
                array.iter().map(|value| key_value(value, collator)).collect();
            ValueBuf::new(&keys.iter().collect::<ArrayBuf>())
        }
        other => ValueBuf::new(other),
    }
}

fn with_keys(doc: Doc<'_>, collator: &dyn Collator) -> DocBuf {
    DocBuf::build(|writer| {
        for (name, value) in doc.fields() {
            writer.append(name, &key_value(value, collator));
        }
    })
}

/// Appends a key value to a key.
pub(super) fn append(value: Value<'_>, descending: bool, key: &mut Vec<u8>) {
    append_full(value, descending, Some(&SortKeys), key, &mut TypeBits::new());
}

/// The collator for strings that are already sort keys.
struct SortKeys;

impl Collator for SortKeys {
    fn compare(&self, a: &str, b: &str) -> Ordering {
        a.cmp(b)
    }

    fn sort_key(&self, text: &str, key: &mut Vec<u8>) {
        key.extend(text.chars().filter_map(|byte| u8::try_from(byte).ok()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    /// A collator that ignores case. Its sort keys are bytes above 127.
    struct Caseless;

    impl Collator for Caseless {
        fn compare(&self, a: &str, b: &str) -> Ordering {
            a.to_lowercase().cmp(&b.to_lowercase())
        }

        fn sort_key(&self, text: &str, key: &mut Vec<u8>) {
            key.extend(text.to_lowercase().bytes().map(|byte| byte | 0x80));
        }
    }

    #[test]
    fn a_bound_has_the_bytes_of_the_key() {
        let doc = doc! { "s": "Bob", "d": { "x": ["aB", 1] }, "n": 5 };
        for (_, value) in doc.as_doc().fields() {
            for descending in [false, true] {
                let (mut stored, mut bound) = (Vec::new(), Vec::new());
                let mut bits = TypeBits::new();
                append_full(value, descending, Some(&Caseless), &mut stored, &mut bits);
                append(key_value(value, &Caseless).as_value(), descending, &mut bound);
                assert_eq!(stored, bound, "{value:?}");
            }
        }
    }
}
