//! `killOp`: stops a running operation. Like MongoDB it always replies ok.

use crate::frame::context::Context;
use quire_access::{Action, Target};
use quire_document::{Doc, DocWriter};
use quire_error::{Error, ErrorCode, Result};

/// Like mongod it accepts any other field.
pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let Some(value) = body.get("op") else {
        return Err(Error::new(ErrorCode::NoSuchKey, "Missing expected field \"op\""));
    };
    if !value.is_number() {
        return Err(Error::type_mismatch("Expected \"op\" to be a number"));
    }
    let op = value.exact_i64().ok_or_else(|| {
        Error::bad_value(
            "Expected field \"op\" to have a value exactly representable as a 64-bit integer",
        )
    })?;
    if i32::try_from(op).is_err() {
        return Err(Error::location(26823, "invalid op : must be a 32-bit number"));
    }
    let owner = cx.service.operations.find(op).and_then(|operation| operation.user.clone());
    if owner.is_none_or(|owner| owner.owner != cx.owner()) {
        cx.require(Target::Cluster, Action::Killop)?;
    }
    if !cx.service.operations.kill(op) {
        cx.service.jobs.kill(op);
    }
    reply.append("info", "attempting to kill op");
    Ok(())
}
