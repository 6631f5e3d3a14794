//! `listIndexes`: the specifications of a collection's indexes.

use super::list_collections::batch_size;
use crate::args::arguments;
use crate::dispatch::Context;
use quire_catalog::IndexState;
use quire_document::{Doc, DocBuf, DocWriter};
use quire_error::{Error, ErrorCode, Result};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut batch = None;
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "cursor" if !arg.is_null() => {
                batch = batch_size("listIndexes.cursor", arg.document()?)?
            }
            "cursor" => {}
            "includeBuildUUIDs" | "includeIndexBuildInfo" | "isTimeseriesNamespace" => {
                arg.safe_bool()?;
            }
            _ => return Err(arg.unknown()),
        }
    }
    let namespace = cx.target(body)?;
    let catalog = cx.service.store.catalog();
    let Some(collection) = catalog.lookup(&namespace) else {
        let text = format!("ns does not exist: {namespace}");
        return Err(Error::new(ErrorCode::NamespaceNotFound, text));
    };
    let ready = collection.indexes.iter().filter(|index| index.state == IndexState::Ready);
    let rows: Vec<DocBuf> = ready.map(|index| index.to_document()).collect();
    cx.list_reply(reply, namespace.as_str(), rows, batch)
}
