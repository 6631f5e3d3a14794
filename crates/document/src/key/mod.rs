//! Encodes values as bytes whose order is MongoDB's order of values.
//!
//! The bytes of any two values, of any types, compare as the values do. Equal values have equal
//! bytes. No encoding is a prefix of another, so the values of a compound key follow each other
//! directly. In a descending field all bytes are inverted. The differences between equal values
//! (int or double, trailing zeros of a decimal, -0) are in the type bits, with which [`KeyReader`]
//! restores values exactly. docs/format.md, "Values in keys", describes every byte.

mod bits;
mod class;
mod number;
mod read;
mod skip;
mod write;

use crate::{Collator, Value};
use std::fmt;

pub use bits::TypeBits;
pub use read::KeyReader;
pub use skip::skip;

/// The bytes are not a valid key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyError;

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("damaged key")
    }
}

impl std::error::Error for KeyError {}

/// Appends a value to a key, without type bits.
pub fn append(value: Value<'_>, descending: bool, key: &mut Vec<u8>) {
    append_full(value, descending, None, key, &mut TypeBits::new());
}

/// Appends a value to a key and its type bits. Under a collation strings become sort keys, which
/// keep order and equality but cannot be decoded to the strings.
pub fn append_full(
    value: Value<'_>,
    descending: bool,
    collator: Option<&dyn Collator>,
    key: &mut Vec<u8>,
    bits: &mut TypeBits,
) {
    let start = key.len();
    write::Writer { key, bits, collator }.value(value);
    if descending {
        invert(&mut key[start..]);
    }
}

/// Appends a missing field. It is encoded as null; the type bits distinguish the two.
pub fn append_missing(descending: bool, key: &mut Vec<u8>, bits: &mut TypeBits) {
    key.push(if descending { !class::NULL } else { class::NULL });
    bits.push(1, 1);
}

/// Returns the key of one ascending value.
pub fn encode<'v>(value: impl Into<Value<'v>>) -> Vec<u8> {
    let mut key = Vec::with_capacity(16);
    append(value.into(), false, &mut key);
    key
}

fn invert(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte = !*byte);
}

/// Replaces a prefix by the smallest bytes that sort after everything with that prefix. If there
/// are none, because the prefix is empty or all 0xFF, clears it and returns false.
pub fn successor(prefix: &mut Vec<u8>) -> bool {
    while let Some(last) = prefix.last_mut() {
        if *last != 0xff {
            *last += 1;
            return true;
        }
        prefix.pop();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decimal128, Regex, ValueBuf, array, compare, doc, identical};

    const DECIMALS: &[&str] = &[
        "0",
        "-0",
        "0E+5",
        "1",
        "1.0",
        "1.00",
        "0.1",
        "0.10",
        "19.99",
        "-19.99",
        "1E-6176",
        "NaN",
        "Infinity",
        "-Infinity",
        "9007199254740992.5",
        "9223372036854775807.5",
        "1E+6144",
        "1E+22",
        "9223372036854775808",
        "9223372036854775809",
        "0.5",
        "1.5",
        "2.50",
        "4.9E-324",
        "1E+308",
        "1.7976931348623158E+308",
        "1E+23",
        "0.3000000000000000000000000000000001",
    ];

    fn samples() -> Vec<ValueBuf> {
        let mut samples: Vec<ValueBuf> = Vec::new();
        let mut add = |value: Value<'_>| samples.push(ValueBuf::new(value));
        for number in [0i64, 1, -1, 2, 127, 128, 255, 256, 1 << 31, 1 << 53, (1 << 53) + 1] {
            add(Value::Int64(number));
            add(Value::Int64(-number));
            add(Value::Double(number as f64));
            add(Value::Double(-(number as f64) - 0.5));
            add(Value::Int32(number as i32));
        }
        for number in [i64::MAX, i64::MIN, i64::MAX - 1, i64::MIN + 1] {
            add(Value::Int64(number));
            add(Value::Double(number as f64));
        }
        for number in [f64::NAN, f64::INFINITY, f64::MAX, f64::MIN_POSITIVE, 5e-324, 0.1, 0.5, 1.5]
        {
            add(Value::Double(number));
            add(Value::Double(-number));
        }
        for text in DECIMALS {
            add(Value::Decimal(Decimal128::parse(text).unwrap()));
        }
        for text in ["", "a", "a\0", "a\0b", "a\u{1}", "ab", "é", "\u{10ffff}"] {
            add(Value::String(text));
            add(Value::Symbol(text));
            add(Value::Code(text));
        }
        add(Value::Regex(Regex { pattern: "a", options: "i" }));
        add(Value::Regex(Regex { pattern: "a", options: "" }));
        for value in [Value::Null, Value::Undefined, Value::MinKey, Value::MaxKey, Value::Date(-5)]
        {
            add(value);
        }
        add(Value::Bool(true));
        add(Value::Bool(false));
        add(Value::from(&doc! {}));
        add(Value::from(&doc! { "a": 1 }));
        add(Value::from(&doc! { "a": 1.0, "b": { "c": [1, "x"] } }));
        add(Value::from(&doc! { "a": "x" }));
        add(Value::from(&array![]));
        add(Value::from(&array![1, 2i64]));
        add(Value::from(&array![1, [2]]));
        samples
    }

    #[test]
    fn order_and_identity() {
        let samples = samples();
        for descending in [false, true] {
            let mut keys = Vec::new();
            for sample in &samples {
                let (mut key, mut bits) = (Vec::new(), TypeBits::new());
                append_full(sample.as_value(), descending, None, &mut key, &mut bits);
                key.push(0x7f);
                let mut reader = KeyReader::new(&key, bits.as_bytes());
                let back = reader.next(descending).unwrap().unwrap();
                assert!(identical(back.as_value(), sample.as_value()), "{sample:?} {back:?}");
                assert_eq!(reader.rest(), [0x7f]);
                key.pop();
                keys.push(key);
            }
            for (a, key_a) in samples.iter().zip(&keys) {
                for (b, key_b) in samples.iter().zip(&keys) {
                    let order = compare(a.as_value(), b.as_value(), None);
                    let order = if descending { order.reverse() } else { order };
                    assert_eq!(key_a.cmp(key_b), order, "{a:?} {b:?} {key_a:x?} {key_b:x?}");
                    assert!(key_a == key_b || !key_b.starts_with(key_a), "{a:?} {b:?}");
                }
            }
        }
    }

    #[test]
    fn short_keys() {
        assert_eq!(encode(5), [0x2d, 10]);
        assert_eq!(encode(-5), [0x29, !10]);
        assert_eq!(encode(12.5), [0x2d, 25, 0x80]);
        assert_eq!(encode("ab"), [0x40, b'a', b'b', 0]);
        assert_eq!(encode(Decimal128::parse("19.99").unwrap()).len(), 14);
    }

    #[test]
    fn missing_and_bounds() {
        let (mut key, mut bits) = (Vec::new(), TypeBits::new());
        append_missing(false, &mut key, &mut bits);
        append_full(Value::Null, true, None, &mut key, &mut bits);
        let mut reader = KeyReader::new(&key, bits.as_bytes());
        assert!(reader.next(false).unwrap().is_none());
        assert!(matches!(reader.next(true).unwrap().unwrap().as_value(), Value::Null));
        for descending in [false, true] {
            for sample in samples() {
                let mut key = Vec::new();
                append(sample.as_value(), descending, &mut key);
                assert!(vec![0x00] < key && key < vec![0xff]);
            }
        }
    }

    #[test]
    fn a_successor_is_above_everything_that_begins_with_the_prefix() {
        let mut above = encode("a");
        let below = above.clone();
        assert!(successor(&mut above));
        for text in ["a", "a\0", "az", "a\u{10ffff}"] {
            let key = encode(text);
            assert_eq!(below <= key && key < above, key.starts_with(&below), "{text:?}");
        }
        assert!(!successor(&mut vec![0xff, 0xff]));
    }
}
