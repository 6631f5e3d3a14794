//! `listDatabases`: the databases with their sizes.

use crate::frame::args::arguments;
use crate::frame::context::Context;
use crate::frame::matching::filter_documents;
use crate::frame::query_args::owned;
use crate::frame::service::{Service, Topology};
use quire_access::{Action, Target};
use quire_collections::collection_sizes;
use quire_document::{Doc, DocBuf, DocWriter};
use quire_error::Result;
use std::collections::BTreeMap;

/// The databases that a replica set always has.
const ALWAYS: &[&str] = &["admin", "config", "local"];

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut filter, mut name_only, mut own_only) = (DocBuf::new(), false, None);
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "filter" => filter = owned(&arg)?,
            "nameOnly" if !arg.is_null() => name_only = arg.safe_bool()?,
            "authorizedDatabases" if !arg.is_null() => own_only = Some(arg.bool()?),
            "nameOnly" | "authorizedDatabases" => {}
            _ => return Err(arg.unknown()),
        }
    }
    let sees_all = cx.may(Target::Cluster, Action::ListDatabases);
    if own_only == Some(false) && !sees_all {
        return Err(cx.unauthorized());
    }
    let is_own = |name: &str| {
        let identity = cx.identity().filter(|_| own_only == Some(true) || !sees_all);
        identity.is_none_or(|identity| identity.privileges().allow_somewhere_in(name, Action::Find))
    };
    let rows: Vec<DocBuf> = sizes(cx.service, name_only)?
        .into_iter()
        .filter(|(name, _)| is_own(name))
        .map(|(name, bytes)| {
            DocBuf::build(|row| {
                row.append("name", name.as_str());
                if !name_only {
                    row.append("sizeOnDisk", bytes as i64).append("empty", bytes == 0);
                }
            })
        })
        .collect();
    let kept = filter_documents(cx, filter.as_doc(), &rows)?;
    {
        let mut databases = reply.array("databases");
        kept.iter().for_each(|row| {
            databases.push(*row);
        });
    }
    if !name_only {
        let size =
            |row: &&DocBuf| row.get("sizeOnDisk").and_then(crate::frame::args::whole).unwrap_or(0);
        let total: i64 = kept.iter().map(size).sum();
        reply.append("totalSize", total).append("totalSizeMb", total / (1024 * 1024));
    }
    Ok(())
}

/// Returns every database with the bytes that its collections and indexes take.
fn sizes(service: &Service, name_only: bool) -> Result<BTreeMap<String, u64>> {
    let mut databases = BTreeMap::new();
    if service.options.topology != Topology::Standalone {
        databases.extend(ALWAYS.iter().map(|name| ((*name).to_owned(), 4096)));
    }
    for database in service.store.catalog().databases() {
        let mut bytes = 0;
        for collection in database.collections().filter(|_| !name_only) {
            let sizes = collection_sizes(&service.store, collection)?;
            bytes +=
                sizes.storage_bytes + sizes.indexes.iter().map(|index| index.bytes).sum::<u64>();
        }
        databases.insert(database.name().to_owned(), bytes.max(4096));
    }
    Ok(databases)
}
