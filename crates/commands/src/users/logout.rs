//! `logout`: ends the login of this connection.

use crate::frame::context::Context;
use crate::users::drop_user::refuse_arguments;
use quire_document::{Doc, DocWriter};
use quire_error::Result;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    refuse_arguments(cx, body)?;
    let is_own = |user: &quire_access::UserName| user.db == cx.db;
    if cx.connection.identity.as_ref().is_some_and(|identity| is_own(&identity.name)) {
        cx.connection.identity = None;
    }
    Ok(())
}
