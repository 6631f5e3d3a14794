//! `$out`: replaces a collection by the documents of a pipeline.

use super::facts::Facts;
use super::registry::StageRow;
use super::rights::{Names, StageAction, on_named, on_source};
use super::{Modified, Needs, Stage, StageBody};
use crate::context::ParseContext;
use crate::options::Options;
use crate::time_series::TimeSeriesOptions;
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use std::sync::Arc;

pub(super) const OUT: StageRow = StageRow {
    name: "$out",
    since: "2.6",
    doc: "Writes the documents to a collection, which they replace.",
    facts: Facts {
        names: Names::Operand,
        rights: &[
            on_source(StageAction::Find),
            on_named(StageAction::Insert),
            on_named(StageAction::Remove),
        ],
        ..Facts::WRITER
    },
    parse: |_, value, cx| Ok(vec![Stage::Out(Arc::new(parse(value, cx)?))]),
};

/// Databases to which no pipeline may write.
pub(super) const INTERNAL: &[&str] = &["admin", "config", "local"];

/// A parsed `$out`: the target collection.
#[derive(Clone, Debug)]
pub struct Out {
    /// The database of the target.
    pub db: String,
    /// The name of the target.
    pub collection: String,
    /// The options of the time-series collection that the target is to be.
    pub time_series: Option<TimeSeriesOptions>,
}

fn parse(value: Value<'_>, cx: &ParseContext) -> Result<Out> {
    let out = match value {
        Value::String(name) => {
            Out { db: own_db(cx), collection: name.to_owned(), time_series: None }
        }
        Value::Document(spec) => parse_document(spec)?,
        other => {
            let found = other.type_name();
            let text = format!("$out only supports a string or object argument, but found {found}");
            return Err(Error::location(16990, text));
        }
    };
    let Out { db, collection, .. } = &out;
    if !may_be_namespace(db, collection) {
        let text = format!("Invalid $out target namespace, {db}.{collection}");
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    if INTERNAL.contains(&db.as_str()) {
        return Err(Error::location(31321, format!("Can't $out to internal database: {db}")));
    }
    if collection.starts_with("system.") {
        let text = format!("Can't $out to special collection: {collection}");
        return Err(Error::location(17385, text));
    }
    Ok(out)
}

const OPTIONS: Options<'_> = Options("$out");

/// Parses an operand that is a document.
fn parse_document(spec: Doc<'_>) -> Result<Out> {
    let (mut db, mut collection, mut time_series) = (None, None, None);
    for field in OPTIONS.fields(spec) {
        let (name, value) = field?;
        let field = match name {
            "db" => &mut db,
            "coll" => &mut collection,
            "timeseries" if value.is_nullish() => continue,
            "timeseries" => {
                let Value::Document(options) = value else {
                    return Err(OPTIONS.wrong_type(name, value, "object"));
                };
                time_series = Some(TimeSeriesOptions::parse("timeseries", options)?);
                continue;
            }
            _ => return Err(OPTIONS.unknown(name)),
        };
        *field = match value {
            Value::String(text) => Some(text.to_owned()),
            Value::Null | Value::Undefined => None,
            other => return Err(OPTIONS.wrong_type(name, other, "string")),
        };
    }
    let collection = collection.ok_or_else(|| OPTIONS.missing("coll"))?;
    let db = db.ok_or_else(|| OPTIONS.missing("db"))?;
    Ok(Out { db, collection, time_series })
}

/// Returns the database that the pipeline reads.
pub(super) fn own_db(cx: &ParseContext) -> String {
    cx.place.as_deref().map(|place| place.db().to_owned()).unwrap_or_default()
}

/// Returns false for names that no collection can have. Writing the collection checks the rest.
pub(super) fn may_be_namespace(db: &str, collection: &str) -> bool {
    let bad = |byte: u8| matches!(byte, b'/' | b'\\' | b' ' | b'"' | b'.' | b'$' | 0);
    let is_db = !db.is_empty() && db.len() <= 63 && !db.bytes().any(bad);
    is_db && !collection.is_empty() && !collection.starts_with('.') && !collection.contains('\0')
}

impl StageBody for Out {
    fn name(&self) -> &'static str {
        OUT.name
    }

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn modified(&self) -> Modified {
        Modified::Nothing
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        let mut out = writer.document(OUT.name);
        out.append("coll", self.collection.as_str()).append("db", self.db.as_str());
        if let Some(options) = &self.time_series {
            out.append("timeseries", &options.document());
        }
    }
}
