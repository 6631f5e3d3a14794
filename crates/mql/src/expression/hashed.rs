//! `$toHashedIndexKey`, and the hash in hashed indexes: the first eight bytes of an MD5 of the
//! value. Numbers are hashed as longs, so that their fraction does not matter.

use super::operator::{Arity, Call, Operator};
use crate::context::EvalContext;
use md5::{Digest, Md5};
use quire_document::{Doc, DocBuf, Element, Type, Value};
use quire_error::Result;

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] =
    &[Operator::function("$toHashedIndexKey", Arity::Exactly(1), to_hashed_index_key)
        .doc("The hash of the argument in a hashed index, a long.")
        .since("7.1")];

fn to_hashed_index_key<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    Ok(Some(Value::Int64(hashed_key(call.eval(0, cx)?))))
}

/// Returns the hash of a value as hashed indexes store it. A missing value is hashed as null.
pub fn hashed_key(value: Option<Value<'_>>) -> i64 {
    let holder = DocBuf::build(|writer| {
        writer.append("", value.unwrap_or(Value::Null));
    });
    let mut hasher = Md5::new();
    // The seed, which is always 0 in mongod.
    hasher.update(0i32.to_le_bytes());
    if let Some(element) = holder.as_doc().first() {
        add_element(&mut hasher, element, false);
    }
    let digest: [u8; 16] = hasher.finalize().into();
    let [a, b, c, d, e, f, g, h, ..] = digest;
    i64::from_le_bytes([a, b, c, d, e, f, g, h])
}

fn add_element(hasher: &mut Md5, element: Element<'_>, with_name: bool) {
    hasher.update(canonical_type(element.kind()).to_le_bytes());
    if with_name {
        hasher.update(element.key_bytes());
        hasher.update([0]);
    }
    match element.value() {
        Value::Document(doc) => add_fields(hasher, doc),
        Value::Array(array) => add_fields(hasher, array.as_doc()),
        Value::CodeWithScope(code) => {
            hasher.update(code.code.as_bytes());
            hasher.update([0]);
            add_fields(hasher, code.scope);
        }
        value => match value.as_number() {
            Some(number) => hasher.update(cut_to_long(number).to_le_bytes()),
            None => hasher.update(element.value_bytes()),
        },
    }
}

fn add_fields(hasher: &mut Md5, doc: Doc<'_>) {
    for element in doc.iter() {
        add_element(hasher, element, true);
    }
    // The element that ends a document: a type without name and value.
    hasher.update(0i32.to_le_bytes());
}

/// Truncates to a long. Returns 0 for NaN, and the nearest long for a number out of range.
fn cut_to_long(number: quire_document::number::Number) -> i64 {
    use quire_document::number::Number;
    match number {
        Number::Int(number) => number,
        Number::Double(number) => number as i64,
        Number::Decimal(decimal) if decimal.is_nan() => 0,
        Number::Decimal(decimal) => decimal
            .to_i64_truncated()
            .unwrap_or(if decimal.is_negative() { i64::MIN } else { i64::MAX }),
    }
}

/// Returns the number of the type in mongod's order, which is part of the hash.
fn canonical_type(kind: Type) -> i32 {
    match kind {
        Type::MinKey => -1,
        Type::MaxKey => 127,
        Type::Undefined => 0,
        Type::Null => 5,
        Type::Double | Type::Int32 | Type::Int64 | Type::Decimal => 10,
        Type::String | Type::Symbol => 15,
        Type::Document => 20,
        Type::Array => 25,
        Type::Binary => 30,
        Type::ObjectId => 35,
        Type::Bool => 40,
        Type::Date => 45,
        Type::Timestamp => 47,
        Type::Regex => 50,
        Type::DbPointer => 55,
        Type::Code => 60,
        Type::CodeWithScope => 65,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_types_hash_alike() {
        let one = hashed_key(Some(Value::Int32(1)));
        assert_eq!(one, hashed_key(Some(Value::Double(1.5))));
        assert_eq!(one, hashed_key(Some(Value::Int64(1))));
        assert_ne!(one, hashed_key(Some(Value::Int32(2))));
        // The result of convertShardKeyToHashed(1) in mongosh.
        assert_eq!(one, 5_902_408_780_260_971_510);
        assert_eq!(hashed_key(None), hashed_key(Some(Value::Null)));
    }
}
