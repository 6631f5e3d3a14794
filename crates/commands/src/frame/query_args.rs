//! The arguments that several commands share: hints, limits, variables, collation, batch sizes,
//! the identifiers of collections.

use crate::frame::args::{Arg, fields};
use quire_catalog::{Uuid, debug_value};
use quire_collections::{EmptyTimestamps, WritePolicy};
use quire_document::{Doc, DocBuf, Value, ValueBuf};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::collation::AskedCollation;
use quire_planner::Hint;

/// Returns a document argument; null means "not given".
pub fn owned(arg: &Arg<'_>) -> Result<DocBuf> {
    match arg.is_null() {
        true => Ok(DocBuf::new()),
        false => Ok(arg.document()?.to_owned()),
    }
}

/// Returns a boolean argument; null means false.
pub fn flag(arg: &Arg<'_>) -> Result<bool> {
    match arg.is_null() {
        true => Ok(false),
        false => arg.bool(),
    }
}

/// Returns a hint: an index by name or key, or `{$natural: 1}`.
pub fn hint(arg: &Arg<'_>) -> Result<Option<Hint>> {
    match arg.value() {
        Value::String(name) => Ok(Some(Hint::Name(name.to_owned()))),
        Value::Document(doc) if doc.is_empty() => Ok(None),
        Value::Document(doc) => match doc.get("$natural") {
            None => Ok(Some(Hint::Pattern(without_decimals(doc)))),
            Some(_) if doc.count() > 1 => {
                Err(Error::bad_value("$natural cannot be combined with other fields in a hint"))
            }
            Some(direction) => match direction.exact_i64() {
                Some(1) => Ok(Some(Hint::Natural(true))),
                Some(-1) => Ok(Some(Hint::Natural(false))),
                _ => Err(Error::bad_value("$natural hint must be either 1 or -1")),
            },
        },
        _ => Err(Error::failed_to_parse("Hint must be a string or an object")),
    }
}

/// Returns a key pattern without decimals: `1` of any numeric type is the same direction.
fn without_decimals(pattern: Doc<'_>) -> DocBuf {
    DocBuf::build(|writer| {
        for (name, direction) in pattern.fields() {
            match direction {
                Value::Decimal(number) => writer.append(name, number.to_f64()),
                other => writer.append(name, other),
            };
        }
    })
}

/// Reads `bypassDocumentValidation`. Null means false.
pub fn write_policy(arg: &Arg<'_>) -> Result<WritePolicy> {
    match !arg.is_null() && arg.safe_bool()? {
        true => Ok(WritePolicy::Bypassing),
        false => Ok(WritePolicy::Client),
    }
}

/// Reads `bypassEmptyTsReplacement`. Null means false.
pub fn empty_timestamps(arg: &Arg<'_>) -> Result<EmptyTimestamps> {
    match !arg.is_null() && arg.bool()? {
        true => Ok(EmptyTimestamps::Kept),
        false => Ok(EmptyTimestamps::Filled),
    }
}

/// Returns a collation; null and an empty document mean the collection's default.
pub fn collation(arg: &Arg<'_>) -> Result<AskedCollation> {
    match arg.is_null() {
        true => Ok(AskedCollation::Default),
        false => AskedCollation::parse(arg.document()?),
    }
}

/// Returns the limit of `count`: a negative one counts as its absolute value.
pub fn count_limit(arg: &Arg<'_>) -> Result<u64> {
    let value = arg.value();
    if !value.is_number() {
        return Err(Error::bad_value("limit value is not a valid number"));
    }
    match value.exact_i64() {
        None => Err(Error::failed_to_parse(format!(
            "Expected an integer: limit: {}",
            debug_value(value)
        ))),
        Some(i64::MIN) => Err(Error::bad_value("limit value is out of range")),
        Some(number) => Ok(number.unsigned_abs()),
    }
}

/// Returns a comment in the form that plans keep.
pub fn comment(value: Option<Value<'_>>) -> Option<ValueBuf> {
    value.map(ValueBuf::new)
}

/// Reads `cursor: {batchSize}`.
pub fn batch_size(owner: &'static str, cursor: Doc<'_>) -> Result<Option<u64>> {
    let mut batch = None;
    for arg in fields(owner, cursor) {
        match arg.name() {
            "batchSize" if !arg.is_null() => batch = Some(arg.integer_from(0)? as u64),
            "batchSize" => {}
            _ => return Err(arg.unknown()),
        }
    }
    Ok(batch)
}

/// Returns a collection's UUID.
pub fn uuid(arg: &Arg<'_>) -> Result<Uuid> {
    let bytes = match arg.value() {
        Value::Binary(binary) if binary.subtype == 4 => <[u8; 16]>::try_from(binary.bytes).ok(),
        _ => None,
    };
    bytes.map(Uuid).ok_or_else(|| {
        Error::new(
            ErrorCode::InvalidUUID,
            format!("'{}' must be a UUID (binary of subtype 4 with 16 bytes)", arg.name()),
        )
    })
}
