//! Stages whose documents the server generates, at the start of a pipeline inside another stage.
//! Those at the start of a command's own pipeline are removed before it is parsed.

use super::registry::ParseFn;
use super::{CollStats, Modified, Needs, Stage, StageBody};
use crate::context::ParseContext;
use quire_document::{Doc, DocWriter, Value, ValueBuf};
use quire_error::{Error, Result};
use std::sync::Arc;

/// A stage whose documents the server generates during execution.
#[derive(Debug)]
pub struct Served {
    /// The name with the dollar sign.
    pub name: &'static str,
    /// The collection that the documents describe, as `database.collection`.
    pub namespace: Box<str>,
    /// The operand, which was checked.
    pub operand: ValueBuf,
}

impl Served {
    fn stages(name: &'static str, operand: Value<'_>, cx: &ParseContext) -> Vec<Stage> {
        let namespace = cx.place.as_deref().map_or("", |place| &place.namespace).into();
        let operand = ValueBuf::new(operand);
        vec![Stage::Served(Arc::new(Served { name, namespace, operand }))]
    }
}

/// The parser of `$collStats`. Its operand is parsed again for execution.
pub(super) const COLL_STATS: ParseFn = |name, operand, cx| {
    CollStats::parse(operand, cx.api_strict)?;
    Ok(Served::stages(name, operand, cx))
};

/// The parser of `$indexStats`, whose operand is empty.
pub(super) const INDEX_STATS: ParseFn = |name, operand, cx| {
    check_index_stats(operand)?;
    Ok(Served::stages(name, operand, cx))
};

/// The parser of `$planCacheStats`.
pub(super) const PLAN_CACHE_STATS: ParseFn = |name, operand, cx| {
    check_plan_cache_stats(operand)?;
    Ok(Served::stages(name, operand, cx))
};

/// The parser of a stage that is allowed neither in pipelines inside stages nor in views.
pub(super) const NEVER_INSIDE: ParseFn =
    |name, _, _| Err(Error::internal(format!("{name} is removed before a pipeline is parsed")));

/// Checks the operand of `$indexStats`.
///
/// # Errors
/// 28803 unless it is an empty document.
pub fn check_index_stats(operand: Value<'_>) -> Result<()> {
    if operand.as_document().is_some_and(Doc::is_empty) {
        return Ok(());
    }
    let text = "The $indexStats stage specification must be an empty object";
    Err(Error::location(28803, text))
}

/// Checks the operand of `$planCacheStats`.
///
/// # Errors
/// 9 FailedToParse unless it is a document with no fields except `allHosts`, 13111 unless that is a
/// boolean, 4503200 if it is true, because only a sharded cluster has other hosts.
pub fn check_plan_cache_stats(operand: Value<'_>) -> Result<()> {
    let Value::Document(options) = operand else {
        let found = operand.type_name();
        let text = format!("$planCacheStats value must be an object. Found: {found}");
        return Err(Error::failed_to_parse(text));
    };
    let mut fields = options.fields();
    match (fields.next(), fields.next()) {
        (None, _) | (Some(("allHosts", Value::Bool(false))), None) => Ok(()),
        (Some(("allHosts", Value::Bool(true))), None) => Err(Error::location(
            4503200,
            "$planCacheStats takes allHosts: true on a sharded cluster only",
        )),
        (Some(("allHosts", other)), None) => Err(Error::location(
            13111,
            format!("allHosts of $planCacheStats must be a boolean, not {}", other.type_name()),
        )),
        _ => Err(Error::failed_to_parse("$planCacheStats takes no option but 'allHosts'")),
    }
}

impl StageBody for Served {
    fn name(&self) -> &'static str {
        self.name
    }

    fn needs(&self) -> Needs {
        Needs::only(Default::default())
    }

    fn modified(&self) -> Modified {
        Modified::All
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        writer.append(self.name, &self.operand);
    }
}
