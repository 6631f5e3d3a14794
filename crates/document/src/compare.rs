//! MongoDB's order of values, equality, and hashes that agree with it.
//!
//! See "Comparison/Sort Order" in MongoDB's manual. Numbers of all types compare exactly by their
//! mathematical values, symbols like strings, documents element by element: by type, then name,
//! then value.

use crate::{Doc, Value, ValueBuf};
use std::cmp::Ordering;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// The order of strings under a collation.
pub trait Collator: Send + Sync {
    /// Compares two strings.
    fn compare(&self, a: &str, b: &str) -> Ordering;
    /// Appends the sort key of a string: bytes whose order is the order of the strings.
    fn sort_key(&self, text: &str, key: &mut Vec<u8>);
}

/// Compares two values in MongoDB's order. It is total: NaN equals NaN and is the smallest
/// number; `undefined` comes before null.
pub fn compare(a: Value<'_>, b: Value<'_>, collator: Option<&dyn Collator>) -> Ordering {
    if let (Some(a), Some(b)) = (a.as_number(), b.as_number()) {
        return a.compare(b);
    }
    let (rank_a, rank_b) = (a.kind().rank(), b.kind().rank());
    if rank_a != rank_b {
        return rank_a.cmp(&rank_b);
    }
    match (a, b) {
        (Value::String(a) | Value::Symbol(a), Value::String(b) | Value::Symbol(b)) => {
            match collator {
                Some(collator) => collator.compare(a, b),
                None => a.cmp(b),
            }
        }
        (Value::Document(a), Value::Document(b)) => compare_documents(a, b, collator),
        (Value::Array(a), Value::Array(b)) => compare_arrays(a.as_doc(), b.as_doc(), collator),
        (Value::Binary(a), Value::Binary(b)) => (a.bytes.len().cmp(&b.bytes.len()))
            .then_with(|| a.subtype.cmp(&b.subtype))
            .then_with(|| a.bytes.cmp(b.bytes)),
        (Value::ObjectId(a), Value::ObjectId(b)) => a.cmp(&b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(&b),
        (Value::Date(a), Value::Date(b)) => a.cmp(&b),
        (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(&b),
        (Value::Regex(a), Value::Regex(b)) => {
            a.pattern.cmp(b.pattern).then_with(|| a.options.cmp(b.options))
        }
        (Value::DbPointer(a), Value::DbPointer(b)) => (a.namespace.len().cmp(&b.namespace.len()))
            .then_with(|| a.namespace.cmp(b.namespace))
            .then_with(|| a.id.cmp(&b.id)),
        (Value::Code(a), Value::Code(b)) => a.cmp(b),
        (Value::CodeWithScope(a), Value::CodeWithScope(b)) => {
            a.code.cmp(b.code).then_with(|| compare_documents(a.scope, b.scope, None))
        }
        _ => Ordering::Equal,
    }
}

/// Compares documents element by element: by type, name, value. A prefix comes first.
pub fn compare_documents(a: Doc<'_>, b: Doc<'_>, collator: Option<&dyn Collator>) -> Ordering {
    compare_elements(a, b, true, collator)
}

fn compare_arrays(a: Doc<'_>, b: Doc<'_>, collator: Option<&dyn Collator>) -> Ordering {
    compare_elements(a, b, false, collator)
}

fn compare_elements(
    a: Doc<'_>,
    b: Doc<'_>,
    names: bool,
    collator: Option<&dyn Collator>,
) -> Ordering {
    let (mut left, mut right) = (a.iter(), b.iter());
    loop {
        let (a, b) = match (left.next(), right.next()) {
            (Some(a), Some(b)) => (a, b),
            (a, b) => return a.is_some().cmp(&b.is_some()),
        };
        let mut order = a.kind().rank().cmp(&b.kind().rank());
        if names {
            order = order.then_with(|| a.key_bytes().cmp(b.key_bytes()));
        }
        let same = a.kind() == b.kind() && a.value_bytes() == b.value_bytes();
        if !same {
            order = order.then_with(|| compare(a.value(), b.value(), collator));
        }
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Returns true if both are equal in MongoDB's order: 1 equals 1.0 and NumberDecimal("1.0").
pub fn equal(a: Value<'_>, b: Value<'_>, collator: Option<&dyn Collator>) -> bool {
    match (a, b) {
        (Value::String(a), Value::String(b)) if collator.is_none() => a == b,
        (Value::Int32(a), Value::Int32(b)) => a == b,
        (Value::ObjectId(a), Value::ObjectId(b)) => a == b,
        _ => compare(a, b, collator) == Ordering::Equal,
    }
}

/// Returns true if both are [`identical`], or if both are absent.
pub fn identical_or_absent(a: Option<Value<'_>>, b: Option<Value<'_>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => identical(a, b),
        (None, None) => true,
        _ => false,
    }
}

/// Returns true if both have the same type and the same bytes in wire form.
pub fn identical(a: Value<'_>, b: Value<'_>) -> bool {
    match (a, b) {
        (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits(),
        (Value::String(a), Value::String(b))
        | (Value::Code(a), Value::Code(b))
        | (Value::Symbol(a), Value::Symbol(b)) => a == b,
        (Value::Document(a), Value::Document(b)) => a.as_bytes() == b.as_bytes(),
        (Value::Array(a), Value::Array(b)) => a.as_bytes() == b.as_bytes(),
        (Value::Binary(a), Value::Binary(b)) => a == b,
        (Value::ObjectId(a), Value::ObjectId(b)) => a == b,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Date(a), Value::Date(b)) | (Value::Int64(a), Value::Int64(b)) => a == b,
        (Value::Regex(a), Value::Regex(b)) => a == b,
        (Value::DbPointer(a), Value::DbPointer(b)) => a == b,
        (Value::CodeWithScope(a), Value::CodeWithScope(b)) => {
            a.code == b.code && a.scope.as_bytes() == b.scope.as_bytes()
        }
        (Value::Int32(a), Value::Int32(b)) => a == b,
        (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
        (Value::Decimal(a), Value::Decimal(b)) => a == b,
        (a, b) => a.kind() == b.kind(),
    }
}

/// Hashes a value. Values that are [`equal`] have the same hash.
pub fn hash(value: Value<'_>, collator: Option<&dyn Collator>, state: &mut impl Hasher) {
    value.kind().rank().hash(state);
    if let Some(number) = value.as_number() {
        return number.hash(state);
    }
    match value {
        Value::String(text) | Value::Symbol(text) => match collator {
            Some(collator) => {
                let mut key = Vec::new();
                collator.sort_key(text, &mut key);
                key.hash(state);
            }
            None => text.hash(state),
        },
        Value::Document(doc) => hash_document(doc, true, collator, state),
        Value::Array(array) => hash_document(array.as_doc(), false, collator, state),
        Value::Binary(binary) => (binary.subtype, binary.bytes).hash(state),
        Value::ObjectId(id) => id.hash(state),
        Value::Bool(flag) => flag.hash(state),
        Value::Date(millis) => millis.hash(state),
        Value::Timestamp(timestamp) => timestamp.hash(state),
        Value::Regex(regex) => (regex.pattern, regex.options).hash(state),
        Value::DbPointer(pointer) => (pointer.namespace, pointer.id).hash(state),
        Value::Code(code) => code.hash(state),
        Value::CodeWithScope(code) => {
            code.code.hash(state);
            hash_document(code.scope, true, None, state);
        }
        _ => {}
    }
}

fn hash_document(
    doc: Doc<'_>,
    names: bool,
    collator: Option<&dyn Collator>,
    state: &mut impl Hasher,
) {
    for element in doc.iter() {
        if names {
            element.key_bytes().hash(state);
        }
        hash(element.value(), collator, &mut *state);
    }
    state.write_u8(0);
}

/// Returns the hash of one value. It is the same in every process.
pub fn hash_of(value: Value<'_>, collator: Option<&dyn Collator>) -> u64 {
    let mut state = DefaultHasher::new();
    hash(value, collator, &mut state);
    state.finish()
}

/// A value as the key of a hash map or ordered map, with MongoDB's equality and order, without
/// collation.
#[derive(Clone, Debug)]
pub struct ValueKey(pub ValueBuf);

impl ValueKey {
    /// Returns a key with a copy of the value.
    pub fn new<'v>(value: impl Into<Value<'v>>) -> Self {
        ValueKey(ValueBuf::new(value))
    }

    /// Returns the value.
    pub fn as_value(&self) -> Value<'_> {
        self.0.as_value()
    }
}

impl PartialEq for ValueKey {
    fn eq(&self, other: &Self) -> bool {
        equal(self.as_value(), other.as_value(), None)
    }
}

impl Eq for ValueKey {}

impl PartialOrd for ValueKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ValueKey {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self.as_value(), other.as_value(), None)
    }
}

impl Hash for ValueKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash(self.as_value(), None, state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decimal128, array, doc};
    use std::collections::HashMap;

    #[test]
    fn types_in_order() {
        let (doc, array) = (doc! { "a": 1 }, array![1]);
        let rising = [
            Value::MinKey,
            Value::Undefined,
            Value::Null,
            Value::Double(f64::NAN),
            Value::Int32(1),
            Value::String(""),
            Value::Symbol("b"),
            Value::from(&doc),
            Value::from(&array),
            Value::Bool(false),
            Value::Bool(true),
            Value::Date(-1),
            Value::Date(1),
            Value::MaxKey,
        ];
        for (i, a) in rising.iter().enumerate() {
            for (j, b) in rising.iter().enumerate() {
                assert_eq!(compare(*a, *b, None), i.cmp(&j), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn documents_compare_type_then_name() {
        let less = |a: crate::DocBuf, b: crate::DocBuf| {
            assert_eq!(compare_documents(a.as_doc(), b.as_doc(), None), Ordering::Less);
            assert_eq!(compare_documents(b.as_doc(), a.as_doc(), None), Ordering::Greater);
        };
        less(doc! {}, doc! { "a": 1 });
        less(doc! { "b": 1 }, doc! { "a": "x" });
        less(doc! { "a": 2 }, doc! { "b": 1 });
        less(doc! { "a": 1 }, doc! { "a": 2 });
        less(doc! { "a": 1 }, doc! { "a": 1, "b": 1 });
    }

    #[test]
    fn equal_values_are_one_key() {
        let mut map = HashMap::new();
        let (one, nested) = (doc! { "a": { "b": 1 } }, doc! { "a": { "b": 1.0 } });
        map.insert(ValueKey::new(1), "int");
        map.insert(ValueKey::new(&one), "doc");
        assert_eq!(map.get(&ValueKey::new(1.0)), Some(&"int"));
        assert_eq!(map.get(&ValueKey::new(1i64)), Some(&"int"));
        assert_eq!(map.get(&ValueKey::new(Decimal128::ONE)), Some(&"int"));
        assert_eq!(map.get(&ValueKey::new(&nested)), Some(&"doc"));
        assert!(!identical(Value::Int32(1), Value::Double(1.0)));
        assert!(!identical(Value::Double(0.0), Value::Double(-0.0)));
        assert!(identical(Value::Double(f64::NAN), Value::Double(f64::NAN)));
    }
}
