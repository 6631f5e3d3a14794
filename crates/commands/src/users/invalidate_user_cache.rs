//! `invalidateUserCache`: makes every connection read its user's rights again.

use crate::frame::context::Context;
use crate::users::drop_user::refuse_arguments;
use quire_document::{Doc, DocWriter};
use quire_error::Result;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    refuse_arguments(cx, body)?;
    cx.service.access.changed();
    Ok(())
}
