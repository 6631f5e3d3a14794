//! `listIndexes`: the specifications of a collection's indexes.

use super::list_collections::batch_size;
use crate::args::arguments;
use crate::context::Context;
use quire_catalog::IndexState;
use quire_document::{Doc, DocBuf, DocWriter};
use quire_error::{Error, ErrorCode, Result};

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
    let Some(collection) = catalog.lookup(&namespace) else {
        let text = format!("ns does not exist: {namespace}");
        return Err(Error::new(ErrorCode::NamespaceNotFound, text));
    };
    let ready = collection.indexes.iter().filter(|index| index.state == IndexState::Ready);
    let row = |spec: DocBuf| match build_info {
        true => DocBuf::build(|writer| {
            writer.append("spec", &spec);
        }),
        false => spec,
    };
    let rows: Vec<DocBuf> = ready.map(|index| row(index.to_document())).collect();
    cx.list_reply(reply, namespace.as_str(), rows, batch)
}
