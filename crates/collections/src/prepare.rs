//! Prepares and checks a document before it is stored.

use quire_document::{Doc, DocWriter, Element, Timestamp, Type, Value, limits};
use quire_error::{Error, ErrorCode, Result};

use crate::Store;

/// What happens to the fields `Timestamp(0, 0)` of a document, except its `_id` and those of nested
/// documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmptyTimestamps {
    /// The current time takes their place.
    #[default]
    Filled,
    /// They stay (`bypassEmptyTsReplacement`).
    Kept,
}

/// Returns a document in the form in which an insert stores it: `_id` first, generated if it is
/// missing, and empty timestamps filled in. Errors: 53 InvalidIdField, 52 DollarPrefixedFieldName,
/// 10334 BSONObjectTooLarge, 15 Overflow. The document is copied into `buffer` only if something
/// changes.
pub fn prepare_insert<'d>(store: &Store, doc: Doc<'d>, buffer: &'d mut Vec<u8>) -> Result<Doc<'d>> {
    prepare_insert_with(store, doc, EmptyTimestamps::Filled, buffer)
}

/// As [`prepare_insert`], with the choice of what happens to empty timestamps.
pub fn prepare_insert_with<'d>(
    store: &Store,
    doc: Doc<'d>,
    timestamps: EmptyTimestamps,
    buffer: &'d mut Vec<u8>,
) -> Result<Doc<'d>> {
    if doc.len() > limits::USER_DOCUMENT_BYTES_MAX {
        return Err(Error::new(
            ErrorCode::BSONObjectTooLarge,
            format!(
                "object to insert too large. size in bytes: {}, max size: {}",
                doc.len(),
                limits::USER_DOCUMENT_BYTES_MAX
            ),
        ));
    }
    check_depth(doc)?;
    let first_is_id = doc.first().is_some_and(|element| element.key_bytes() == b"_id");
    let (ids, has_timestamps) = doc.tally("_id", Type::Timestamp);
    for id in doc.iter().filter(|element| element.key_bytes() == b"_id").take(ids) {
        check_id(&id)?;
    }
    if ids > 1 {
        return Err(Error::bad_value("can't have multiple _id fields in one document"));
    }
    let is_stamped =
        |element: Element<'_>| element.key_bytes() != b"_id" && is_empty_timestamp(&element);
    let fills =
        has_timestamps && timestamps == EmptyTimestamps::Filled && doc.iter().any(is_stamped);
    if first_is_id && !fills {
        return Ok(doc);
    }
    buffer.clear();
    let mut writer = DocWriter::new(buffer);
    match doc.find("_id") {
        Some(id) => writer.append_element(id),
        None => writer.append("_id", store.new_object_id()),
    };
    for element in doc.iter().filter(|element| element.key_bytes() != b"_id") {
        match fills && is_empty_timestamp(&element) {
            true => writer.append(element.key(), store.new_stamp()),
            false => writer.append_element(element),
        };
    }
    writer.finish();
    let doc = Doc::from_valid_bytes(buffer);
    check_size(doc, "object to insert too large")?;
    Ok(doc)
}

/// Returns true if the value is a timestamp that an insert replaces by the current time. Most
/// values are not timestamps and are not read.
fn is_empty_timestamp(element: &Element<'_>) -> bool {
    const EMPTY: Timestamp = Timestamp { seconds: 0, increment: 0 };
    element.kind() == Type::Timestamp
        && matches!(element.value(), Value::Timestamp(stamp) if stamp == EMPTY)
}

/// Refuses a value that cannot be an `_id`.
fn check_id(id: &Element<'_>) -> Result<()> {
    match id.kind() {
        Type::Array | Type::Regex | Type::Undefined => Err(Error::new(
            ErrorCode::InvalidIdField,
            format!("The '_id' value cannot be of type {}", id.value().type_name()),
        )),
        Type::Document => check_id_fields(id.value()),
        _ => Ok(()),
    }
}

/// Returns true for the reference to another document, `{$ref, $id}`, which may be an `_id`.
fn is_reference(doc: Doc<'_>) -> bool {
    let mut names = doc.fields().map(|(name, _)| name);
    let begins = names.next() == Some("$ref") && names.next() == Some("$id");
    begins && names.all(|name| name == "$db" || !name.starts_with('$'))
}

fn check_id_fields(value: Value<'_>) -> Result<()> {
    match value {
        Value::Document(doc) => doc.fields().try_for_each(|(name, value)| {
            if name.starts_with('$') && !is_reference(doc) {
                return Err(Error::new(
                    ErrorCode::DollarPrefixedFieldName,
                    format!(
                        "_id fields may not contain '$'-prefixed fields: {name} is not valid for storage."
                    ),
                ));
            }
            check_id_fields(value)
        }),
        Value::Array(array) => array.iter().try_for_each(check_id_fields),
        _ => Ok(()),
    }
}

/// Fails with 15 Overflow if documents and arrays nest deeper than a stored document may.
fn check_depth(doc: Doc<'_>) -> Result<()> {
    if doc.nests_within(limits::STORED_DEPTH_MAX) {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::Overflow,
        format!(
            "cannot insert document because it exceeds {} levels of nesting",
            limits::STORED_DEPTH_MAX
        ),
    ))
}

/// Fails with 10334 BSONObjectTooLarge above 16 MiB.
pub(crate) fn check_size(doc: Doc<'_>, what: &str) -> Result<()> {
    if doc.len() > limits::USER_DOCUMENT_BYTES_MAX {
        return Err(Error::new(ErrorCode::BSONObjectTooLarge, what));
    }
    Ok(())
}
