//! The options with which a collection is created. An option that is not built is refused by name,
//! never stored and ignored.

use quire_document::{Doc, DocBuf, DocWriter, Value, doc};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::Collation;
use quire_mql::time_series::{TimeSeriesChange, TimeSeriesOptions};
use std::sync::Arc;

use crate::capped::Capped;
use crate::storage_engine::check_storage_engine;
use crate::time_series::SERIES;
use crate::validator::{Validation, ValidationOptions};
use crate::{IndexSpec, clustered, time_series};

/// The options of a collection.
#[derive(Debug, Clone, Default)]
pub struct CollectionOptions {
    /// The options as `listCollections` shows them, normalised.
    document: DocBuf,
    /// The version of the `_id` index if `idIndex` gives one. The index keeps it.
    id_index_version: Option<i32>,
    /// The default collation of operations and indexes.
    collation: Option<Arc<Collation>>,
    /// The validator with its level and action.
    validation: Validation,
    /// The bounds of a capped collection.
    capped: Option<Capped>,
    /// The options of a time-series collection.
    time_series: Option<Arc<TimeSeriesOptions>>,
}

/// An option that no client can give.
const TEMPORARY: &str = "temp";
const CLUSTERED: &str = "clusteredIndex";
const EXPIRE: &str = "expireAfterSeconds";
const IMAGES: &str = "changeStreamPreAndPostImages";

/// The options of `create` that are not built, with their description in the error.
const NOT_BUILT: &[(&str, &str)] = &[
    ("encryptedFields", "an encrypted collection (create.encryptedFields)"),
    ("recordPreImages", "create.recordPreImages"),
];

impl CollectionOptions {
    /// Parses the options of `create`. `fields` are those of the command, without the command's
    /// name and without generic arguments (comment, writeConcern, ...). `now_ms` is the upper bound
    /// of `expireAfterSeconds`.
    pub fn parse(fields: Doc<'_>, now_ms: i64) -> Result<Self> {
        let (mut document, mut id_index, mut default) = (Vec::new(), None, None);
        let mut validation = ValidationOptions::default();
        let series = time_series::parse(fields)?;
        let mut writer = DocWriter::new(&mut document);
        let capped = Capped::parse(fields)?;
        capped.iter().for_each(|capped| capped.append(&mut writer));
        for (name, value) in fields.fields() {
            if let Some((_, feature)) = NOT_BUILT.iter().find(|(option, _)| *option == name) {
                if value.is_nullish() {
                    continue;
                }
                return Err(Error::not_built(feature));
            }
            if validation.take("create", name, value)? {
                continue;
            }
            match name {
                "capped" | "size" | "max" | SERIES => {}
                "collation" => default = collation(value)?,
                "storageEngine" => keep_storage_engine(&mut writer, name, value)?,
                "indexOptionDefaults" => keep_index_defaults(&mut writer, value)?,
                "idIndex" => id_index = parse_id_index(value)?,
                CLUSTERED => {
                    if let Some(shown) = clustered::parse(value)? {
                        writer.append(CLUSTERED, &shown);
                    }
                }
                EXPIRE => keep_expiry(&mut writer, (fields, series.as_ref()), value, now_ms)?,
                IMAGES => keep_images(&mut writer, value)?,
                "autoIndexId" => keep_auto_index_id(&mut writer, value)?,
                TEMPORARY => {
                    return Err(Error::new(
                        ErrorCode::InvalidOptions,
                        "the 'temp' field is an invalid option",
                    ));
                }
                "flags" => return Err(Error::not_built("create.flags")),
                other => {
                    return Err(Error::location(
                        40415,
                        format!("BSON field 'create.{other}' is an unknown field."),
                    ));
                }
            }
        }
        let validation = Validation::compile(validation, default.as_ref())?;
        validation.write(&mut writer);
        if let Some(collation) = &default {
            writer.append("collation", &collation.to_document());
        }
        if let Some(series) = &series {
            writer.append(SERIES, &series.document());
        }
        writer.finish();
        if let Some(IndexSpec { collation, inherits_collation: false, .. }) = &id_index
            && *collation != default
        {
            let text = "'idIndex' must have the same collation as the collection.";
            return Err(Error::bad_value(text));
        }
        Ok(CollectionOptions {
            document: DocBuf::from_valid_bytes(document),
            id_index_version: id_index.map(|spec| spec.version),
            collation: default,
            validation,
            capped,
            time_series: series.map(Arc::new),
        })
    }

    /// Decodes a document that [`document`](Self::document) made. Fails if this server does not
    /// know its collation.
    pub fn from_document(document: DocBuf) -> Result<Self> {
        let collation = match document.get("collation") {
            Some(Value::Document(stored)) => Collation::parse(stored)?,
            _ => None,
        };
        let validation = Validation::restored(document.as_doc(), collation.as_ref());
        let capped = Capped::of_stored(document.as_doc());
        let stored = document.get(SERIES).and_then(|stored| stored.as_document());
        let time_series = stored.and_then(TimeSeriesOptions::of_stored).map(Arc::new);
        let id_index_version = None;
        Ok(CollectionOptions {
            document,
            id_index_version,
            collation,
            validation,
            capped,
            time_series,
        })
    }

    /// Returns the options of a time-series collection without other options.
    pub fn of_series(series: TimeSeriesOptions) -> Self {
        let document = doc! { SERIES: &series.document() };
        let time_series = Some(Arc::new(series));
        CollectionOptions { document, time_series, ..CollectionOptions::default() }
    }

    /// Returns the same options for a collection that is dropped at the next start, such as the
    /// copy that a rename makes.
    #[must_use]
    pub fn temporary(&self) -> Self {
        let mut document = self.document.clone();
        document.append(TEMPORARY, true);
        CollectionOptions { document, ..self.clone() }
    }

    /// Returns the same options for a collection that a restart does not drop.
    #[must_use]
    pub fn lasting(&self) -> Self {
        self.without(&[TEMPORARY])
    }

    /// Returns the same options without those in `names`, as they are shown.
    fn without(&self, names: &[&str]) -> Self {
        let document = DocBuf::build(|writer| {
            let fields = self.document.as_doc().fields();
            for (name, value) in fields.filter(|(name, _)| !names.contains(name)) {
                writer.append(name, value);
            }
        });
        CollectionOptions { document, ..self.clone() }
    }

    /// Returns true if the collection is dropped at the next start.
    pub fn is_temporary(&self) -> bool {
        self.document.get(TEMPORARY).is_some()
    }

    /// Returns the version of the `_id` index that is created with the collection.
    pub fn id_index_version(&self) -> i32 {
        self.id_index_version.unwrap_or(2)
    }

    /// Returns the default collation of operations and indexes.
    pub fn collation(&self) -> Option<&Arc<Collation>> {
        self.collation.as_ref()
    }

    /// Returns the validation of documents.
    pub fn validation(&self) -> &Validation {
        &self.validation
    }

    /// Returns the same options with another validation. What `change` does not give stays.
    ///
    /// # Errors
    /// Those of [`Validation::compile`].
    pub fn validated_by(&self, change: &ValidationOptions) -> Result<Self> {
        let changed = self.validation.changed(change);
        let validation = Validation::compile(changed, self.collation.as_ref())?;
        let document = DocBuf::build(|writer| {
            let others = self.document.as_doc().fields();
            let others = others.filter(|(name, _)| !Validation::is_option(name));
            let (before, after): (Vec<_>, Vec<_>) =
                others.partition(|(name, _)| *name != "collation");
            for (name, value) in before {
                writer.append(name, value);
            }
            validation.write(writer);
            for (name, value) in after {
                writer.append(name, value);
            }
        });
        Ok(CollectionOptions { document, validation, ..self.clone() })
    }

    /// Returns the name of the clustered index; `None` if the collection is not clustered.
    pub fn clustered_index(&self) -> Option<&str> {
        self.document.get(CLUSTERED)?.as_document()?.get("name")?.as_str()
    }

    /// Returns the seconds after the date in `_id` at which documents of a clustered collection
    /// expire.
    pub fn expire_after_seconds(&self) -> Option<i64> {
        self.document.get(EXPIRE)?.exact_i64()
    }

    /// Returns true if the change log keeps the documents before and after each change.
    pub fn keeps_images(&self) -> bool {
        let images = self.document.get(IMAGES).and_then(|images| images.as_document());
        images.and_then(|images| images.get("enabled")?.as_bool()).unwrap_or(false)
    }

    /// Returns the same options for a collection that keeps images, or does not.
    #[must_use]
    pub fn keeping_images(&self, enabled: bool) -> Self {
        let mut changed = self.without(&[IMAGES]);
        if enabled {
            changed.document.append(IMAGES, &doc! { "enabled": true });
        }
        changed
    }

    /// Returns the same options with another expiry time, or with none.
    #[must_use]
    pub fn expiring_after(&self, seconds: Option<i64>) -> Self {
        let mut changed = self.without(&[EXPIRE]);
        if let Some(seconds) = seconds {
            changed.document.append(EXPIRE, seconds);
        }
        if let Some(series) = &self.time_series {
            changed.document = time_series::with_series(changed.document.as_doc(), series);
        }
        changed
    }

    /// Returns the options of a time-series collection; `None` for another kind.
    #[inline]
    pub fn time_series(&self) -> Option<&Arc<TimeSeriesOptions>> {
        self.time_series.as_ref()
    }

    /// Returns the index that a new collection gets besides the first one, if it does: that of a
    /// time-series collection on meta and time.
    pub fn default_index(&self) -> Option<IndexSpec> {
        time_series::default_index(self.time_series.as_deref()?, self.collation())
    }

    /// Refuses an expiry of a time-series collection that could not be found.
    ///
    /// # Errors
    /// 72 InvalidOptions if no index can have its time field.
    pub fn check_series_expiry(&self) -> Result<()> {
        self.time_series.as_ref().map_or(Ok(()), |series| time_series::check_expiry(series))
    }

    /// Returns the same options after a change of the time series.
    ///
    /// # Errors
    /// 72 InvalidOptions if it is no time-series collection, and those of
    /// [`TimeSeriesChange::applied`].
    pub fn series_changed(&self, change: TimeSeriesChange) -> Result<Self> {
        let Some(series) = &self.time_series else {
            let text = "option only supported on a timeseries collection: timeseries";
            return Err(Error::new(ErrorCode::InvalidOptions, text));
        };
        let series = change.applied(series)?;
        let document = time_series::with_series(self.document.as_doc(), &series);
        Ok(CollectionOptions { document, time_series: Some(Arc::new(series)), ..self.clone() })
    }

    /// Returns the bounds of a capped collection; `None` if it is not capped.
    pub fn capped(&self) -> Option<&Capped> {
        self.capped.as_ref()
    }

    /// Returns the same options for a capped collection with these bounds. It is not clustered.
    #[must_use]
    pub fn capped_at(&self, capped: Capped) -> Self {
        let rest = self.without(&["capped", "size", "max", CLUSTERED, EXPIRE]);
        let document = DocBuf::build(|writer| {
            capped.append(writer);
            rest.document.as_doc().fields().for_each(|(name, value)| {
                writer.append(name, value);
            });
        });
        CollectionOptions { document, capped: Some(capped), ..self.clone() }
    }

    /// Returns the options as `listCollections` shows them.
    pub fn document(&self) -> Doc<'_> {
        self.document.as_doc()
    }

    /// Returns true if `create` with the options `other` on an existing collection with these
    /// options succeeds and changes nothing.
    pub fn same_as(&self, other: &Self) -> bool {
        self.document.as_bytes() == other.document.as_bytes()
    }
}

fn keep_expiry(
    writer: &mut DocWriter<'_>,
    (fields, series): (Doc<'_>, Option<&TimeSeriesOptions>),
    value: Value<'_>,
    now_ms: i64,
) -> Result<()> {
    if value.is_nullish() {
        return Ok(());
    }
    if !value.is_number() {
        return clustered::parse_expiry(value, now_ms).map(|_| ());
    }
    if let Some(series) = series {
        time_series::check_expiry(series)?;
    } else if !matches!(fields.get(CLUSTERED), Some(Value::Document(_))) {
        let text = "'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' option is specified";
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    writer.append(EXPIRE, clustered::parse_expiry(value, now_ms)?);
    Ok(())
}

/// Parses `changeStreamPreAndPostImages`, of `create` and of `collMod`: true if it is enabled.
///
/// # Errors
/// 14 TypeMismatch, 40414 without `enabled`, 40415 for an unknown field.
pub fn parse_images(command: &str, value: Value<'_>) -> Result<bool> {
    let Value::Document(images) = value else {
        return Err(wrong_type(&format!("{command}.{IMAGES}"), value, "object"));
    };
    let mut enabled = None;
    for (name, value) in images.fields() {
        match (name, value) {
            ("enabled", Value::Bool(flag)) => enabled = Some(flag),
            ("enabled", Value::Null | Value::Undefined) => {}
            ("enabled", other) => {
                return Err(wrong_type(&format!("{command}.{IMAGES}.enabled"), other, "bool"));
            }
            (other, _) => {
                let text = format!("BSON field '{command}.{IMAGES}.{other}' is an unknown field.");
                return Err(Error::location(40415, text));
            }
        }
    }
    enabled.ok_or_else(|| {
        let text =
            format!("BSON field '{command}.{IMAGES}.enabled' is missing but a required field");
        Error::location(40414, text)
    })
}

fn keep_images(writer: &mut DocWriter<'_>, value: Value<'_>) -> Result<()> {
    if !value.is_nullish() && parse_images("create", value)? {
        writer.append(IMAGES, &doc! { "enabled": true });
    }
    Ok(())
}

fn collation(value: Value<'_>) -> Result<Option<Arc<Collation>>> {
    match value {
        Value::Document(collation) => Collation::parse_default(collation),
        Value::Null | Value::Undefined => Ok(None),
        other => Err(wrong_type("create.collation", other, "object")),
    }
}

fn keep_storage_engine(writer: &mut DocWriter<'_>, name: &str, value: Value<'_>) -> Result<()> {
    match value {
        Value::Null | Value::Undefined => return Ok(()),
        Value::Document(doc) => {
            check_storage_engine(doc)?;
            if !doc.is_empty() {
                writer.append(name, doc);
            }
        }
        other => return Err(wrong_type("create.storageEngine", other, "object")),
    }
    Ok(())
}

fn keep_index_defaults(writer: &mut DocWriter<'_>, value: Value<'_>) -> Result<()> {
    match value {
        Value::Null | Value::Undefined => return Ok(()),
        Value::Document(doc) => {
            for (name, value) in doc.fields() {
                match (name, value) {
                    ("storageEngine", Value::Document(engine)) => check_storage_engine(engine)?,
                    ("storageEngine", other) => {
                        return Err(wrong_type(
                            "create.indexOptionDefaults.storageEngine",
                            other,
                            "object",
                        ));
                    }
                    (other, _) => {
                        return Err(Error::location(
                            40415,
                            format!(
                                "BSON field 'create.indexOptionDefaults.{other}' is an unknown field."
                            ),
                        ));
                    }
                }
            }
            if !doc.is_empty() {
                writer.append("indexOptionDefaults", doc);
            }
        }
        other => return Err(wrong_type("create.indexOptionDefaults", other, "object")),
    }
    Ok(())
}

fn parse_id_index(value: Value<'_>) -> Result<Option<IndexSpec>> {
    match value {
        Value::Null | Value::Undefined => Ok(None),
        Value::Document(spec) => IndexSpec::parse_id_index(spec).map(Some),
        other => Err(wrong_type("create.idIndex", other, "object")),
    }
}

/// Keeps `autoIndexId: true`, which has no effect and is shown. Refuses `false`, as a replica set
/// does.
fn keep_auto_index_id(writer: &mut DocWriter<'_>, value: Value<'_>) -> Result<()> {
    let flag = match value {
        Value::Null | Value::Undefined => return Ok(()),
        Value::Bool(flag) => flag,
        Value::Int32(number) => number != 0,
        Value::Int64(number) => number != 0,
        Value::Double(number) => number != 0.0,
        other => return Err(wrong_type("create.autoIndexId", other, "bool")),
    };
    if !flag {
        return Err(Error::location(
            50001,
            "autoIndexId:false is not allowed for a collection because it can be replicated",
        ));
    }
    writer.append("autoIndexId", true);
    Ok(())
}

fn wrong_type(path: &str, value: Value<'_>, expected: &str) -> Error {
    Error::type_mismatch(format!(
        "BSON field '{path}' is the wrong type '{}', expected type '{expected}'",
        value.type_name()
    ))
}
