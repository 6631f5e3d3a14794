//! `listIndexes`: the specifications of a collection's indexes, including those that are being
//! built.

use crate::frame::args::arguments;
use crate::frame::context::Context;
use crate::frame::profiler::SYSTEM_PROFILE;
use crate::frame::query_args::batch_size;
use quire_catalog::buckets::key_of_buckets;
use quire_catalog::{Index, IndexState};
use quire_collections::IndexBuild;
use quire_document::{Binary, Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::time_series::TimeSeriesOptions;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut batch, mut build_uuids, mut build_info) = (None, false, false);
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "cursor" if !arg.is_null() => {
                batch = batch_size("listIndexes.cursor", arg.document()?)?
            }
            "cursor" => {}
            "includeBuildUUIDs" => build_uuids = arg.safe_bool()?,
            "includeIndexBuildInfo" => build_info = arg.safe_bool()?,
            "isTimeseriesNamespace" => {
                arg.safe_bool()?;
            }
            _ => return Err(arg.unknown()),
        }
    }
    if build_uuids && build_info {
        let text = "Cannot set both includeBuildUUIDs and includeIndexBuildInfo to true";
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    let namespace = cx.target(body)?;
    let catalog = cx.service.store.catalog();
    catalog.refuse_view(&namespace)?;
    let series = catalog.series_of(&namespace);
    let Some(collection) = catalog.lookup(&namespace).or(series) else {
        let text = format!("ns does not exist: {namespace}");
        return Err(Error::new(ErrorCode::NamespaceNotFound, text));
    };
    let builds = cx.service.store.index_builds();
    let build_of = |index: &Index| match index.state {
        IndexState::Ready => None,
        IndexState::WriteOnly => builds.iter().find(|build| build.fills(index.id)),
    };
    let row = |index: &Index| {
        let spec = match series.and_then(|series| series.options.time_series()) {
            Some(options) => of_buckets(index, options),
            None => index.to_document(),
        };
        let build = build_of(index);
        if !build_info && (!build_uuids || build.is_none()) {
            return spec;
        }
        DocBuf::build(|row| {
            row.append("spec", &spec);
            match build {
                Some(build) if build_info => info(cx, build, &mut row.document("indexBuildInfo")),
                Some(build) => uuid(build, row),
                None => {}
            }
        })
    };
    // In MongoDB `system.profile` has no index, also none of `_id`.
    let listed = collection.listed_indexes().filter(|_| namespace.collection() != SYSTEM_PROFILE);
    let rows: Vec<DocBuf> = listed.map(|index| row(index)).collect();
    cx.list_reply(reply, namespace.as_str(), rows, batch, body)
}

/// Returns the specification of an index as the buckets of a time-series collection have it.
fn of_buckets(index: &Index, series: &TimeSeriesOptions) -> DocBuf {
    let own = index.to_document();
    DocBuf::build(|spec| {
        for element in own.as_doc().iter() {
            match (element.key(), element.value()) {
                ("key", Value::Document(key)) => {
                    spec.append("key", &key_of_buckets(series, key));
                }
                _ => {
                    spec.append_element(element);
                }
            }
        }
    })
}

fn uuid(build: &IndexBuild, row: &mut DocWriter<'_>) {
    row.append("buildUUID", Value::Binary(Binary { subtype: 4, bytes: &build.uuid.0 }));
}

/// Appends the state of a build. MongoDB calls builds that allow writes "hybrid"; a restart drops
/// their indexes.
fn info(cx: &Context<'_>, build: &IndexBuild, row: &mut DocWriter<'_>) {
    uuid(build, row);
    row.append("method", "Hybrid").append("phase", 1).append("phaseStr", "collection scan");
    let running = cx.service.operations.list();
    if let Some(operation) = running.iter().find(|one| build.is_stopped_by(&one.interrupt)) {
        row.append("opid", operation.id as i32);
    }
    row.append("resumable", false);
    row.document("replicationState").append("state", "In progress");
}
