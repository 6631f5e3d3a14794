//! `lockInfo`: the locks that are held. Document locks do not outlive a statement; the only other
//! lock is that of `fsync`.

use crate::frame::args::arguments;
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::Result;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    if let Some(arg) = arguments(cx.command.name, body).next() {
        return Err(arg.unknown());
    }
    let (locks, waiting) = cx.service.write_gate.state();
    let mut list = reply.array("lockInfo");
    if locks == 0 {
        return Ok(());
    }
    let mut entry = list.document();
    entry.append("resourceId", "{1: Global, 1}");
    {
        let mut granted = entry.array("granted");
        let mut holder = granted.document();
        holder.append("mode", "S").append("convertMode", "NONE");
        holder.append("enqueueAtFront", false).append("compatibleFirst", false);
        holder.append("debugInfo", "fsyncLockWorker");
    }
    let mut pending = entry.array("pending");
    for _ in 0..waiting {
        let mut writer = pending.document();
        writer.append("mode", "IX").append("convertMode", "NONE");
        writer.append("enqueueAtFront", false).append("compatibleFirst", false);
    }
    Ok(())
}
