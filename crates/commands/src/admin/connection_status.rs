//! `connectionStatus`: who this connection is authenticated as. Without users: nobody.

use crate::args::arguments;
use crate::dispatch::Context;
use quire_document::{Doc, DocWriter};
use quire_error::Result;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut show_privileges = false;
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "showPrivileges" if arg.is_null() => {}
            "showPrivileges" => show_privileges = arg.bool()?,
            _ => return Err(arg.unknown()),
        }
    }
    let mut info = reply.document("authInfo");
    info.array("authenticatedUsers").finish();
    info.array("authenticatedUserRoles").finish();
    if show_privileges {
        info.array("authenticatedUserPrivileges").finish();
    }
    Ok(())
}
