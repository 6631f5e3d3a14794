//! Entries of MongoDB's oplog about buckets of a time-series collection, as a dump with an oplog has them. A bucket that was
//! restored is known by its `_id`; an entry that adds points to it inserts those. An entry may come again: what it adds must
//! not come twice.

use crate::write::oplog_entry::Change;
use quire_catalog::{Collection, Validation};
use quire_collections::{Attempt, MongoBucket, RestoredBucket, Writer};
use quire_document::{Doc, DocBuf, ObjectId, Value, ValueBuf};
use quire_error::{Error, ErrorCode, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Applies an entry to the time-series collection whose buckets it changes.
///
/// # Errors
/// Those of unpacking a bucket and of inserting its points; 115 CommandNotSupported for a change of points that are there, and
/// of a compressed bucket; 8 UnknownError for a bucket that was not restored.
pub fn apply(
    writer: &mut Writer,
    series: &Arc<Collection>,
    validation: &Validation,
    change: Change<'_>,
) -> Attempt<()> {
    let id = match change {
        Change::Insert(bucket) => {
            let unpacked = unpack(writer, series, validation, bucket)?;
            writer.restore_bucket(series, &unpacked)?;
            return Ok(());
        }
        Change::Update(_, bucket, true) if !bucket.contains("diff") => {
            let unpacked = unpack(writer, series, validation, bucket)?;
            if writer.restore_bucket(series, &unpacked)? {
                return Ok(());
            }
            unpacked.id
        }
        Change::Update(id, ..) | Change::Delete(id) => id_of(id)?,
    };
    let known = writer.restored_bucket(series, id)?;
    match (change, known) {
        (Change::Insert(_), _) | (Change::Delete(_), None) => Ok(()),
        (Change::Delete(_), Some(_)) => Err(not_built("a bucket that is deleted").into()),
        (Change::Update(..), None) => {
            let text = "Failed to apply operation: no bucket has the _id of its field o2";
            Err(Error::new(ErrorCode::UnknownError, text).into())
        }
        (Change::Update(_, object, _), Some(bucket)) => {
            update(writer, (series, validation), (id, bucket), object)
        }
    }
}

fn id_of(id: Value<'_>) -> Result<ObjectId> {
    match id {
        Value::ObjectId(id) => Ok(id),
        _ => Err(Error::bad_value("the _id of a bucket is an ObjectId")),
    }
}

fn not_built(what: &str) -> Error {
    Error::not_built(&format!("applyOps of {what}"))
}

fn unpack<'b>(
    writer: &Writer,
    series: &Collection,
    validation: &Validation,
    bucket: Doc<'b>,
) -> Result<MongoBucket<'b>> {
    MongoBucket::unpack(writer.store(), series, validation, bucket)
}

/// Inserts the points that an update adds to a bucket.
fn update(
    writer: &mut Writer,
    (series, validation): (&Arc<Collection>, &Validation),
    (id, bucket): (ObjectId, RestoredBucket),
    object: Doc<'_>,
) -> Attempt<()> {
    if let Some(Value::Document(diff)) = object.get("diff") {
        let points = added(diff, series, &bucket)?;
        return writer.extend_bucket(series, (id, bucket), points.iter().map(DocBuf::as_doc));
    }
    let whole = unpack(writer, series, validation, object)?;
    let version = object.get("control").and_then(|control| control.as_document()?.get("version"));
    let known = bucket.points as usize;
    // A bucket is replaced by a compressed one when it is closed. The order of its points changes, too.
    match version.and_then(|version| version.exact_i64()) {
        _ if whole.points.len() <= known => Ok(()),
        Some(1) => writer.extend_bucket(series, (id, bucket), whole.points.iter().skip(known)),
        _ => Err(not_built("a compressed bucket with further points").into()),
    }
}

/// Returns the points that differences add to a bucket, without those that it has.
///
/// # Errors
/// 115 CommandNotSupported for differences that do anything else.
fn added(diff: Doc<'_>, series: &Collection, bucket: &RestoredBucket) -> Result<Vec<DocBuf>> {
    let mut added = Added::default();
    for (name, section) in diff.fields() {
        match (name, section) {
            // The bounds of the bucket follow from its points.
            ("scontrol", _) => {}
            ("sdata", Value::Document(data)) => {
                data.fields().try_for_each(|(name, section)| added.read(name, section))?;
            }
            _ => return Err(other_change()),
        }
    }
    let mut points = added.points;
    points.retain(|number, _| *number >= bucket.points);
    if points.keys().zip(bucket.points..).any(|(number, expected)| *number != expected) {
        return Err(Error::bad_value("an entry of the oplog leaves out points of a bucket"));
    }
    let meta_field = series.options.time_series().and_then(|options| options.meta_field.as_deref());
    let meta = meta_field.zip(bucket.meta.as_ref().map(ValueBuf::as_value));
    let point = |fields: Vec<(&str, Value<'_>)>| {
        DocBuf::build(|point| {
            for (field, value) in meta.into_iter().chain(fields) {
                point.append(field, value);
            }
        })
    };
    Ok(points.into_values().map(point).collect())
}

/// The fields of points that differences add, by the numbers of the points.
#[derive(Default)]
struct Added<'d> {
    points: BTreeMap<u64, Vec<(&'d str, Value<'d>)>>,
}

impl<'d> Added<'d> {
    /// Reads a section of the differences of `data`: `s` and the name of a field, or `i` for new fields.
    fn read(&mut self, name: &'d str, section: Value<'d>) -> Result<()> {
        let Value::Document(section) = section else { return Err(other_change()) };
        match (name, name.strip_prefix('s')) {
            ("i", _) => section.fields().try_for_each(|(field, values)| self.add(field, values)),
            (_, Some(field)) => section.fields().try_for_each(|(name, values)| match name {
                "i" => self.add(field, values),
                _ => Err(other_change()),
            }),
            _ => Err(other_change()),
        }
    }

    /// Adds the values of a field.
    fn add(&mut self, field: &'d str, values: Value<'d>) -> Result<()> {
        let Value::Document(values) = values else { return Err(other_change()) };
        for (number, value) in values.fields() {
            let number = number.parse().map_err(|_| other_change())?;
            self.points.entry(number).or_default().push((field, value));
        }
        Ok(())
    }
}

fn other_change() -> Error {
    not_built("a change of points in a bucket, or of a compressed bucket")
}
