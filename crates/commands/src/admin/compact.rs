//! `compact`: frees the space of deleted and overwritten documents and index entries. Collections
//! share files, so a compaction rewrites those of all collections. It runs if it would free enough
//! space of the named collection. Reads and writes continue. In a time-series collection it first packs all points that can be packed,
//! if `quireTimeSeriesClosing` is on.

use crate::frame::args::arguments;
use crate::frame::context::Context;
use crate::frame::parameters::table::TIME_SERIES_CLOSING;
use crate::frame::reply::{from_storage, number};
use crate::frame::service::{Topology, now_ms};
use crate::jobs::closing::close_points;
use quire_collections::{ClosePolicy, Closing, reclaimable_bytes, takes_buckets};
use quire_document::{Doc, DocWriter};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::{Engine, Maintenance};

/// The megabytes that a compaction must free to run, if the command does not say.
const TARGET_MB: i64 = 20;

struct Options {
    dry_run: bool,
    force: bool,
    target_mb: i64,
}

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let namespace = cx.service.store.catalog().stored_name(cx.target(body)?);
    let options = Options::parse(cx.command.name, body)?;
    if cx.service.options.topology != Topology::Standalone && !options.force {
        let text = "will not run compact on an active replica set primary as this will slow down \
                    other running operations. use force:true to force";
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    let catalog = cx.service.store.catalog();
    if catalog.view(&namespace).is_some() {
        return Err(Error::new(ErrorCode::CommandNotSupportedOnView, "can't compact a view"));
    }
    let Some(collection) = catalog.lookup(&namespace) else {
        return Err(Error::new(ErrorCode::NamespaceNotFound, "collection does not exist"));
    };
    if takes_buckets(collection)
        && cx.service.parameters.flag(TIME_SERIES_CLOSING)
        && !options.dry_run
    {
        let policy = ClosePolicy { now_ms: now_ms(), everything: true, is_forced: true };
        close_points(cx.service, &mut Closing::new(collection, policy), &cx.interrupt)?;
    }
    let engine = &*cx.service.engine;
    engine.maintenance(Maintenance::Flush).map_err(from_storage)?;
    let reclaimable = reclaimable_bytes(&cx.service.store, collection)?;
    if options.dry_run {
        number(reply, "estimatedBytesFreed", reclaimable as i64);
        return Ok(());
    }
    let freed = match (reclaimable >> 20) as i64 >= options.target_mb {
        true => compact(engine)?,
        false => 0,
    };
    number(reply, "bytesFreed", freed as i64);
    Ok(())
}

/// Compacts all data. Returns by how many bytes the tables have shrunk, at least 0: other clients'
/// writes can make them grow meanwhile.
fn compact(engine: &dyn Engine) -> Result<u64> {
    let table_bytes = || {
        let stats = engine.stats();
        stats.disk_bytes.saturating_sub(stats.journal_bytes)
    };
    let before = table_bytes();
    engine.maintenance(Maintenance::Compact).map_err(from_storage)?;
    Ok(before.saturating_sub(table_bytes()))
}

impl Options {
    fn parse(command: &'static str, body: Doc<'_>) -> Result<Options> {
        let mut options = Options { dry_run: false, force: false, target_mb: TARGET_MB };
        for arg in arguments(command, body) {
            match arg.name() {
                "dryRun" | "force" | "freeSpaceTargetMB" if arg.is_null() => {}
                "dryRun" => options.dry_run = arg.bool()?,
                "force" => options.force = arg.bool()?,
                "freeSpaceTargetMB" => options.target_mb = arg.integer_from(1)?,
                _ => return Err(arg.unknown()),
            }
        }
        Ok(options)
    }
}
