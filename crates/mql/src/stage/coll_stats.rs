//! The operand of `$collStats`: which counts and sizes of a collection are asked for.

use crate::options::Options;
use crate::update::text;
use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode, Result};

/// A parsed `$collStats`.
#[derive(Debug)]
pub struct CollStats {
    /// What it shows, in the order of its operand, each once.
    pub sections: Vec<StatsSection>,
}

/// What a `$collStats` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatsSection {
    /// The number of documents.
    Count,
    /// Sizes of the documents and of the indexes.
    Storage {
        /// The number of bytes in one unit.
        scale: i64,
    },
    /// How long operations took.
    Latency {
        /// With the number of operations by their time.
        histograms: bool,
    },
    /// How often the collection was scanned.
    Executed,
}

const OPTIONS: Options<'_> = Options("$collStats");

impl CollStats {
    /// Reads the operand. What is null is not asked for. `api_strict` says that the request keeps
    /// to the stable API, which has the count alone.
    ///
    /// # Errors
    /// 5447000 for what is no document, 323 APIStrictError, 31170 for options of what takes none,
    /// and what unknown fields and wrong types answer.
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

/// Returns what one field asks for.
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
        // There is one node.
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

/// Fails with 31170 for a document that is not empty.
fn empty(name: &str, value: Value<'_>, section: StatsSection) -> Result<StatsSection> {
    if document(name, value)?.is_empty() {
        return Ok(section);
    }
    let text = format!("the option '{name}' of $collStats takes an empty document");
    Err(Error::location(31170, text))
}

/// The unit of `storageStats`, at most what 32 bits hold. Other options have no effect in MongoDB
/// either.
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
