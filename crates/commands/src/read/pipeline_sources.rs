//! First stages with documents of the server: `$currentOp`, `$indexStats`, `$listSessions` and
//! others. The rest of the pipeline runs over these documents as over any others.

use crate::admin::{coll_stats, current_op};
use crate::frame::concern::ReadLevel;
use crate::frame::context::Context;
use crate::frame::service::Service;
use quire_catalog::{IndexState, Namespace};
use quire_document::{DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_executor::ServerRows;
use quire_mql::stage::{Served, Source, check_index_stats, check_plan_cache_stats, row_of};
use quire_planner::{AggregateRequest, shape_digits};

/// Creates the documents of a command's first stage from its operand.
type First = fn(&Context<'_>, &AggregateRequest, Value<'_>) -> Result<Vec<DocBuf>>;

/// Creates the documents of a stage in the pipeline of another stage. The arguments are the namespace that
/// this pipeline reads, the operand, and `apiStrict`.
type Inside = fn(&Service, &str, Value<'_>, bool) -> Result<Vec<DocBuf>>;

/// A stage that is marked as the server's own in the registry of `mql`.
struct ServedStage {
    name: &'static str,
    first: First,
    /// `None` for a stage that no other stage's pipeline may have.
    inside: Option<Inside>,
    /// It applies to the request's namespace itself, a collection or a view.
    of_name: bool,
}

const fn served(name: &'static str, first: First, inside: Option<Inside>) -> ServedStage {
    ServedStage { name, first, inside, of_name: false }
}

const SERVED: &[ServedStage] = &[
    ServedStage {
        of_name: true,
        ..served("$collStats", coll_stats::stage, Some(coll_stats::rows))
    },
    served("$currentOp", running_operations, None),
    served(
        "$indexStats",
        |cx, request, operand| index_rows(cx.service, &request.namespace, operand, false),
        Some(index_rows),
    ),
    served("$listCatalog", crate::ddl::list_catalog::stage, None),
    served("$listClusterCatalog", crate::ddl::list_cluster_catalog::stage, None),
    served("$listLocalSessions", crate::sessions::list_sessions::local, None),
    served("$listSampledQueries", crate::admin::query_analyzer::sampled, None),
    served("$listSessions", crate::sessions::list_sessions::all, None),
    served(
        "$planCacheStats",
        |cx, request, operand| cached_plans(cx.service, &request.namespace, operand, false),
        Some(cached_plans),
    ),
    served("$querySettings", crate::read::query_settings::stage, None),
    served("$queryStats", crate::read::query_stats::stage, None),
    ServedStage {
        of_name: true,
        ..served("$schemaStats", crate::read::analyze_schema::stage, None)
    },
    served("$statusHistory", crate::admin::status_history::stage, None),
];

fn find_served(name: &str) -> Option<&'static ServedStage> {
    SERVED.iter().find(|stage| stage.name == name)
}

/// Returns the documents of the first stage if the server creates them, and removes the stage.
///
/// # Errors
/// The errors of the stage about its operand.
pub fn take(cx: &Context<'_>, request: &mut AggregateRequest) -> Result<Option<Vec<DocBuf>>> {
    let Some(ServedStage { name, first, .. }) = first_served(request) else { return Ok(None) };
    let Some(stage) = request.pipeline.first().cloned() else { return Ok(None) };
    let Ok((row, operand)) = row_of(Value::Document(stage.as_doc())) else { return Ok(None) };
    if cx.read_level() == ReadLevel::Snapshot {
        let text = format!("Aggregation stage {name} cannot run with read concern snapshot");
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    let needs_collection =
        row.facts.source == Source::Collection && operand.as_document().is_some();
    if needs_collection && request.namespace.ends_with(".$cmd.aggregate") {
        let text = format!("{{aggregate: 1}} is not valid for '{name}'; a collection is required.");
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    let rows = first(cx, request, operand)?;
    request.pipeline.remove(0);
    request.fed_by = Some(name);
    Ok(Some(rows))
}

/// Returns true for a pipeline whose first stage applies to the request's namespace itself, a
/// collection or a view. Other pipelines on a view run after the stages of the view.
pub fn is_of_name(request: &AggregateRequest) -> bool {
    first_served(request).is_some_and(|stage| stage.of_name)
}

/// Returns the row of a pipeline's first stage, if the server creates its documents.
fn first_served(request: &AggregateRequest) -> Option<&'static ServedStage> {
    find_served(request.pipeline.first()?.as_doc().first()?.key())
}

/// Returns the rows of `$currentOp`.
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
    if options.get("targetAllNodes").and_then(|all| all.as_bool()) == Some(true) {
        let text = "$currentOp takes 'targetAllNodes' on a sharded cluster only";
        return Err(Error::failed_to_parse(text));
    }
    if cx.db != "admin" || !request.namespace.ends_with(".$cmd.aggregate") {
        let text = "$currentOp must be run against the 'admin' database with {aggregate: 1}";
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    let flag =
        |name: &str, default| options.get(name).and_then(|on| on.as_bool()).unwrap_or(default);
    let mut rows = current_op::rows(cx, flag("allUsers", false));
    if flag("idleSessions", true) {
        rows.extend(current_op::idle_transactions(cx, flag("allUsers", false)));
    }
    if flag("idleConnections", false) {
        rows.extend(current_op::idle_connections(cx, flag("allUsers", false)));
    }
    if flag("idleCursors", false) {
        rows.extend(current_op::idle_cursors(cx, flag("allUsers", false)));
    }
    rows.extend(current_op::jobs(cx, flag("allUsers", false)));
    Ok(rows)
}

impl ServerRows for Service {
    fn rows(&self, stage: &Served, api_strict: bool) -> Result<Vec<DocBuf>> {
        match find_served(stage.name).and_then(|served| served.inside) {
            Some(rows) => rows(self, &stage.namespace, stage.operand.as_value(), api_strict),
            None => {
                let name = stage.name;
                Err(Error::internal(format!("{name} stands in no pipeline of a stage")))
            }
        }
    }
}

/// Returns the rows of an `$indexStats` on `namespace`.
fn index_rows(
    service: &Service,
    namespace: &str,
    operand: Value<'_>,
    _api_strict: bool,
) -> Result<Vec<DocBuf>> {
    check_index_stats(operand)?;
    let namespace = Namespace::parse(namespace)?;
    let catalog = service.store.catalog();
    let Some(collection) = catalog.lookup(&namespace) else { return Ok(Vec::new()) };
    let host = crate::frame::host::host_name();
    let own = collection.listed_indexes().filter(|index| !index.is_clustered());
    let rows = own.map(|index| {
        DocBuf::build(|row| {
            row.append("name", index.name.as_str()).append("key", &index.spec.key);
            row.append("host", host.as_str());
            {
                let mut accesses = row.document("accesses");
                let uses = index.uses.load(std::sync::atomic::Ordering::Relaxed);
                accesses.append("ops", uses as i64);
                accesses.append("since", Value::Date(service.started_ms));
            }
            if index.state == IndexState::WriteOnly {
                row.append("building", true);
            }
            row.append("spec", &index.to_document());
        })
    });
    Ok(rows.collect())
}

/// Returns the rows of a `$planCacheStats` on `namespace`.
fn cached_plans(
    service: &Service,
    namespace: &str,
    operand: Value<'_>,
    _api_strict: bool,
) -> Result<Vec<DocBuf>> {
    check_plan_cache_stats(operand)?;
    let catalog = service.store.catalog();
    let Some(collection) = catalog.lookup(&Namespace::parse(namespace)?) else {
        let text = format!("collection '{namespace}' does not exist");
        return Err(Error::location(50933, text));
    };
    if collection.is_time_series() {
        let text = "$planCacheStats is not supported on a time-series collection";
        return Err(Error::location(40602, text));
    }
    let host = crate::frame::host::host_name();
    let rows = collection.plan_cache.all().into_iter().map(|(key, cached)| {
        let shape = shape_digits(cached.shape);
        DocBuf::build(|row| {
            row.append("version", "1");
            row.append("queryHash", shape.as_str()).append("planCacheShapeHash", shape.as_str());
            row.append("planCacheKey", shape_digits(key).as_str());
            cached.write(row);
            row.append("host", host.as_str());
        })
    });
    Ok(rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_mql::stage::{Reads, STAGES};

    #[test]
    fn each_stage_of_the_server_has_a_maker() {
        let rows = STAGES.iter().filter(|row| row.is_built() && row.facts.reads == Reads::Server);
        let rows: Vec<&str> = rows.map(|row| row.name).collect();
        let makers: Vec<&str> = SERVED.iter().map(|stage| stage.name).collect();
        assert_eq!(makers, rows);
    }
}
