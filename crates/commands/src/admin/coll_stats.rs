//! `$collStats`, and `collStats` behind it: counts and sizes of one collection.

use crate::frame::args::{Arg, arguments, fields};
use crate::frame::context::Context;
use crate::frame::metrics::Latency;
use crate::frame::reply::number;
use crate::frame::service::now_ms;
use crate::frame::usage::CollectionUsage;
use quire_catalog::{Collection, IndexState, Namespace};
use quire_collections::collection_sizes;
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_planner::AggregateRequest;

/// Runs the command `collStats`.
pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut scale = 1;
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "scale" if !arg.is_null() => scale = arg.integer_from(1)?,
            "scale" => {}
            "waitForLock" | "numericOnly" if !arg.is_null() => {
                arg.bool()?;
            }
            "waitForLock" | "numericOnly" => {}
            _ => return Err(arg.unknown()),
        }
    }
    let namespace = cx.target(body)?;
    let catalog = cx.service.store.catalog();
    catalog.refuse_view(&namespace)?;
    reply.append("ns", namespace.as_str());
    storage_stats(cx, catalog.lookup(&namespace).map(|found| &**found), scale, reply)
}

/// The stage `$collStats`.
pub fn stage(
    cx: &Context<'_>,
    request: &AggregateRequest,
    operand: Value<'_>,
) -> Result<Vec<DocBuf>> {
    let Value::Document(spec) = operand else {
        let text = format!(
            "$collStats must take a nested object but found: $collStats: {}",
            quire_catalog::debug_value(operand)
        );
        return Err(Error::location(5447000, text));
    };
    if request.namespace.ends_with(".$cmd.aggregate") {
        let text = "{aggregate: 1} is not valid for '$collStats'; a collection is required.";
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    let namespace = Namespace::parse(&request.namespace)?;
    let catalog = cx.service.store.catalog();
    let collection = catalog.lookup(&namespace).map(|found| &**found);
    let strict = cx.generic.api.strict == Some(true);
    if strict && spec.fields().any(|(name, _)| name != "count") {
        let text = "only the 'count' option to $collStats is supported in API Version 1";
        return Err(Error::new(ErrorCode::APIStrictError, text));
    }
    let sections = sections(spec)?;
    let mut bytes = Vec::new();
    let mut row = DocWriter::new(&mut bytes);
    row.append("ns", namespace.as_str());
    row.append("host", crate::frame::host::host_name().as_str());
    row.append("localTime", Value::Date(now_ms()));
    for section in sections {
        write_section(cx, &namespace, collection, section, &mut row)?;
    }
    row.finish();
    Ok(vec![DocBuf::from_valid_bytes(bytes)])
}

/// What a `$collStats` shows.
#[derive(Clone, Copy)]
enum Section {
    Count,
    /// The number of bytes in one unit.
    Storage {
        scale: i64,
    },
    Latency {
        histograms: bool,
    },
    Executed,
}

/// Reads the operand: the sections in its order, each once. What is null is not asked for.
fn sections(spec: Doc<'_>) -> Result<Vec<Section>> {
    let mut sections: Vec<Section> = Vec::new();
    for arg in fields("$collStats", spec) {
        let nullable = ["count", "storageStats", "latencyStats", "queryExecStats"];
        if nullable.contains(&arg.name()) && arg.is_null() {
            continue;
        }
        let section = match arg.name() {
            "count" => {
                empty(&arg)?;
                Section::Count
            }
            "storageStats" => Section::Storage { scale: scale(arg.document()?)? },
            "latencyStats" => Section::Latency { histograms: histograms(arg.document()?)? },
            "queryExecStats" => {
                empty(&arg)?;
                Section::Executed
            }
            // There is one node.
            "targetAllNodes" => {
                arg.bool()?;
                continue;
            }
            "operationStats" => {
                return Err(Error::not_built(&format!("$collStats.{}", arg.name())));
            }
            _ => return Err(arg.unknown()),
        };
        let kind = std::mem::discriminant(&section);
        if !sections.iter().any(|known| std::mem::discriminant(known) == kind) {
            sections.push(section);
        }
    }
    Ok(sections)
}

/// Fails with 31170 for a document that is not empty.
fn empty(arg: &Arg<'_>) -> Result<()> {
    if arg.document()?.is_empty() {
        return Ok(());
    }
    let text = format!("the option '{}' of $collStats takes an empty document", arg.name());
    Err(Error::location(31170, text))
}

/// The unit of `storageStats`, at most what 32 bits hold. Other options have no effect in MongoDB
/// either.
fn scale(options: Doc<'_>) -> Result<i64> {
    let mut scale = 1;
    for option in fields("$collStats.storageStats", options) {
        match option.name() {
            "scale" if !option.is_null() => {
                scale = option.integer_from(1)?.min(i64::from(i32::MAX));
            }
            "waitForLock" | "numericOnly" => {
                option.bool()?;
            }
            _ => {}
        }
    }
    Ok(scale)
}

fn histograms(options: Doc<'_>) -> Result<bool> {
    let mut histograms = false;
    for option in fields("$collStats.latencyStats", options) {
        match option.name() {
            "histograms" => histograms = option.bool()?,
            _ => return Err(option.unknown()),
        }
    }
    Ok(histograms)
}

fn write_section(
    cx: &Context<'_>,
    namespace: &Namespace,
    collection: Option<&Collection>,
    section: Section,
    row: &mut DocWriter<'_>,
) -> Result<()> {
    if let Section::Latency { histograms } = section {
        let usage = collection.and_then(|found| cx.service.usage.get(found.id));
        latency_stats(usage.as_deref(), histograms, &mut row.document("latencyStats"));
        return Ok(());
    }
    let refused = cx.service.store.catalog().refuse_view(namespace);
    refused.map_err(|error| error.context("PlanExecutor error during aggregation"))?;
    let name = match section {
        Section::Count => "count",
        Section::Storage { .. } => "storageStats",
        Section::Latency { .. } | Section::Executed => "queryExecStats",
    };
    let Some(found) = collection else { return Err(not_found(cx, namespace, name)) };
    match section {
        Section::Count => {
            row.append("count", cx.service.store.counts(found).documents as i32);
        }
        Section::Storage { scale } => {
            storage_stats(cx, collection, scale, &mut row.document("storageStats"))?;
        }
        Section::Latency { .. } | Section::Executed => {
            let usage = cx.service.usage.get(found.id);
            let scans = usage.map_or(0, |usage| usage.collection_scans.get()) as i64;
            let mut stats = row.document("queryExecStats");
            let mut shown = stats.document("collectionScans");
            shown.append("total", scans).append("nonTailable", scans);
        }
    }
    Ok(())
}

fn not_found(cx: &Context<'_>, namespace: &Namespace, what: &str) -> Error {
    let missing = match cx.service.store.catalog().database(namespace.db()) {
        Some(_) => format!("Collection [{namespace}] not found."),
        None => format!("Database [{}] not found.", namespace.db()),
    };
    let text = format!(
        "PlanExecutor error during aggregation :: caused by :: Unable to retrieve {what} in \
         $collStats stage :: caused by :: {missing}"
    );
    Error::new(ErrorCode::NamespaceNotFound, text)
}

fn latency_stats(usage: Option<&CollectionUsage>, histograms: bool, writer: &mut DocWriter<'_>) {
    let none = Latency::default();
    for (name, latency) in [
        ("reads", usage.map(|usage| &usage.reads)),
        ("writes", usage.map(|usage| &usage.writes)),
        ("commands", usage.map(|usage| &usage.commands)),
        ("transactions", None),
    ] {
        latency.unwrap_or(&none).write(histograms, &mut writer.document(name));
    }
}

/// The sizes in units of `scale` bytes.
fn storage_stats(
    cx: &Context<'_>,
    collection: Option<&Collection>,
    scale: i64,
    writer: &mut DocWriter<'_>,
) -> Result<()> {
    let sizes = match collection {
        Some(collection) => collection_sizes(&cx.service.store, collection)?,
        None => quire_collections::CollectionSizes::default(),
    };
    let (documents, bytes) = (sizes.counts.documents as i64, sizes.counts.bytes as i64);
    let storage = sizes.storage_bytes as i64;
    let index_bytes: i64 = sizes.indexes.iter().map(|index| index.bytes as i64).sum();
    number(writer, "size", bytes / scale);
    number(writer, "count", documents);
    if documents > 0 {
        number(writer, "avgObjSize", bytes / documents);
    }
    number(writer, "numOrphanDocs", 0);
    number(writer, "storageSize", storage / scale);
    number(writer, "freeStorageSize", 0);
    if collection.is_some() {
        writer.append("capped", false);
    }
    writer.append("nindexes", sizes.indexes.len() as i32);
    writer.document("indexDetails").finish();
    {
        let mut builds = writer.array("indexBuilds");
        let indexes = collection.iter().flat_map(|collection| &collection.indexes);
        for index in indexes.filter(|index| index.state == IndexState::WriteOnly) {
            builds.push(index.name.as_str());
        }
    }
    number(writer, "totalIndexSize", index_bytes / scale);
    number(writer, "totalSize", (storage + index_bytes) / scale);
    {
        let mut list = writer.document("indexSizes");
        sizes
            .indexes
            .iter()
            .for_each(|index| number(&mut list, &index.name, index.bytes as i64 / scale));
    }
    number(writer, "scaleFactor", scale);
    Ok(())
}
