//! `$listClusterCatalog`: the collections and views of a database with their options; of all
//! databases if the stage runs on `admin`.

use crate::ddl::list_collections::{describe_collection, describe_view, kind};
use crate::frame::args::fields;
use crate::frame::context::Context;
use quire_catalog::{Database, Namespace};
use quire_document::{DocBuf, DocWriter, Value};
use quire_error::{Error, Result};
use quire_planner::AggregateRequest;
use std::sync::Arc;

/// Returns one row for each collection and view, by database and name.
///
/// # Errors
/// 9621301 if the pipeline reads a collection, 9621302 for an operand that is not an object,
/// TypeMismatch and 40415 for its fields, InvalidViewDefinition for a broken view.
pub fn stage(
    cx: &Context<'_>,
    request: &AggregateRequest,
    operand: Value<'_>,
) -> Result<Vec<DocBuf>> {
    if !request.namespace.ends_with(".$cmd.aggregate") {
        let text = "$listClusterCatalog must be run on a database with {aggregate: 1}";
        return Err(Error::location(9621301, text));
    }
    let with_shards = parse(operand)?;
    let catalog = cx.service.store.catalog();
    let mut databases: Vec<&Arc<Database>> = match cx.db {
        "admin" => catalog.databases().collect(),
        name => catalog.database(name).into_iter().collect(),
    };
    databases.sort_by(|a, b| a.name().cmp(b.name()));
    let mut rows = Vec::new();
    for database in databases {
        database.check_views()?;
        add_rows(database, with_shards, &mut rows);
    }
    Ok(rows)
}

/// Returns the value of `shards`.
///
/// `balancingConfiguration` adds fields to sharded collections only, and there are none.
fn parse(operand: Value<'_>) -> Result<bool> {
    let Value::Document(options) = operand else {
        let kind = operand.type_name();
        let text = format!("The $listClusterCatalog stage must be an object, but found: {kind}");
        return Err(Error::location(9621302, text));
    };
    let mut with_shards = false;
    for arg in fields("$listClusterCatalog", options) {
        match arg.name() {
            "shards" => with_shards = arg.bool()?,
            "balancingConfiguration" => drop(arg.bool()?),
            _ => return Err(arg.unknown()),
        }
    }
    Ok(with_shards)
}

fn add_rows(database: &Database, with_shards: bool, rows: &mut Vec<DocBuf>) {
    let row = |namespace: &Namespace, kind: &str, describe: &dyn Fn(&mut DocWriter<'_>)| {
        DocBuf::build(|row| {
            row.append("ns", namespace.as_str()).append("db", namespace.db()).append("type", kind);
            describe(row);
            row.append("sharded", false);
            if with_shards {
                row.array("shards").finish();
            }
        })
    };
    let collections = database.collections().map(|collection| {
        let describe = |row: &mut DocWriter<'_>| describe_collection(collection, row);
        (&collection.namespace, row(&collection.namespace, kind(collection), &describe))
    });
    let views = database.views().map(|view| {
        let describe = |row: &mut DocWriter<'_>| describe_view(view, row);
        (&view.namespace, row(&view.namespace, "view", &describe))
    });
    let mut named: Vec<(&Namespace, DocBuf)> = collections.chain(views).collect();
    named.sort_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
    rows.extend(named.into_iter().map(|(_, row)| row));
}
