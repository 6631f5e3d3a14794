//! `startSession`: a session with a fresh id.

use crate::frame::context::Context;
use crate::frame::service::{now_ms, random_u64};
use quire_document::{Binary, Doc, DocWriter, Value};
use quire_error::Result;
use quire_session::SessionId;

pub fn run(cx: &mut Context<'_>, _body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let id = SessionId::of_nobody(random_uuid());
    cx.service.touch_session(id, now_ms())?;
    let uuid = Binary { subtype: 4, bytes: &id.id };
    reply.document("id").append("id", Value::Binary(uuid));
    let timeout = cx.service.parameters.number("localLogicalSessionTimeoutMinutes");
    reply.append("timeoutMinutes", timeout as i32);
    Ok(())
}

/// A random (version 4) UUID.
fn random_uuid() -> [u8; 16] {
    let bits = u128::from(random_u64()) << 64 | u128::from(random_u64());
    let mut bytes = bits.to_be_bytes();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}
