//! 11000 DuplicateKey, with mongod's text and details.

use quire_catalog::{Collection, Index, debug_doc};
use quire_document::{Doc, DocBuf, DocWriter, Value, doc};
use quire_error::{Error, ErrorCode};

/// The error for a key that another document has. `values` are those of the refused document.
pub fn duplicate_key_error(
    collection: &Collection,
    index: &Index,
    values: &[Option<Value<'_>>],
) -> Error {
    let key_value = DocBuf::build(|writer: &mut DocWriter<'_>| {
        for (field, value) in index.keys.fields().iter().zip(values) {
            writer.append(&field.path, value.unwrap_or(Value::Null));
        }
    });
    from_parts(collection.namespace.as_str(), &index.name, index.key(), key_value.as_doc())
}

fn from_parts(namespace: &str, index: &str, pattern: Doc<'_>, value: Doc<'_>) -> Error {
    let message = format!(
        "E11000 duplicate key error collection: {namespace} index: {index} dup key: {}",
        debug_doc(value)
    );
    let details = doc! { "keyPattern": pattern, "keyValue": value };
    Error::new(ErrorCode::DuplicateKey, message).with_details(details.into_bytes())
}
