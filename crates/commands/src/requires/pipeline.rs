//! What a pipeline needs of who runs it. Only names that the client gave are looked at: views run with
//! the rights on the view.

use super::is_true;
use crate::frame::args::unambiguous;
use crate::frame::context::Context;
use quire_access::Action::*;
use quire_access::Target;
use quire_document::{Array, Doc, Value};
use quire_error::Result;

/// What a pipeline needs: of its source, and of every other collection that a stage names. Views
/// run with the rights on the view, so that only names that the client gave are looked at.
pub fn pipeline(cx: &Context<'_>, source: Target<'_>, stages: Array<'_>) -> Result<()> {
    let stages: Vec<Doc<'_>> = stages.iter().filter_map(|stage| stage.as_document()).collect();
    let first = stages.first().and_then(|stage| stage.first());
    match first.map(|first| (first.key(), first.value())) {
        Some(("$documents", _)) => {}
        Some(("$currentOp", options)) => {
            let options = unambiguous(options)?;
            if is_true(options.get("allUsers")) {
                cx.require(Target::Cluster, Inprog)?;
            }
        }
        Some(("$listSessions" | "$listLocalSessions", options)) => {
            let options = unambiguous(options)?;
            if is_true(options.get("allUsers")) || options.contains("users") {
                cx.require(Target::Cluster, ListSessions)?;
            }
        }
        Some(("$collStats", _)) => cx.require(source, CollStats)?,
        Some(("$indexStats", _)) => cx.require(source, IndexStats)?,
        Some(("$planCacheStats", _)) => cx.require(source, PlanCacheRead)?,
        Some(("$listCatalog", _)) => {
            cx.require(Target::Cluster, ListDatabases)?;
            cx.require(source, ListCollections)?;
        }
        Some(("$listClusterCatalog", _)) => cx.require(Target::Cluster, ListClusterCatalog)?,
        Some(("$queryStats", _)) => cx.require(Target::Cluster, QueryStatsRead)?,
        Some(("$changeStream", _)) => {
            cx.require(source, Find)?;
            cx.require(source, ChangeStream)?;
        }
        _ => cx.require(source, Find)?,
    }
    stages
        .into_iter()
        .filter_map(|stage| stage.first())
        .try_for_each(|stage| other_collections(cx, stage.key(), stage.value()))
}

fn other_collections(cx: &Context<'_>, stage: &str, operand: Value<'_>) -> Result<()> {
    let options = match stage {
        "$lookup" | "$graphLookup" | "$unionWith" | "$facet" | "$rankFusion" | "$scoreFusion"
        | "$out" | "$merge" => unambiguous(operand)?,
        _ => return Ok(()),
    };
    let nested = |name: &str| options.get(name).and_then(|stages| stages.as_array());
    match stage {
        "$lookup" | "$graphLookup" => match (options.get("from"), nested("pipeline")) {
            (Some(from), stages) => from_collection(cx, from, stages),
            // Only documents made by the pipeline itself.
            (None, Some(stages)) => pipeline(cx, Target::Database(cx.db), stages),
            (None, None) => Ok(()),
        },
        "$unionWith" => match (operand, options.get("coll")) {
            (Value::String(_), _) => from_collection(cx, operand, None),
            (_, Some(from)) => from_collection(cx, from, nested("pipeline")),
            (_, None) => match nested("pipeline") {
                Some(stages) => pipeline(cx, Target::Database(cx.db), stages),
                None => Ok(()),
            },
        },
        "$facet" => {
            options.fields().filter_map(|(_, stages)| stages.as_array()).try_for_each(|stages| {
                stages
                    .iter()
                    .filter_map(|stage| stage.as_document()?.first())
                    .try_for_each(|stage| other_collections(cx, stage.key(), stage.value()))
            })
        }
        "$rankFusion" | "$scoreFusion" => {
            let input = unambiguous(options.get("input").unwrap_or(Value::Null))?;
            let named = unambiguous(input.get("pipelines").unwrap_or(Value::Null))?;
            let stages = named.fields();
            stages.filter_map(|(_, stages)| stages.as_array()).try_for_each(|stages| {
                stages
                    .iter()
                    .filter_map(|stage| stage.as_document()?.first())
                    .try_for_each(|stage| other_collections(cx, stage.key(), stage.value()))
            })
        }
        "$out" => {
            let target = named_collection(cx, operand)?;
            cx.require(target, Insert)?;
            cx.require(target, Remove)
        }
        "$merge" => merge(cx, operand),
        _ => Ok(()),
    }
}

fn from_collection(cx: &Context<'_>, from: Value<'_>, stages: Option<Array<'_>>) -> Result<()> {
    let target = named_collection(cx, from)?;
    match stages {
        Some(stages) => pipeline(cx, target, stages),
        None => cx.require(target, Find),
    }
}

/// The collection of `"name"` or `{db, coll}`.
fn named_collection<'a>(cx: &'a Context<'_>, named: Value<'a>) -> Result<Target<'a>> {
    Ok(match named {
        Value::String(collection) => Target::Collection(cx.db, collection),
        Value::Document(_) => {
            let doc = unambiguous(named)?;
            let text = |name: &str| doc.get(name).and_then(|value| value.as_str());
            Target::Collection(text("db").unwrap_or(cx.db), text("coll").unwrap_or_default())
        }
        _ => Target::Database(cx.db),
    })
}

/// `$merge` inserts what matches nothing, unless told otherwise, and updates what matches.
fn merge(cx: &Context<'_>, operand: Value<'_>) -> Result<()> {
    let options = unambiguous(operand)?;
    let into = options.get("into").unwrap_or(operand);
    let target = named_collection(cx, into)?;
    let chosen = |name: &str| options.get(name).and_then(|choice| choice.as_str());
    if !matches!(chosen("whenNotMatched"), Some("discard" | "fail")) {
        cx.require(target, Insert)?;
    }
    if !matches!(chosen("whenMatched"), Some("keepExisting" | "fail")) {
        cx.require(target, Update)?;
    }
    match options.get("whenMatched").and_then(|stages| stages.as_array()) {
        Some(stages) => stages
            .iter()
            .filter_map(|stage| stage.as_document()?.first())
            .try_for_each(|stage| other_collections(cx, stage.key(), stage.value())),
        None => Ok(()),
    }
}
