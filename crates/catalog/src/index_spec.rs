//! The specification of an index, as in `createIndexes`: parsed, checked as mongod checks it, and
//! compared with the existing indexes.

use std::sync::Arc;

use quire_document::{Doc, DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::collation::Collation;

use crate::index_pattern::{
    cannot, check_pattern, decimal_is_zero, decimal_to_i64, has_plugin, is_id_pattern,
    is_reversed_id, must_be, not_id_pattern, number, plugin_of, same_pattern,
};
use crate::key::Kind;
use crate::{Index, Namespace, PartialFilter, debug_doc, debug_value};

/// The specification of one index, normalised.
#[derive(Debug, Clone, Default)]
pub struct IndexSpec {
    /// The key pattern as the user wrote it.
    pub key: DocBuf,
    /// The name of the index.
    pub name: String,
    /// Two documents may not have the same key.
    pub unique: bool,
    /// A write may not add a second document with the same key. `collMod` can then make the index
    /// unique.
    pub prepare_unique: bool,
    /// True for the `_id` index of a clustered collection.
    pub clustered: bool,
    /// Documents without the fields have no entry. `None` if the user did not give the option.
    pub sparse: Option<bool>,
    /// The planner does not use the index.
    pub hidden: bool,
    /// An option without effect, kept because `listIndexes` shows it.
    pub background: Option<bool>,
    /// Seconds after which documents expire.
    pub expire_after_seconds: Option<i64>,
    /// `collMod` has changed `expire_after_seconds`, and therefore shows it as a long. Not stored.
    pub expire_changed: bool,
    /// The filter of a partial index: only matching documents have entries.
    pub partial_filter: Option<DocBuf>,
    /// How the index compares strings; `None` for byte order.
    pub collation: Option<Arc<Collation>>,
    /// The specification has no collation, so the index inherits the collection's. Not stored.
    pub inherits_collation: bool,
    /// The options that only this index kind has ([`KindOption`](crate::key::KindOption)), as the
    /// user wrote them.
    pub kind_options: DocBuf,
    /// The index version.
    pub version: i32,
    /// Options of other index kinds, which mongod keeps for any index, as `listIndexes` shows them.
    pub extra: DocBuf,
}

/// The relation of a specification to the existing indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecMatch {
    /// No such index exists.
    New,
    /// The same index exists, with the same name.
    Exists,
}

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
    /// Returns the specification of the `_id` index.
    pub fn id() -> Self {
        IndexSpec {
            key: quire_document::doc! { "_id": 1 },
            name: "_id_".to_owned(),
            version: 2,
            ..IndexSpec::default()
        }
    }

    /// Returns true for the specification of the `_id` index: `{_id: 1}`, with 1 of any numeric
    /// type.
    pub fn is_id(&self) -> bool {
        is_id_pattern(self.key.as_doc())
    }

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
                parsed.finished()
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
        let mut parsed = parsed.finished()?;
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
                    PartialFilter::parse(filter, None)?;
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
            "ns" | "dropDups" | "clustered" if name != "clustered" => {}
            "weights" => {
                if !matches!(value, Value::Document(_) | Value::String(_)) {
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
        crate::options::check_storage_engine(engine)?;
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

    /// Returns the specification with the collection's collation if it has none.
    ///
    /// # Errors
    /// `BadValue` if it is the `_id` index and its collation differs from the collection's.
    pub fn in_collection(&self, default: Option<&Arc<Collation>>) -> Result<Self> {
        let collation = match self.inherits_collation {
            true => default.cloned(),
            false => self.collation.clone(),
        };
        if self.is_id() && collation.as_ref() != default {
            let shown = |collation: Option<&Arc<Collation>>| match collation {
                Some(collation) => debug_doc(collation.to_document().as_doc()),
                None => "{ locale: \"simple\" }".to_owned(),
            };
            return Err(Error::bad_value(format!(
                "The _id index must have the same collation as the collection. Index collation: {}, collection collation: {}",
                shown(collation.as_ref()),
                shown(default)
            )));
        }
        Ok(IndexSpec { collation, inherits_collation: false, ..self.clone() })
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

    /// Checks the whole specification, as mongod does at the end.
    fn finished(mut self) -> Result<Self> {
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
        (kind.check)(&self)?;
        if self.prepare_unique {
            self.check_convertible()?;
        }
        Ok(self)
    }

    /// Returns the unique index that `collMod` makes of an index with `prepareUnique`.
    #[must_use]
    pub fn converted(&self) -> Self {
        IndexSpec { unique: true, prepare_unique: false, ..self.clone() }
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

    /// Compares the specification with the indexes of a collection. Conflicts are mongod's errors
    /// 85, 86 and 68.
    pub fn compare(&self, existing: &[Arc<Index>]) -> Result<SpecMatch> {
        if self.is_id() && existing.iter().any(|index| index.is_clustered()) {
            return Ok(SpecMatch::Exists);
        }
        if let Some(index) = existing.iter().find(|index| index.name == self.name) {
            if !self.same_signature(&index.spec) {
                return Err(Error::new(
                    ErrorCode::IndexKeySpecsConflict,
                    format!(
                        "An existing index has the same name as the requested index. When index names are not specified, they are auto generated and can cause conflicts. Please refer to our documentation. Requested index: {}, existing index: {}",
                        self.debug(),
                        index.spec.debug()
                    ),
                ));
            }
            if !self.same_options(&index.spec) {
                return Err(Error::new(
                    ErrorCode::IndexOptionsConflict,
                    format!(
                        "An equivalent index already exists with the same name but different options. Requested index: {}, existing index: {}",
                        self.debug(),
                        index.spec.debug()
                    ),
                ));
            }
            return Ok(SpecMatch::Exists);
        }
        let Some(index) = existing.iter().find(|index| self.same_signature(&index.spec)) else {
            return Ok(SpecMatch::New);
        };
        if index.is_id() {
            return Ok(SpecMatch::Exists);
        }
        let message = if self.same_options(&index.spec) {
            format!("Index already exists with a different name: {}", index.name)
        } else {
            format!(
                "An equivalent index already exists with a different name and options. Requested index: {}, existing index: {}",
                self.debug(),
                index.spec.debug()
            )
        };
        Err(Error::new(ErrorCode::IndexOptionsConflict, message))
    }

    /// Fails with 67 CannotCreateIndex if the collection already has the most indexes that it may
    /// have.
    pub fn check_room(&self, namespace: &Namespace, existing: usize) -> Result<()> {
        if existing < crate::INDEXES_MAX {
            return Ok(());
        }
        Err(cannot(format!(
            "add index fails, too many indexes for {namespace} key:{}",
            debug_doc(self.key.as_doc())
        )))
    }

    fn same_signature(&self, other: &IndexSpec) -> bool {
        same_pattern(self.key.as_doc(), other.key.as_doc())
            && self.unique == other.unique
            && self.sparse.unwrap_or(false) == other.sparse.unwrap_or(false)
            && self.collation == other.collation
            && self.partial_signature() == other.partial_signature()
            && Kind::of(self.key.as_doc()).is_none_or(|kind| (kind.same_keys)(self, other))
    }

    fn partial_signature(&self) -> Option<Vec<u8>> {
        let filter = self.partial_filter.as_ref()?;
        Some(match PartialFilter::parse(filter.as_doc(), None) {
            Ok(parsed) => parsed.signature(),
            Err(_) => filter.as_bytes().to_vec(),
        })
    }

    fn same_options(&self, other: &IndexSpec) -> bool {
        self.hidden == other.hidden
            && self.prepare_unique == other.prepare_unique
            && self.expire_after_seconds == other.expire_after_seconds
            && self.extra.as_bytes() == other.extra.as_bytes()
    }

    /// Returns the specification as `listIndexes` shows it.
    pub fn to_document(&self) -> DocBuf {
        let mut doc = quire_document::doc! {
            "v": self.version, "key": &self.key, "name": &self.name,
        };
        if let Some(background) = self.background {
            doc.append("background", background);
        }
        if self.unique {
            doc.append("unique", true);
        }
        if self.clustered {
            doc.append("clustered", true);
        }
        if self.prepare_unique {
            doc.append("prepareUnique", true);
        }
        if self.hidden {
            doc.append("hidden", true);
        }
        if let Some(filter) = &self.partial_filter {
            doc.append("partialFilterExpression", filter);
        }
        if let Some(sparse) = self.sparse {
            doc.append("sparse", sparse);
        }
        if let Some(seconds) = self.expire_after_seconds {
            match i32::try_from(seconds) {
                Ok(seconds) => doc.append("expireAfterSeconds", seconds),
                Err(_) => doc.append("expireAfterSeconds", seconds),
            };
        }
        if let Some(collation) = &self.collation {
            doc.append("collation", &collation.to_document());
        }
        doc.extend(|writer| {
            writer.append_all(self.kind_options.as_doc());
            writer.append_all(self.extra.as_doc());
        });
        doc
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

    fn debug(&self) -> String {
        debug_doc(self.to_document().as_doc())
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
