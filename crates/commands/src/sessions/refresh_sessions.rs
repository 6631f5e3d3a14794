//! `refreshSessions`: marks sessions as used, so that they do not expire.

use super::named_sessions;
use crate::frame::context::Context;
use crate::frame::service::now_ms;
use quire_document::{Doc, DocWriter};
use quire_error::Result;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    const ELEMENT: &str = "RefreshSessionsCmdFromClient.refreshSessions";
    let ids = named_sessions(cx, "RefreshSessionsCmdFromClient", ELEMENT, body)?;
    let now = now_ms();
    ids.into_iter().try_for_each(|id| cx.service.touch_session(id, now).map(|_| ()))
}
