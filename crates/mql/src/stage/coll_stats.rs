//! The operand of `$collStats`: the requested counts and sizes of a collection.

use crate::options::Options;
use crate::text;
use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode, Result};

/// A parsed `$collStats`.
#[derive(Debug)]
pub struct CollStats {
    /// The requested sections in the order of the operand, each once.
    pub sections: Vec<StatsSection>,
}

/// A section of the result of `$collStats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatsSection {
    /// The number of documents.
    Count,
    /// The sizes of the documents and of the indexes.
    Storage {
        /// The number of bytes in a unit.
        scale: i64,
    },
    /// The latency of operations.
    Latency {
        /// True to include the number of operations by their latency.
        histograms: bool,
    },
    /// The number of collection scans.
    Executed,
}

const OPTIONS: Options<'_> = Options("$collStats");

impl CollStats {
    /// Parses the operand. A null field is not requested. `api_strict` is true if the request uses
    /// the stable API only, which has only the count.
    ///
    /// # Errors
    /// 5447000 if the operand is not a document, 323 APIStrictError, 31170 for options of a section
    /// without options, and errors for unknown fields and wrong types.
    pub fn parse(operand: Value<'_>, api_strict: bool) -> Result<Self> {
        let Value::Document(spec) = operand else {
            let shown = text::value(operand);
            let text =
                format!("$collStats must take a nested object but found: $collStats: {shown}");
            return Err(Error::location(5447000, text));
        };
        if api_strict && spec.fields().any(|(name, _)| name != "count") {
            let text = "only the 'count' option to $collStats is supported in API Version 1";
            return Err(Error::new(ErrorCode::APIStrictError, text));
        }
        let mut sections: Vec<StatsSection> = Vec::new();
        for (name, value) in spec.fields() {
            let Some(section) = section(name, value)? else { continue };
            let kind = std::mem::discriminant(&section);
            if !sections.iter().any(|known| std::mem::discriminant(known) == kind) {
                sections.push(section);
            }
        }
        Ok(CollStats { sections })
    }
}

/// Parses one field.
fn section(name: &str, value: Value<'_>) -> Result<Option<StatsSection>> {
    let is_null = matches!(value, Value::Null | Value::Undefined);
    Ok(match name {
        "count" | "storageStats" | "latencyStats" | "queryExecStats" if is_null => None,
        "count" => Some(empty(name, value, StatsSection::Count)?),
        "queryExecStats" => Some(empty(name, value, StatsSection::Executed)?),
        "storageStats" => Some(StatsSection::Storage { scale: scale(document(name, value)?)? }),
        "latencyStats" => {
            Some(StatsSection::Latency { histograms: histograms(document(name, value)?)? })
        }
        // The option has no effect, because there is only one node.
        "targetAllNodes" => {
            flag(OPTIONS, name, value)?;
            None
        }
        "operationStats" => return Err(Error::not_built(&format!("$collStats.{name}"))),
        _ => return Err(OPTIONS.unknown(name)),
    })
}

fn document<'v>(name: &str, value: Value<'v>) -> Result<Doc<'v>> {
    value.as_document().ok_or_else(|| OPTIONS.wrong_type(name, value, "object"))
}

fn flag(options: Options<'_>, name: &str, value: Value<'_>) -> Result<bool> {
    value.as_bool().ok_or_else(|| options.wrong_type(name, value, "bool"))
}

/// Fails with 31170 if the document is not empty.
fn empty(name: &str, value: Value<'_>, section: StatsSection) -> Result<StatsSection> {
    if document(name, value)?.is_empty() {
        return Ok(section);
    }
    let text = format!("the option '{name}' of $collStats takes an empty document");
    Err(Error::location(31170, text))
}

/// Parses the unit of `storageStats`, which must fit in 32 bits. The other options have no effect,
/// as in MongoDB.
fn scale(options: Doc<'_>) -> Result<i64> {
    const OPTIONS: Options<'_> = Options("$collStats.storageStats");
    let mut scale = 1;
    for (name, value) in options.fields() {
        match (name, value) {
            ("scale", Value::Null | Value::Undefined) => {}
            ("scale", _) => scale = OPTIONS.integer_from(1, name, value)?.min(i64::from(i32::MAX)),
            ("waitForLock" | "numericOnly", _) => drop(flag(OPTIONS, name, value)?),
            _ => {}
        }
    }
    Ok(scale)
}

fn histograms(options: Doc<'_>) -> Result<bool> {
    const OPTIONS: Options<'_> = Options("$collStats.latencyStats");
    let mut histograms = false;
    for (name, value) in options.fields() {
        match name {
            "histograms" => histograms = flag(OPTIONS, name, value)?,
            _ => return Err(OPTIONS.unknown(name)),
        }
    }
    Ok(histograms)
}
