//! The error 11000 DuplicateKey with mongod's text and details.

use quire_catalog::{Collection, Index, debug_doc};
use quire_document::{DocBuf, DocWriter, Value, doc};
use quire_error::{Error, ErrorCode};

/// Returns the error for a key that another document has. `values` are those of the refused
/// document. Under a collation their strings are shown as their sort keys in hexadecimal digits, as
/// mongod does.
pub fn duplicate_key_error(
    collection: &Collection,
    index: &Index,
    values: &[Option<Value<'_>>],
) -> Error {
    if let (true, Some(Some(id))) = (index.is_clustered(), values.first())
        && let Some(error) = clustered_duplicate(*id)
    {
        return error;
    }
    let key_value = DocBuf::build(|writer: &mut DocWriter<'_>| {
        for (field, value) in index.keys.fields().iter().zip(values) {
            let value = value.unwrap_or(Value::Null);
            match index.keys.collation() {
                Some(collation) => writer.append(&field.path, &collation.hex_value(value)),
                None => writer.append(&field.path, value),
            };
        }
    });
    let collation = match index.keys.collation() {
        Some(collation) => {
            format!(" collation: {}", debug_doc(collation.to_document().as_doc()))
        }
        None => String::new(),
    };
    let message = format!(
        "E11000 duplicate key error collection: {} index: {}{collation} dup key: {}",
        collection.namespace,
        index.name,
        debug_doc(key_value.as_doc())
    );
    let details = doc! { "keyPattern": index.key(), "keyValue": &key_value };
    Error::new(ErrorCode::DuplicateKey, message).with_details(details.into_bytes())
}

/// Returns the error of a clustered collection for an `_id` that is NaN or infinite. MongoDB fails
/// when it puts such an `_id` into the message, with these codes.
fn clustered_duplicate(id: Value<'_>) -> Option<Error> {
    let (nan, infinite) = match id {
        Value::Double(number) => (number.is_nan(), number.is_infinite()),
        Value::Decimal(number) => (number.is_nan(), number.is_infinite()),
        _ => return None,
    };
    match (nan, infinite) {
        (true, _) => Some(Error::location(50819, "duplicate _id: the value is NaN")),
        (_, true) => Some(Error::location(50826, "duplicate _id: the value is infinite")),
        _ => None,
    }
}
