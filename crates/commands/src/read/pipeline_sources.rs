//! First stages whose documents the server makes: `$currentOp`, `$indexStats`, `$listSessions`...
//! The rest of the pipeline runs over them as over any documents.

use crate::admin::current_op;
use crate::frame::concern::ReadLevel;
use crate::frame::context::Context;
use quire_catalog::{IndexState, Namespace};
use quire_document::{Doc, DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_planner::AggregateRequest;

/// Makes the documents of a first stage from its operand.
type Make = fn(&Context<'_>, &AggregateRequest, Value<'_>) -> Result<Vec<DocBuf>>;

/// A stage whose documents the server makes.
pub struct ServerStage {
    /// Its name.
    pub name: &'static str,
    /// The MongoDB version that introduced it.
    pub since: &'static str,
    /// One sentence.
    pub summary: &'static str,
    make: Make,
}

/// The stages, by name.
pub static SERVER_STAGES: &[ServerStage] = &[
    ServerStage {
        name: "$collStats",
        since: "3.4",
        summary: "Counts and sizes of the collection.",
        make: crate::admin::coll_stats::stage,
    },
    ServerStage {
        name: "$currentOp",
        since: "3.6",
        summary: "The operations that run now.",
        make: running_operations,
    },
    ServerStage {
        name: "$indexStats",
        since: "3.2",
        summary: "How often each index was used.",
        make: index_stats,
    },
    ServerStage {
        name: "$listLocalSessions",
        since: "3.6",
        summary: "The sessions in use, as this server knows them.",
        make: crate::sessions::list_sessions::local,
    },
    ServerStage {
        name: "$listSessions",
        since: "3.6",
        summary: "The sessions in use.",
        make: crate::sessions::list_sessions::all,
    },
];

/// The documents of the first stage if the server makes them; the stage is then taken off.
///
/// # Errors
/// What the stage says about its operand; 40602 for such a stage in another place.
pub fn take(cx: &Context<'_>, request: &mut AggregateRequest) -> Result<Option<Vec<DocBuf>>> {
    for stage in request.pipeline.iter().skip(1) {
        let name = match stage.as_doc().first().map(|first| first.key()) {
            Some("$documents") => Some("$documents"),
            _ => find(stage.as_doc()).map(|(name, _)| name),
        };
        if let Some(name) = name {
            let text = format!("{name} is only valid as the first stage in a pipeline");
            return Err(Error::location(40602, text));
        }
    }
    let Some(first) = request.pipeline.first().cloned() else { return Ok(None) };
    if let Some(documents) = first.as_doc().first().filter(|first| first.key() == "$documents") {
        return documents_stage(request, documents.value()).map(Some);
    }
    let Some((name, make)) = find(first.as_doc()) else { return Ok(None) };
    if cx.generic.api.strict == Some(true) && name != "$collStats" {
        let text = format!("stage {name} is not allowed with 'apiStrict: true' in API Version 1");
        return Err(Error::new(ErrorCode::APIStrictError, text));
    }
    if cx.read_level() == ReadLevel::Snapshot {
        let text = format!("Aggregation stage {name} cannot run with read concern snapshot");
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    let operand = first.as_doc().first().map_or(Value::Null, |operand| operand.value());
    let rows = make(cx, request, operand)?;
    request.pipeline.remove(0);
    request.fed_by = Some(name);
    Ok(Some(rows))
}

/// True for a stage that reads the documents it is given, so that it can't come first without a
/// collection. The empty name stands for an empty pipeline.
pub fn needs_collection(first: &str) -> bool {
    const READING: &[&str] = &[
        "",
        "$addFields",
        "$bucket",
        "$bucketAuto",
        "$collStats",
        "$count",
        "$facet",
        "$geoNear",
        "$graphLookup",
        "$group",
        "$indexStats",
        "$limit",
        "$lookup",
        "$match",
        "$planCacheStats",
        "$project",
        "$redact",
        "$replaceRoot",
        "$replaceWith",
        "$sample",
        "$set",
        "$skip",
        "$sort",
        "$sortByCount",
        "$unionWith",
        "$unset",
        "$unwind",
    ];
    READING.contains(&first)
}

/// `$documents`: short for stages over one empty document that make an array and take it apart.
fn documents_stage(request: &mut AggregateRequest, operand: Value<'_>) -> Result<Vec<DocBuf>> {
    if !request.namespace.ends_with(".$cmd.aggregate") {
        let text = "'$documents' can only be run with {aggregate: 1}";
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    let stages = quire_mql::stage::documents_as_stages(operand)?;
    request.pipeline.splice(0..1, stages);
    request.fed_by = Some("$documents");
    Ok(vec![DocBuf::new()])
}

fn find(stage: Doc<'_>) -> Option<(&'static str, Make)> {
    let name = stage.first()?.key();
    SERVER_STAGES.iter().find(|row| row.name == name).map(|row| (row.name, row.make))
}

/// `$currentOp`.
fn running_operations(
    cx: &Context<'_>,
    request: &AggregateRequest,
    operand: Value<'_>,
) -> Result<Vec<DocBuf>> {
    let Value::Document(options) = operand else {
        let text = format!(
            "$currentOp options must be specified in an object, but found: {}",
            operand.type_name()
        );
        return Err(Error::type_mismatch(text));
    };
    for (name, value) in options.fields() {
        match name {
            "allUsers" | "idleConnections" | "idleCursors" | "idleSessions" | "localOps"
            | "truncateOps" | "targetAllNodes" => {
                if value.as_bool().is_none() {
                    let text = format!(
                        "The '{name}' parameter of the $currentOp stage must be a boolean value, but found: {}",
                        value.type_name()
                    );
                    return Err(Error::type_mismatch(text));
                }
            }
            _ => {
                let text = format!("BSON field '$currentOp.{name}' is an unknown field.");
                return Err(Error::new(ErrorCode::IDLUnknownField, text));
            }
        }
    }
    if cx.db != "admin" || !request.namespace.ends_with(".$cmd.aggregate") {
        let text = "$currentOp must be run against the 'admin' database with {aggregate: 1}";
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    let all_users = options.get("allUsers").and_then(|all| all.as_bool()).unwrap_or(false);
    Ok(current_op::rows(cx, all_users))
}

/// `$indexStats`.
fn index_stats(
    cx: &Context<'_>,
    request: &AggregateRequest,
    operand: Value<'_>,
) -> Result<Vec<DocBuf>> {
    if !operand.as_document().is_some_and(Doc::is_empty) {
        let text = "The $indexStats stage specification must be an empty object";
        return Err(Error::location(28803, text));
    }
    let namespace = Namespace::parse(&request.namespace)?;
    let catalog = cx.service.store.catalog();
    let Some(collection) = catalog.lookup(&namespace) else { return Ok(Vec::new()) };
    let host = crate::frame::host::host_name();
    let rows = collection.indexes.iter().map(|index| {
        DocBuf::build(|row| {
            row.append("name", index.name.as_str()).append("key", &index.spec.key);
            row.append("host", host.as_str());
            {
                let mut accesses = row.document("accesses");
                let uses = index.uses.load(std::sync::atomic::Ordering::Relaxed);
                accesses.append("ops", uses as i64);
                accesses.append("since", Value::Date(cx.service.started_ms));
            }
            if index.state == IndexState::WriteOnly {
                row.append("building", true);
            }
            row.append("spec", &index.to_document());
        })
    });
    Ok(rows.collect())
}
