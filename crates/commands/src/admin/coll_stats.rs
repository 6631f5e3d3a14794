//! `$collStats`, and the command `collStats` that uses it: counts and sizes of one collection.

use crate::frame::args::arguments;
use crate::frame::context::Context;
use crate::frame::metrics::Latency;
use crate::frame::reply::{number, of_aggregate};
use crate::frame::service::{Service, now_ms};
use crate::frame::usage::CollectionUsage;
use quire_catalog::patterns::PatternState;
use quire_catalog::time_series::BUCKETS;
use quire_catalog::{Collection, IndexState, Namespace, OPLOG};
use quire_collections::collection_sizes;
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::stage::{CollStats, StatsSection};
use quire_planner::AggregateRequest;
use std::sync::atomic::Ordering;

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
    storage_stats(cx.service, catalog.lookup(&namespace).map(|found| &**found), scale, reply)
}

/// Returns the stage `$collStats` at the beginning of an `aggregate`.
pub fn stage(
    cx: &Context<'_>,
    request: &AggregateRequest,
    operand: Value<'_>,
) -> Result<Vec<DocBuf>> {
    let api_strict = cx.generic.api.strict == Some(true);
    rows(cx.service, &request.namespace, operand, api_strict)
}

/// Returns the one document of a `$collStats` on `namespace`.
pub fn rows(
    service: &Service,
    namespace: &str,
    operand: Value<'_>,
    api_strict: bool,
) -> Result<Vec<DocBuf>> {
    let asked = CollStats::parse(operand, api_strict)?;
    let namespace = Namespace::parse(namespace)?;
    let catalog = service.store.catalog();
    let collection = catalog.lookup(&namespace).map(|found| &**found);
    let mut bytes = Vec::new();
    let mut row = DocWriter::new(&mut bytes);
    row.append("ns", namespace.as_str());
    row.append("host", crate::frame::host::host_name().as_str());
    row.append("localTime", Value::Date(now_ms()));
    for section in asked.sections {
        write_section(service, &namespace, collection, section, &mut row)?;
    }
    row.finish();
    Ok(vec![DocBuf::from_valid_bytes(bytes)])
}

fn write_section(
    service: &Service,
    namespace: &Namespace,
    collection: Option<&Collection>,
    section: StatsSection,
    row: &mut DocWriter<'_>,
) -> Result<()> {
    if let StatsSection::Latency { histograms } = section {
        let usage = match collection {
            Some(found) => service.usage.get(found.id),
            None => service.usage.get_by_name(namespace.as_str()),
        };
        latency_stats(usage.as_deref(), histograms, &mut row.document("latencyStats"));
        return Ok(());
    }
    let refused = service.store.catalog().refuse_view(namespace);
    refused.map_err(|error| of_aggregate(namespace.as_str(), error))?;
    let name = match section {
        StatsSection::Count => "count",
        StatsSection::Storage { .. } => "storageStats",
        StatsSection::Latency { .. } | StatsSection::Executed => "queryExecStats",
    };
    let Some(found) = collection else { return Err(not_found(service, namespace, name)) };
    match section {
        StatsSection::Count => {
            row.append("count", service.store.counts(found).documents as i32);
        }
        StatsSection::Storage { scale } => {
            storage_stats(service, collection, scale, &mut row.document("storageStats"))?;
        }
        StatsSection::Latency { .. } | StatsSection::Executed => {
            let usage = service.usage.get(found.id);
            let scans = usage.map_or(0, |usage| usage.collection_scans.get()) as i64;
            let mut stats = row.document("queryExecStats");
            let mut shown = stats.document("collectionScans");
            shown.append("total", scans).append("nonTailable", scans);
        }
    }
    Ok(())
}

fn not_found(service: &Service, namespace: &Namespace, what: &str) -> Error {
    let missing = match service.store.catalog().database(namespace.db()) {
        Some(_) => format!("Collection [{namespace}] not found."),
        None => format!("Database [{}] not found.", namespace.db()),
    };
    let text = format!("Unable to retrieve {what} in $collStats stage :: caused by :: {missing}");
    of_aggregate(namespace.as_str(), Error::new(ErrorCode::NamespaceNotFound, text))
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

/// Returns the sizes in units of `scale` bytes.
fn storage_stats(
    service: &Service,
    collection: Option<&Collection>,
    scale: i64,
    writer: &mut DocWriter<'_>,
) -> Result<()> {
    let mut sizes = match collection {
        Some(collection) => collection_sizes(&service.store, collection)?,
        None => quire_collections::CollectionSizes::default(),
    };
    if collection.is_some_and(|collection| collection.namespace.as_str() == OPLOG) {
        // The change log is shown in place of the collection.
        sizes.storage_bytes = service.store.change_log_bytes()?;
        sizes.counts.bytes = sizes.storage_bytes;
    }
    let (documents, bytes) = (sizes.counts.documents as i64, sizes.counts.bytes as i64);
    let storage = sizes.storage_bytes as i64;
    let index_bytes: i64 = sizes.indexes.iter().map(|index| index.bytes as i64).sum();
    number(writer, "size", bytes / scale);
    match collection.filter(|collection| collection.is_time_series()) {
        Some(series) => series_stats(service, series, &mut writer.document("timeseries"))?,
        None => {
            number(writer, "count", documents);
            if documents > 0 {
                number(writer, "avgObjSize", bytes / documents);
            }
        }
    }
    number(writer, "numOrphanDocs", 0);
    number(writer, "storageSize", storage / scale);
    number(writer, "freeStorageSize", 0);
    if let Some(collection) = collection {
        let capped = collection.options.capped();
        writer.append("capped", capped.is_some());
        if let Some(capped) = capped {
            number(writer, "max", capped.shown_max());
            number(writer, "maxSize", capped.bytes_max as i64 / scale);
        }
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
    collection.map_or(Ok(()), |collection| pattern_stats(service, collection, writer))
}

/// Writes the number of buckets of a time-series collection.
fn series_stats(
    service: &Service,
    collection: &Collection,
    stats: &mut DocWriter<'_>,
) -> Result<()> {
    let namespace = &collection.namespace;
    let buckets = format!("{}.{BUCKETS}{}", namespace.db(), namespace.collection());
    stats.append("bucketsNs", buckets.as_str());
    let view = service.store.read_view()?;
    let (count, _) = view.view().bucket_counts(collection)?;
    number(stats, "bucketCount", count as i64);
    Ok(())
}

/// Writes what the declared patterns have done since the start of the process, and what they have
/// left to do.
fn pattern_stats(
    service: &Service,
    collection: &Collection,
    writer: &mut DocWriter<'_>,
) -> Result<()> {
    let declared = &collection.patterns.declared;
    if declared.is_empty() {
        return Ok(());
    }
    let lags = service.store.pattern_lag(collection)?;
    let mut patterns = writer.document("patterns");
    for (pattern, lag) in declared.iter().zip(&lags) {
        let mut stats = patterns.document(&pattern.name);
        stats.append("state", pattern.state.name());
        {
            let seconds = lag.since_ms.map_or(0, |since| (now_ms() - since).max(0) / 1000);
            let mut shown = stats.document("lag");
            number(&mut shown, "tasks", lag.tasks as i64);
            number(&mut shown, "seconds", seconds);
            let stopped = match &pattern.state {
                PatternState::Stopped(reason) => Some(reason),
                _ => lag.reason.as_ref(),
            };
            if let Some(reason) = stopped {
                shown.append("reason", reason.as_str());
            }
        }
        let meters = &pattern.meters;
        for (name, counter) in [
            ("derivedWrites", &meters.derived),
            ("ignoredWrites", &meters.ignored),
            ("rejectedWrites", &meters.rejected),
        ] {
            number(&mut stats, name, counter.load(Ordering::Relaxed));
        }
    }
    Ok(())
}
