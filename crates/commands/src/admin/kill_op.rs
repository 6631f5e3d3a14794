//! `killOp`: stops a running operation. It always answers ok, as in MongoDB.

use crate::args::{arguments, missing};
use crate::dispatch::Context;
use quire_document::{Doc, DocWriter};
use quire_error::{Error, Result};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut op = None;
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "op" => {
                let text = "Expected \"op\" to be a number";
                op = Some(
                    crate::args::whole(arg.value()).ok_or_else(|| Error::type_mismatch(text))?,
                );
            }
            _ => return Err(arg.unknown()),
        }
    }
    let op = op.ok_or_else(|| missing(cx.command.name, "op"))?;
    if !(i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(&op) {
        return Err(Error::location(26823, "invalid op : must be a 32-bit number"));
    }
    cx.service.operations.kill(op);
    reply.append("info", "attempting to kill op");
    Ok(())
}
