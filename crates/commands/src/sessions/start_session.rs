//! `startSession`: creates a session with a new id.

use crate::frame::context::Context;
use crate::frame::service::now_ms;
use quire_document::{Binary, Doc, DocWriter, Value};
use quire_error::Result;
use quire_session::SessionId;
use quire_storage::rng;

pub fn run(cx: &mut Context<'_>, _body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let id = SessionId::without_user(rng::uuid());
    cx.service.touch_session(id, now_ms())?;
    let uuid = Binary { subtype: 4, bytes: &id.id };
    reply.document("id").append("id", Value::Binary(uuid));
    let timeout = cx.service.parameters.number("localLogicalSessionTimeoutMinutes");
    reply.append("timeoutMinutes", timeout as i32);
    Ok(())
}
