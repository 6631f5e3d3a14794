//! Reads the specification of an index: as `createIndexes` gets it, checked as mongod checks it, and as
//! the catalog stores it.

use quire_document::{Doc, DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::collation::Collation;

use crate::index_pattern::{
    cannot, check_pattern, decimal_is_zero, decimal_to_i64, has_plugin, is_reversed_id, must_be,
    not_id_pattern, number, plugin_of,
};
use crate::key::Kind;
use crate::storage_engine::check_storage_engine;
use crate::{IndexSpec, PartialFilter, debug_doc, debug_value};

/// Options that every index kind accepts but only some use.
const EXTRAS: &[&str] = &[
    "default_language",
    "language_override",
    "textIndexVersion",
    "2dsphereIndexVersion",
    "finestIndexedLevel",
    "coarsestIndexedLevel",
    "bits",
    "min",
    "max",
    "bucketSize",
];

impl IndexSpec {
    /// Parses an element of `createIndexes.indexes`. An error begins with `Error in specification
    /// ...` where mongod's does.
    pub fn parse(spec: Doc<'_>, ignore_unknown: bool) -> Result<Self> {
        let kept;
        let spec = if ignore_unknown {
            kept = without_unknown(spec);
            kept.as_doc()
        } else {
            spec
        };
        match Self::parse_fields(spec) {
            Ok(mut parsed) => {
                parsed.parse_expiry(spec)?;
                parsed.parse_collation(spec)?;
                parsed.finished(spec)
            }
            Err(error) if error.code() == ErrorCode::location(13103) => Err(error),
            Err(error) if error.code() == ErrorCode::CommandNotSupported => Err(error),
            Err(error) => {
                Err(error.context(&format!("Error in specification {}", debug_doc(spec))))
            }
        }
    }

    /// Parses the field `idIndex` of the command `create`.
    pub fn parse_id_index(spec: Doc<'_>) -> Result<Self> {
        let parsed = Self::parse_fields(spec)?;
        if !parsed.is_id() {
            return Err(not_id_pattern(parsed.key.as_doc()));
        }
        let mut parsed = parsed.finished(spec)?;
        parsed.parse_collation(spec)?;
        parsed.name = "_id_".to_owned();
        Ok(parsed)
    }

    fn parse_fields(spec: Doc<'_>) -> Result<Self> {
        let mut parsed = IndexSpec { version: 2, ..IndexSpec::default() };
        let (mut has_key, mut has_name) = (false, false);
        for (name, value) in spec.fields() {
            match name {
                "key" => {
                    let Value::Document(key) = value else {
                        return Err(must_be("key", "an object", value));
                    };
                    parsed.key = key.to_owned();
                    has_key = true;
                }
                "name" => {
                    let Value::String(text) = value else {
                        return Err(must_be("name", "a string", value));
                    };
                    text.clone_into(&mut parsed.name);
                    has_name = true;
                }
                "v" => parsed.version = parse_version(spec, value)?,
                _ => parsed.parse_option(spec, name, value)?,
            }
        }
        if !has_key {
            return Err(required("key"));
        }
        check_pattern(parsed.key.as_doc(), Kind::is_named)?;
        if !has_name {
            return Err(required("name"));
        }
        parsed.check_combination(spec)?;
        Ok(parsed)
    }

    fn parse_option(&mut self, spec: Doc<'_>, name: &str, value: Value<'_>) -> Result<()> {
        match name {
            "unique" => self.unique = flag(name, value)?,
            "prepareUnique" => self.prepare_unique = flag(name, value)?,
            "sparse" => self.sparse = Some(flag(name, value)?),
            "background" => self.background = Some(flag(name, value)?),
            "hidden" => match value {
                Value::Bool(hidden) => self.hidden = hidden,
                other => return Err(must_be("name", "a bool", other)),
            },
            // `parse_expiry` checks it after the other fields.
            "expireAfterSeconds" => {}
            "partialFilterExpression" => match value {
                Value::Document(filter) => {
                    PartialFilter::check_new(filter)?;
                    self.partial_filter = Some(filter.to_owned());
                }
                other => return Err(must_be(name, "an object", other)),
            },
            "collation" => match value {
                Value::Document(_) if spec.get("v").and_then(number) == Some(1.0) => {
                    return Err(cannot(format!(
                        "Invalid index specification {}; cannot create an index with the 'collation' option and v=1",
                        debug_doc(spec)
                    )));
                }
                // `parse_collation` parses it after the other fields.
                Value::Document(collation) if !collation.is_empty() => {}
                Value::Document(_) => {
                    let text = "The field 'collation' cannot be an empty object.";
                    return Err(Error::bad_value(text));
                }
                other => return Err(must_be(name, "an object", other)),
            },
            "storageEngine" => self.keep_storage_engine(value)?,
            "ns" | "dropDups" => {}
            "weights" => {
                if !matches!(value, Value::Document(_) | Value::String(_) | Value::Array(_)) {
                    return Err(must_be(name, "an object", value));
                }
                if !has_plugin(spec, "text") {
                    return Err(cannot(format!(
                        "Invalid index specification {}; the field 'weights' can only be specified with text indexes",
                        debug_doc(spec)
                    )));
                }
            }
            extra if EXTRAS.contains(&extra) => self.keep_extra(extra, value)?,
            other => {
                if let Some(option) = Kind::option(other) {
                    (option.check)(spec, value)?;
                    self.kind_options.append(other, value);
                    return Ok(());
                }
                return Err(Error::new(
                    ErrorCode::InvalidIndexSpecificationOption,
                    format!(
                        "The field '{other}' is not valid for an index specification. Specification: {}",
                        debug_doc(spec)
                    ),
                ));
            }
        }
        Ok(())
    }

    fn keep_storage_engine(&mut self, value: Value<'_>) -> Result<()> {
        let Value::Document(engine) = value else {
            return Err(cannot("\"storageEngine\" options must be a document if present"));
        };
        if engine.is_empty() {
            return Err(cannot(
                "Empty \"storageEngine\" options are invalid. Please remove the field or include valid options.",
            ));
        }
        check_storage_engine(engine)?;
        self.extra.append("storageEngine", engine);
        Ok(())
    }

    fn keep_extra(&mut self, name: &str, value: Value<'_>) -> Result<()> {
        match (name, value) {
            ("min" | "max", Value::Int32(number)) => self.extra.append(name, f64::from(number)),
            ("min" | "max", Value::Int64(number)) => self.extra.append(name, number as f64),
            ("default_language" | "language_override", Value::String(_)) => {
                self.extra.append(name, value)
            }
            ("default_language" | "language_override", other) => {
                return Err(must_be(name, "a string", other));
            }
            (_, number) if number.is_number() => self.extra.append(name, number),
            (_, other) => return Err(must_be(name, "a number", other)),
        };
        Ok(())
    }

    /// Checks the rules that involve several fields.
    fn check_combination(&self, spec: Doc<'_>) -> Result<()> {
        if self.is_id() {
            return self.check_id_options(spec);
        }
        if self.partial_filter.is_some() && self.sparse == Some(true) {
            return Err(cannot("cannot mix \"partialFilterExpression\" and \"sparse\" options"));
        }
        Ok(())
    }

    /// Parses `expireAfterSeconds`. Its errors are not prefixed by `Error in specification ...`.
    fn parse_expiry(&mut self, spec: Doc<'_>) -> Result<()> {
        let Some(value) = spec.get("expireAfterSeconds") else { return Ok(()) };
        self.expire_after_seconds = Some(expiry(spec, value)?);
        if self.key.as_doc().count() > 1 {
            return Err(cannot(format!(
                "TTL indexes are single-field indexes, compound indexes do not support TTL. Index spec: {}",
                debug_doc(spec)
            )));
        }
        Ok(())
    }

    /// Parses `collation`. Its errors have a prefix of their own.
    fn parse_collation(&mut self, spec: Doc<'_>) -> Result<()> {
        self.inherits_collation = !spec.contains("collation");
        let Some(Value::Document(collation)) = spec.get("collation") else { return Ok(()) };
        self.collation = Collation::parse(collation).map_err(|error| {
            let mut shown = spec.to_owned();
            if !spec.contains("v") {
                shown.append("v", self.version);
            }
            error.context(&format!(
                "failed to add collation information to index spec for index creation: {}",
                debug_doc(shown.as_doc())
            ))
        })?;
        Ok(())
    }

    fn check_id_options(&self, spec: Doc<'_>) -> Result<()> {
        for (name, value) in spec.fields() {
            let allowed = matches!(name, "key" | "name" | "v" | "ns" | "collation");
            let harmless = matches!((name, value), ("hidden", Value::Bool(false)));
            if !allowed && !harmless {
                let with_version = {
                    let mut full = spec.to_owned();
                    if !spec.contains("v") {
                        full.append("v", 2);
                    }
                    full
                };
                return Err(Error::new(
                    ErrorCode::InvalidIndexSpecificationOption,
                    format!(
                        "The field '{name}' is not valid for an _id index specification. Specification: {}",
                        debug_doc(with_version.as_doc())
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Completes and checks the whole specification, as mongod does at the end.
    fn finished(mut self, written: Doc<'_>) -> Result<Self> {
        let shown = |spec: &IndexSpec| {
            let mut doc = quire_document::doc! { "key": &spec.key, "name": &spec.name };
            doc.append("v", spec.version);
            format!("Error in specification {}", debug_doc(doc.as_doc()))
        };
        if self.name.is_empty() {
            return Err(cannot("index name cannot be empty").context(&shown(&self)));
        }
        if self.name.contains('\0') {
            return Err(cannot("index name cannot contain NUL bytes").context(&shown(&self)));
        }
        if self.name == "*" {
            return Err(Error::bad_value("The index name '*' is not valid."));
        }
        let key = self.key.as_doc();
        if self.is_id() {
            self.name = "_id_".to_owned();
        } else if is_reversed_id(key) {
            return Err(not_id_pattern(key));
        } else if self.name == "_id_" {
            return Err(Error::bad_value(format!(
                "The index name '_id_' is reserved for the _id index, which must have key pattern {{_id: 1}}, found key: {}",
                debug_doc(key)
            )));
        }
        let Some(kind) = Kind::of(self.key.as_doc()) else {
            return Err(not_built(self.key.as_doc()));
        };
        (kind.complete)(&mut self, written)?;
        (kind.check)(&self)?;
        if self.prepare_unique {
            self.check_convertible()?;
        }
        Ok(self)
    }

    /// Checks that an index of this kind can be unique.
    ///
    /// # Errors
    /// The error of `createIndexes` for such a unique index.
    pub fn check_convertible(&self) -> Result<()> {
        match Kind::of(self.key.as_doc()) {
            Some(kind) => (kind.check)(&self.converted()),
            None => Ok(()),
        }
    }

    /// Decodes a document that [`to_document`](Self::to_document) made. Keeps unknown fields as
    /// extras, so that nothing is lost. Fails if this server does not know the kind or the
    /// collation.
    pub fn from_document(doc: Doc<'_>) -> Result<Self> {
        let mut spec = IndexSpec { version: 2, ..IndexSpec::default() };
        for (name, value) in doc.fields() {
            match (name, value) {
                ("v", Value::Int32(version)) => spec.version = version,
                ("key", Value::Document(key)) => spec.key = key.to_owned(),
                ("name", Value::String(text)) => text.clone_into(&mut spec.name),
                ("background", Value::Bool(flag)) => spec.background = Some(flag),
                ("unique", Value::Bool(flag)) => spec.unique = flag,
                ("clustered", Value::Bool(flag)) => spec.clustered = flag,
                ("prepareUnique", Value::Bool(flag)) => spec.prepare_unique = flag,
                ("hidden", Value::Bool(flag)) => spec.hidden = flag,
                ("sparse", Value::Bool(flag)) => spec.sparse = Some(flag),
                ("partialFilterExpression", Value::Document(filter)) => {
                    spec.partial_filter = Some(filter.to_owned());
                }
                ("expireAfterSeconds", Value::Int32(seconds)) => {
                    spec.expire_after_seconds = Some(i64::from(seconds));
                }
                ("expireAfterSeconds", Value::Int64(seconds)) => {
                    spec.expire_after_seconds = Some(seconds);
                }
                _ if Kind::option(name).is_some() => {
                    spec.kind_options.append(name, value);
                }
                ("collation", Value::Document(stored)) => {
                    spec.collation = Collation::parse(stored)?;
                }
                _ => {
                    spec.extra.append(name, value);
                }
            }
        }
        match Kind::of(spec.key.as_doc()) {
            Some(_) => Ok(spec),
            None => Err(not_built(spec.key.as_doc())),
        }
    }
}

fn parse_version(spec: Doc<'_>, value: Value<'_>) -> Result<i32> {
    let Some(number) = number(value) else {
        return Err(must_be("v", "a number", value));
    };
    if number.fract() != 0.0 || number.abs() > f64::from(i32::MAX) {
        return Err(Error::bad_value(format!(
            "Index version must be representable as a 32-bit integer, but got {}",
            debug_value(value)
        )));
    }
    match number as i32 {
        version @ (1 | 2) => Ok(version),
        version => Err(cannot(format!(
            "Invalid index specification {}; cannot create an index with v={version}",
            debug_doc(spec)
        ))),
    }
}

fn flag(name: &str, value: Value<'_>) -> Result<bool> {
    match value {
        Value::Bool(flag) => Ok(flag),
        Value::Decimal(number) => Ok(!decimal_is_zero(number)),
        other => number(other).map(|number| number != 0.0).ok_or_else(|| {
            Error::type_mismatch(format!(
                "The field '{name} has value {name}: {}, which is not convertible to bool",
                debug_value(other)
            ))
        }),
    }
}

/// Returns the seconds of a TTL index as an integer of 32 bits (67 CannotCreateIndex if out of
/// range).
fn expiry(spec: Doc<'_>, value: Value<'_>) -> Result<i64> {
    let seconds = match value {
        Value::Int32(number) => i64::from(number),
        Value::Int64(number) => number,
        Value::Double(number) if number.is_nan() => i64::MAX,
        Value::Double(number) => number as i64,
        Value::Decimal(number) => decimal_to_i64(number),
        other => {
            return Err(cannot(format!(
                "TTL index 'expireAfterSeconds' option must be numeric, but received a type of '{}'. Index spec: {}",
                other.type_name(),
                debug_doc(spec)
            )));
        }
    };
    if seconds < 0 {
        return Err(cannot(format!(
            "TTL index 'expireAfterSeconds' option cannot be less than 0index spec: {}",
            debug_doc(spec)
        )));
    }
    if seconds > i64::from(i32::MAX) {
        return Err(cannot(format!(
            "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a lower numberindex spec: {}",
            debug_doc(spec)
        )));
    }
    Ok(seconds)
}

fn without_unknown(spec: Doc<'_>) -> DocBuf {
    const KNOWN: &[&str] = &[
        "key",
        "name",
        "v",
        "ns",
        "unique",
        "prepareUnique",
        "sparse",
        "background",
        "hidden",
        "dropDups",
        "expireAfterSeconds",
        "partialFilterExpression",
        "collation",
        "storageEngine",
        "weights",
    ];
    DocBuf::build(|writer| {
        for (name, value) in spec.fields() {
            let is_known = KNOWN.contains(&name) || EXTRAS.contains(&name);
            if is_known || Kind::option(name).is_some() {
                writer.append(name, value);
            }
        }
    })
}

/// Returns the error for an index kind that is not built.
fn not_built(pattern: Doc<'_>) -> Error {
    Error::not_built(&format!("a {} index", plugin_of(pattern).unwrap_or_default()))
}

fn required(field: &str) -> Error {
    Error::failed_to_parse(format!(
        "The '{field}' field is a required property of an index specification"
    ))
}
