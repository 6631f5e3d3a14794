//! `dbStats`: counts and sizes of a database.

use crate::frame::args::arguments;
use crate::frame::context::Context;
use quire_collections::collection_sizes;
use quire_document::{Doc, DocWriter};
use quire_error::Result;

/// The sums over the collections of a database.
#[derive(Default)]
struct Sums {
    collections: i64,
    views: i64,
    documents: u64,
    bytes: u64,
    storage_bytes: u64,
    indexes: i64,
    index_bytes: u64,
}

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut scale, mut free_storage) = (1, false);
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "scale" if !arg.is_null() => scale = arg.integer_from(1)?,
            "freeStorage" if !arg.is_null() => free_storage = arg.safe_bool()?,
            "scale" | "freeStorage" => {}
            _ => return Err(arg.unknown()),
        }
    }
    let sums = sums(cx)?;
    let scaled = |bytes: u64| bytes as f64 / scale as f64;
    reply.append("db", cx.db);
    reply.append("collections", sums.collections).append("views", sums.views);
    reply.append("objects", sums.documents as i64);
    let average = match sums.documents {
        0 => 0.0,
        documents => sums.bytes as f64 / documents as f64,
    };
    reply.append("avgObjSize", average);
    reply.append("dataSize", scaled(sums.bytes));
    reply.append("storageSize", scaled(sums.storage_bytes));
    // Space of deleted documents is not reused in place: compaction frees it.
    if free_storage {
        reply.append("freeStorageSize", 0.0);
    }
    reply.append("indexes", sums.indexes).append("indexSize", scaled(sums.index_bytes));
    if free_storage {
        reply.append("indexFreeStorageSize", 0.0);
    }
    reply.append("totalSize", scaled(sums.storage_bytes + sums.index_bytes));
    if free_storage {
        reply.append("totalFreeStorageSize", 0.0);
    }
    reply.append("scaleFactor", scale);
    let (used, total) = match sums.collections {
        0 => (0, 0),
        _ => file_system(cx),
    };
    reply.append("fsUsedSize", scaled(used)).append("fsTotalSize", scaled(total));
    Ok(())
}

fn sums(cx: &Context<'_>) -> Result<Sums> {
    let catalog = cx.service.store.catalog();
    let mut sums = Sums::default();
    let Some(database) = catalog.database(cx.db) else { return Ok(sums) };
    sums.views = database.views().count() as i64;
    for collection in database.collections() {
        let sizes = collection_sizes(&cx.service.store, collection)?;
        sums.collections += 1;
        sums.documents += sizes.counts.documents;
        sums.bytes += sizes.counts.bytes;
        sums.storage_bytes += sizes.storage_bytes;
        sums.indexes += sizes.indexes.len() as i64;
        sums.index_bytes += sizes.indexes.iter().map(|index| index.bytes).sum::<u64>();
    }
    Ok(sums)
}

/// Returns the used and the total bytes of the file system of the data; zeros for data in memory.
fn file_system(cx: &Context<'_>) -> (u64, u64) {
    let directory = cx.service.options.data_directory.as_ref();
    match directory.map(|directory| rustix::fs::statvfs(directory.as_path())) {
        Some(Ok(found)) => {
            let total = found.f_blocks.saturating_mul(found.f_frsize);
            (total.saturating_sub(found.f_bfree.saturating_mul(found.f_frsize)), total)
        }
        Some(Err(_)) | None => (0, 0),
    }
}
