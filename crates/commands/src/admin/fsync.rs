//! `fsync` and `fsyncUnlock`: everything to disk, and writers held back until they are let in
//! again. Readers go on. The engine may still rewrite files by itself while the lock is held:
//! a copy of the directory is made by `quire backup`, not by copying files.

use crate::frame::args::{Arg, arguments};
use crate::frame::context::Context;
use crate::frame::reply::from_storage;
use quire_document::{Doc, DocWriter, Value};
use quire_error::Result;
use quire_storage::Maintenance;
use std::time::Duration;

/// How long a lock waits for the writes that are running.
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
    // As in mongod, no time or a negative one is the usual time.
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

/// `fsyncUnlock`. As mongod does, it takes any field.
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
