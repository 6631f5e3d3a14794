//! A time-series collection: which other options and indexes it may have, and the indexes that it has
//! from the beginning.
//!
//! Its points are ordinary records. It has no `_id` index, because points may share an `_id`. In its
//! place stands an index on the time that users do not see: it gives the natural order, serves
//! conditions on the time and sorts by it, and finds the points that expire.

use std::sync::Arc;

use quire_document::{Doc, DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::Collation;
use quire_mql::time_series::TimeSeriesOptions;

use crate::IndexSpec;
use crate::clustered::truth;
use crate::key::Kind;
use crate::validator::Validation;

/// The name of the option.
pub(crate) const SERIES: &str = "timeseries";
/// The name of the index on the time, which no command takes.
const TIME_INDEX: &str = "_time_";
/// Names of collections that begin so are reserved for the buckets of time-series collections.
pub const BUCKETS: &str = "system.buckets.";

/// Parses `timeseries` of `create`; `None` if it is not given.
///
/// # Errors
/// Those of [`TimeSeriesOptions::parse`]; 72 InvalidOptions beside an option that a time-series
/// collection cannot have, and for a `metaField` that is `_id` or the `timeField`.
pub(crate) fn parse(fields: Doc<'_>) -> Result<Option<TimeSeriesOptions>> {
    let spec = match fields.get(SERIES) {
        None | Some(Value::Null | Value::Undefined) => return Ok(None),
        Some(Value::Document(spec)) => spec,
        Some(other) => {
            let found = other.type_name();
            return Err(Error::type_mismatch(format!(
                "BSON field 'create.{SERIES}' is the wrong type '{found}', expected type 'object'"
            )));
        }
    };
    let options = TimeSeriesOptions::parse("create.timeseries", spec)?;
    check_beside(fields)?;
    let invalid = |text: &str| Err(Error::new(ErrorCode::InvalidOptions, text));
    match options.meta_field.as_deref() {
        Some("_id") => invalid("'metaField' cannot be \"_id\""),
        Some(meta) if meta == options.time_field => {
            invalid("'metaField' cannot be the same as 'timeField'")
        }
        _ => Ok(Some(options)),
    }
}

/// Refuses the options of other kinds of collections.
fn check_beside(fields: Doc<'_>) -> Result<()> {
    let others = ["idIndex", "clusteredIndex", "changeStreamPreAndPostImages", "patterns", "max"];
    let is_other = |name: &str| others.contains(&name) || Validation::is_option(name);
    let given = fields.fields().filter(|(_, value)| !value.is_nullish());
    let mut given = given.filter(|(name, value)| match *name {
        "capped" | "autoIndexId" => truth(*value) == Some(true),
        name => is_other(name),
    });
    match given.next() {
        None => Ok(()),
        Some((name, _)) => {
            let text = format!("'{SERIES}' is not allowed with '{name}'");
            Err(Error::new(ErrorCode::InvalidOptions, text))
        }
    }
}

/// Returns true if an index can have this field as its path.
fn is_indexable(field: &str) -> bool {
    !field.is_empty() && !field.starts_with('$')
}

/// Returns the hidden index on the time; `None` if the field has a name that no index takes.
pub(crate) fn time_index(
    series: &TimeSeriesOptions,
    collation: Option<&Arc<Collation>>,
) -> Option<IndexSpec> {
    let time = series.time_field.as_str();
    let key = is_indexable(time).then(|| ascending(&[time]))?;
    let name = TIME_INDEX.to_owned();
    Some(IndexSpec { clustered: true, ..ordinary(key, name, collation) })
}

/// Returns the index on meta and time that a new collection gets; `None` without a `metaField`, and
/// if no index can have these fields.
pub(crate) fn default_index(
    series: &TimeSeriesOptions,
    collation: Option<&Arc<Collation>>,
) -> Option<IndexSpec> {
    let (meta, time) = (series.meta_field.as_deref()?, series.time_field.as_str());
    if meta == time || !is_indexable(meta) || !is_indexable(time) {
        return None;
    }
    Some(ordinary(ascending(&[meta, time]), format!("{meta}_1_{time}_1"), collation))
}

fn ascending(fields: &[&str]) -> DocBuf {
    DocBuf::build(|key| {
        for field in fields {
            key.append(field, 1);
        }
    })
}

fn ordinary(key: DocBuf, name: String, collation: Option<&Arc<Collation>>) -> IndexSpec {
    IndexSpec { key, name, version: 2, collation: collation.cloned(), ..IndexSpec::default() }
}

/// Refuses an expiry that no index on the time could find.
///
/// # Errors
/// 72 InvalidOptions.
pub(crate) fn check_expiry(series: &TimeSeriesOptions) -> Result<()> {
    if is_indexable(&series.time_field) {
        return Ok(());
    }
    let field = &series.time_field;
    let text = format!(
        "'expireAfterSeconds' needs an index on the time, and no index can have the field '{field}'"
    );
    Err(Error::new(ErrorCode::InvalidOptions, text))
}

/// Refuses an index that a time-series collection cannot have.
///
/// # Errors
/// 72 InvalidOptions for a unique or text index, for a sparse index on other fields than meta, and
/// for a TTL index that is not on the time, or not partial by meta; 85 IndexOptionsConflict for a
/// partial index with a collation; 67 CannotCreateIndex for the other kinds,
/// of which 2d indexes may be on meta, and for one on `_id` alone; 7246201 for a wildcard index.
pub fn check_index(series: &TimeSeriesOptions, spec: &IndexSpec) -> Result<()> {
    let invalid = |what: &str| {
        let text = format!("{what} on time-series collections");
        Err(Error::new(ErrorCode::InvalidOptions, text))
    };
    let refused = |what: &str| {
        let text = format!("{what} on time-series collections");
        Err(Error::new(ErrorCode::CannotCreateIndex, text))
    };
    let is_of_meta = spec.key.as_doc().fields().all(|(path, _)| series.is_meta(path));
    let kind = Kind::of(spec.key.as_doc()).map_or("", |kind| kind.name);
    let is_wildcard = |(path, _): (&str, _)| path == "$**" || path.ends_with(".$**");
    if !is_of_meta && spec.key.as_doc().fields().any(is_wildcard) {
        let text = "Wildcard indexes are not supported on time-series collections";
        return Err(Error::location(7_246_201, text));
    }
    match kind {
        "text" => return invalid("Text indexes are not supported"),
        "hashed" => return refused("Hashed indexes are not supported"),
        "2d" if !is_of_meta => return refused("2d indexes are supported only on the metaField"),
        _ => {}
    }
    if spec.unique || spec.prepare_unique {
        return invalid("Unique indexes are not supported");
    }
    if spec.sparse == Some(true) && !is_of_meta {
        return invalid("Sparse indexes are supported only on the metaField");
    }
    if spec.is_id() {
        return refused("An index on '_id' alone is not supported");
    }
    let filter = spec.partial_filter.as_ref();
    if filter.is_some() && spec.collation.is_some() {
        let text = "A partial index on a time-series collection cannot have a collation";
        return Err(Error::new(ErrorCode::IndexOptionsConflict, text));
    }
    let is_of_time = spec.key.as_doc().fields().all(|(path, _)| path == series.time_field);
    let is_partial = filter.is_some_and(|filter| is_on_meta(series, filter.as_doc()));
    if spec.expire_after_seconds.is_some() && !(is_of_time && is_partial) {
        return invalid(
            "TTL indexes must be on the timeField and have a 'partialFilterExpression' on the metaField",
        );
    }
    Ok(())
}

/// Returns true if a filter names only the meta field and paths within it.
pub fn is_on_meta(series: &TimeSeriesOptions, filter: Doc<'_>) -> bool {
    filter.fields().all(|(name, value)| match (name, value) {
        ("$and" | "$or" | "$nor", Value::Array(parts)) => parts
            .iter()
            .all(|part| matches!(part, Value::Document(part) if is_on_meta(series, part))),
        ("$comment", _) => true,
        (path, _) => series.is_meta(path),
    })
}

/// Returns `options` as a document whose field [`SERIES`] is `series`, at the end.
pub(crate) fn with_series(options: Doc<'_>, series: &TimeSeriesOptions) -> DocBuf {
    let mut document = DocBuf::build(|writer| {
        for (name, value) in options.fields().filter(|(name, _)| *name != SERIES) {
            writer.append(name, value);
        }
    });
    document.append(SERIES, &series.document());
    document
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use quire_document::doc;

    use super::*;

    fn series() -> TimeSeriesOptions {
        parse(doc! { "timeseries": { "timeField": "t", "metaField": "m" } }.as_doc())
            .unwrap()
            .unwrap()
    }

    #[test]
    fn what_a_time_series_cannot_be_beside() {
        for other in [
            doc! { "capped": true },
            doc! { "validator": {} },
            doc! { "changeStreamPreAndPostImages": { "enabled": false } },
            doc! { "idIndex": {} },
        ] {
            let mut fields = doc! { "timeseries": { "timeField": "t" } };
            fields.extend(|writer| {
                writer.append_all(other.as_doc());
            });
            let refused = parse(fields.as_doc()).unwrap_err();
            assert_eq!(refused.code(), ErrorCode::InvalidOptions, "{other:?}");
        }
        for meta in ["t", "_id"] {
            let fields = doc! { "timeseries": { "timeField": "t", "metaField": meta } };
            assert_eq!(parse(fields.as_doc()).unwrap_err().code(), ErrorCode::InvalidOptions);
        }
    }

    #[test]
    fn indexes_that_points_can_have() {
        let code = |spec: DocBuf| {
            let parsed = IndexSpec::parse(spec.as_doc(), false).unwrap();
            check_index(&series(), &parsed).err().map(|error| error.code().number())
        };
        for (spec, expected) in [
            (doc! { "name": "i", "key": { "v": 1, "t": -1 } }, None),
            (doc! { "name": "i", "key": { "m.a": 1 }, "sparse": true }, None),
            (doc! { "name": "i", "key": { "m": "2d" } }, None),
            (doc! { "name": "i", "key": { "v": "2dsphere" } }, None),
            (doc! { "name": "i", "key": { "v": 1 }, "sparse": true }, Some(72)),
            (doc! { "name": "i", "key": { "v": 1 }, "unique": true }, Some(72)),
            (doc! { "name": "i", "key": { "v": "hashed" } }, Some(67)),
            (doc! { "name": "i", "key": { "v": "2d" } }, Some(67)),
            (doc! { "name": "i", "key": { "$**": 1 } }, Some(7_246_201)),
            (doc! { "name": "i", "key": { "t": 1 }, "expireAfterSeconds": 1 }, Some(72)),
            (
                doc! {
                    "name": "i", "key": { "t": 1 }, "expireAfterSeconds": 1,
                    "partialFilterExpression": { "m.old": true },
                },
                None,
            ),
            (
                doc! {
                    "name": "i", "key": { "t": 1 }, "expireAfterSeconds": 1,
                    "partialFilterExpression": { "v": 1 },
                },
                Some(72),
            ),
            (
                doc! {
                    "name": "i", "key": { "v": 1 }, "collation": { "locale": "en" },
                    "partialFilterExpression": { "m": 1 },
                },
                Some(85),
            ),
        ] {
            assert_eq!(code(spec.clone()), expected, "{spec:?}");
        }
    }

    #[test]
    fn the_time_index_is_no_id_index_even_on_the_id() {
        let series =
            |fields: DocBuf| TimeSeriesOptions::parse("timeseries", fields.as_doc()).unwrap();
        let by_id = series(doc! { "timeField": "_id" });
        assert!(!time_index(&by_id, None).unwrap().is_id());
        assert!(default_index(&by_id, None).is_none());
        let odd = series(doc! { "timeField": "$a", "metaField": "m" });
        assert!(time_index(&odd, None).is_none() && default_index(&odd, None).is_none());
    }
}
