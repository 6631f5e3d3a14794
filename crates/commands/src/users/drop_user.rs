//! `dropUser` and `dropAllUsersFromDatabase`: remove users.

use crate::frame::args::arguments;
use crate::frame::context::Context;
use crate::users::arguments::user_name;
use quire_document::{Doc, DocWriter};
use quire_error::{Error, ErrorCode, Result};

/// Runs the command `dropUser`.
pub fn one(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let name = user_name(cx, body)?;
    refuse_arguments(cx, body)?;
    cx.change_accounts(|accounts| {
        let old = accounts.user(&name)?.ok_or_else(|| {
            Error::new(ErrorCode::UserNotFound, format!("User '{name}' not found"))
        })?;
        accounts.delete_user(&old)
    })
}

/// Runs the command `dropAllUsersFromDatabase`.
pub fn all(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    refuse_arguments(cx, body)?;
    let removed = cx.change_accounts(|accounts| {
        let mut removed = 0;
        for record in accounts.users()? {
            if record.doc.get("db").and_then(|db| db.as_str()) == Some(cx.db) {
                accounts.delete_user(&record)?;
                removed += 1;
            }
        }
        Ok(removed)
    })?;
    reply.append("n", removed);
    Ok(())
}

/// Refuses arguments: these commands have none of their own.
pub fn refuse_arguments(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    match arguments(cx.command.name, body).next() {
        Some(arg) => Err(arg.unknown()),
        None => Ok(()),
    }
}
