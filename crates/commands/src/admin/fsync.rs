//! `fsync` and `fsyncUnlock`: syncs all data, and blocks writes until they are unlocked. Reads
//! continue. The engine may still rewrite files while the lock is held, so a copy of the directory
//! must be made by `quire backup` and not by copying files.

use crate::frame::args::{Arg, arguments};
use crate::frame::context::Context;
use crate::frame::reply::from_storage;
use quire_document::{Doc, DocWriter, Value};
use quire_error::Result;
use quire_storage::Maintenance;
use std::time::Duration;

/// The default wait of a lock for running writes.
const PATIENCE_MS: i32 = 90_000;

/// Runs the command `fsync`.
pub fn lock(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut lock, mut patience_ms) = (false, PATIENCE_MS);
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "lock" | "fsyncLockAcquisitionTimeoutMillis" if arg.is_null() => {}
            "lock" => lock = arg.safe_bool()?,
            "fsyncLockAcquisitionTimeoutMillis" => patience_ms = int(&arg)?,
            _ => return Err(arg.unknown()),
        }
    }
    if !lock {
        flush(cx)?;
        reply.append("numFiles", 1);
        return Ok(());
    }
    // As in mongod, zero or a negative time means the default.
    let patience = u64::try_from(patience_ms).ok().filter(|ms| *ms > 0);
    let patience = Duration::from_millis(patience.unwrap_or(PATIENCE_MS as u64));
    let locks = cx.service.write_gate.close(&cx.interrupt, patience)?;
    if let Err(error) = flush(cx) {
        cx.service.write_gate.open()?;
        return Err(error);
    }
    reply.append("info", "now locked against writes, use db.fsyncUnlock() to unlock");
    reply.append("lockCount", locks);
    reply.append("seeAlso", "http://dochub.mongodb.org/core/fsynccommand");
    Ok(())
}

/// Runs the command `fsyncUnlock`. Like mongod it accepts any field.
pub fn unlock(cx: &mut Context<'_>, _body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let locks = cx.service.write_gate.open()?;
    reply.append("info", "fsyncUnlock completed").append("lockCount", locks);
    Ok(())
}

fn flush(cx: &Context<'_>) -> Result<()> {
    let engine = &cx.service.engine;
    engine.barrier(engine.version()).map_err(from_storage)?;
    engine.maintenance(Maintenance::Flush).map_err(from_storage)
}

fn int(arg: &Arg<'_>) -> Result<i32> {
    match arg.value() {
        Value::Int32(number) => Ok(number),
        _ => Err(arg.wrong_type("int")),
    }
}
