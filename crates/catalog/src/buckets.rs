//! `system.buckets.X`, the buckets of the time-series collection `X`, as MongoDB lists them: a collection with options of its
//! own and a validator that every bucket satisfies. Quire stores no such collection: buckets are made of points, and points of
//! buckets.

use std::sync::Arc;

use quire_document::{ArrayBuf, Doc, DocBuf, Value, doc};
use quire_error::{Error, Result};
use quire_mql::time_series::TimeSeriesOptions;

use crate::time_series::{BUCKETS, SERIES};
use crate::{Catalog, Collection, Namespace, Validation, ValidationOptions};

/// Returns the time-series collection whose buckets a namespace names; `None` if it names another collection.
pub fn series_of_buckets(buckets: &Namespace) -> Option<Namespace> {
    let name = buckets.collection().strip_prefix(BUCKETS)?;
    Namespace::new(buckets.db(), name).ok()
}

impl Catalog {
    /// Returns the time-series collection whose buckets a namespace names, if it exists.
    pub fn series_of(&self, buckets: &Namespace) -> Option<&Arc<Collection>> {
        let name = buckets.collection().strip_prefix(BUCKETS)?;
        let found = self.collection(buckets.db(), name)?;
        found.is_time_series().then_some(found)
    }

    /// Returns the name under which a command for a whole collection finds it: the buckets of a time-series collection are
    /// that collection.
    pub fn stored_name(&self, namespace: Namespace) -> Namespace {
        match self.series_of(&namespace) {
            Some(series) => series.namespace.clone(),
            None => namespace,
        }
    }

    /// Fails with 115 CommandNotSupported for the buckets of a time-series collection.
    pub(crate) fn refuse_buckets(&self, namespace: &Namespace) -> Result<()> {
        match self.series_of(namespace) {
            Some(_) => Err(Error::not_built("changing buckets of a time-series collection")),
            None => Ok(()),
        }
    }
}

/// Returns the name of the buckets of a time-series collection, without its database.
pub fn name_of_buckets(series: &Collection) -> String {
    format!("{BUCKETS}{}", series.namespace.collection())
}

/// Returns the options of the buckets of a time-series collection, as `listCollections` shows them.
pub fn options_of_buckets(series: &Collection) -> DocBuf {
    let own = series.options.document();
    let (collation, rest): (Vec<_>, Vec<_>) =
        own.fields().partition(|(name, _)| *name == "collation");
    DocBuf::build(|options| {
        options.append("validator", &schema(series));
        for (name, value) in collation {
            options.append(name, value);
        }
        options.append("clusteredIndex", true);
        let (last, others): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|(name, _)| *name == SERIES);
        for (name, value) in others.into_iter().chain(last) {
            options.append(name, value);
        }
    })
}

/// Returns the validation of buckets that are written.
///
/// # Errors
/// Those of compiling the validator.
pub fn validation_of_buckets(series: &Collection) -> Result<Validation> {
    let validator = Some(schema(series));
    Validation::compile(ValidationOptions { validator, ..ValidationOptions::default() }, None)
}

/// The options with which MongoDB creates the buckets of a time-series collection, besides those of that collection.
pub const OPTIONS_OF_BUCKETS: &[&str] = &["validator", "clusteredIndex"];

/// Returns true if the options of a `create` are those with which MongoDB creates the buckets of a time-series collection: its
/// oplog has such a `create`.
pub fn are_options_of_buckets(options: Doc<'_>) -> bool {
    let series = options.get(SERIES).and_then(|series| series.as_document());
    let Some(Value::String(time_field)) = series.and_then(|series| series.get("timeField")) else {
        return false;
    };
    let is_own = |validator: Value<'_>| {
        let schemas = [Form::Packed, Form::Plain].map(|form| schema_of(time_field, form));
        let validator = validator.as_document();
        validator
            .is_some_and(|own| schemas.iter().any(|schema| schema.as_bytes() == own.as_bytes()))
    };
    options.get("validator").is_none_or(is_own)
        && options.get("clusteredIndex").is_none_or(|given| given.as_bool() == Some(true))
}

/// The buckets that a schema is about.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// Those of every version, as MongoDB has it since it compresses buckets.
    Packed,
    /// Those of version 1.
    Plain,
}

/// Returns the schema of a bucket. MongoDB: the validator of `system.buckets.X`.
fn schema(series: &Collection) -> DocBuf {
    let time_field = series.options.time_series().map_or("", |series| &series.time_field);
    schema_of(time_field, Form::Packed)
}

fn schema_of(time_field: &str, form: Form) -> DocBuf {
    let bounds = {
        let of_time = DocBuf::build(|times| {
            times.document(time_field).append("bsonType", "date");
        });
        let required: ArrayBuf = [time_field].into_iter().collect();
        doc! { "bsonType": "object", "required": required.as_array(), "properties": &of_time }
    };
    let mut fields = doc! {
        "version": { "bsonType": "number" }, "min": &bounds, "max": &bounds,
        "closed": { "bsonType": "bool" },
    };
    if form == Form::Packed {
        fields.append("count", &doc! { "bsonType": "number", "minimum": 1 });
    }
    let mut control = doc! {
        "bsonType": "object", "required": ["version", "min", "max"], "properties": &fields,
    };
    if form == Form::Packed {
        control.append("additionalProperties", false);
    }
    doc! {
        "$jsonSchema": {
            "bsonType": "object", "required": ["_id", "control", "data"],
            "properties": {
                "_id": { "bsonType": "objectId" }, "control": &control,
                "data": { "bsonType": "object" }, "meta": Doc::empty(),
            },
            "additionalProperties": false,
        },
    }
}

/// Returns the key of an index as the buckets of the time-series collection have it: a field has its smallest and its largest
/// value in a bucket.
pub fn key_of_buckets(series: &TimeSeriesOptions, key: Doc<'_>) -> DocBuf {
    DocBuf::build(|shown| {
        for element in key.iter() {
            let path = element.key();
            match series.meta_field.as_deref().and_then(|meta| path.strip_prefix(meta)) {
                Some(rest) if rest.is_empty() || rest.starts_with('.') => {
                    shown.append_renamed(&format!("meta{rest}"), element);
                }
                _ if element.value().as_str() == Some("2dsphere") => {
                    shown.append(&format!("data.{path}"), "2dsphere_bucket");
                }
                _ => {
                    let is_descending = element.value().exact_i64().is_some_and(|way| way < 0);
                    let bounds = if is_descending { ["max", "min"] } else { ["min", "max"] };
                    for bound in bounds {
                        shown.append_renamed(&format!("control.{bound}.{path}"), element);
                    }
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use quire_document::literal::print;

    use super::*;

    #[test]
    fn options_of_buckets_are_recognised() {
        let options = |form, clustered: bool| {
            doc! {
                "validator": &schema_of("t", form), "clusteredIndex": clustered,
                "timeseries": { "timeField": "t" },
            }
        };
        assert!(are_options_of_buckets(options(Form::Packed, true).as_doc()));
        assert!(are_options_of_buckets(options(Form::Plain, true).as_doc()));
        assert!(!are_options_of_buckets(options(Form::Plain, false).as_doc()));
        let other = doc! { "validator": { "a": 1 }, "timeseries": { "timeField": "t" } };
        assert!(!are_options_of_buckets(other.as_doc()));
        assert!(!are_options_of_buckets(doc! { "capped": true }.as_doc()));
    }

    #[test]
    fn keys_of_indexes_name_the_bounds_of_a_bucket() {
        let options = doc! { "timeField": "t", "metaField": "m" };
        let series = TimeSeriesOptions::parse("timeseries", options.as_doc()).unwrap();
        let key = doc! { "m": 1, "m.a": -1, "t": 1, "v": -1, "at": "2dsphere", "mm": 1 };
        let expected = doc! {
            "meta": 1, "meta.a": -1, "control.min.t": 1, "control.max.t": 1,
            "control.max.v": -1, "control.min.v": -1, "data.at": "2dsphere_bucket",
            "control.min.mm": 1, "control.max.mm": 1,
        };
        let shown = key_of_buckets(&series, key.as_doc());
        assert_eq!(print(shown.as_doc()), print(expected.as_doc()));
    }
}
