//! `logout`: ends the login of this connection.

use crate::frame::audit::LogoutReason;
use crate::frame::context::Context;
use crate::users::drop_user::refuse_arguments;
use quire_document::{Doc, DocWriter};
use quire_error::Result;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    refuse_arguments(cx, body)?;
    let is_own = |user: &quire_access::UserName| user.db == cx.db;
    if let Some(identity) = cx.connection.identity.take_if(|identity| is_own(&identity.name)) {
        let since = cx.connection.login_ms;
        cx.connection.audit_logout(&identity.name, since, LogoutReason::Asked);
    }
    Ok(())
}
