//! `dropRole` and `dropAllRolesFromDatabase`: remove roles, also from the users and roles that have
//! them.

use crate::frame::context::Context;
use crate::users::arguments::role_name;
use crate::users::drop_user::refuse_arguments;
use crate::users::update_role::{check_not_built_in, role_not_found};
use quire_document::{Doc, DocWriter};
use quire_error::Result;

/// Runs the command `dropRole`.
pub fn one(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let name = role_name(cx, body)?;
    refuse_arguments(cx, body)?;
    check_not_built_in(&name)?;
    cx.change_accounts(|accounts| {
        let old = accounts.role(&name)?.ok_or_else(|| role_not_found(&name))?;
        accounts.delete_role(&name, &old)
    })
}

/// Runs the command `dropAllRolesFromDatabase`.
pub fn all(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    refuse_arguments(cx, body)?;
    let removed = cx.change_accounts(|accounts| {
        let roles = accounts.all_roles()?;
        let mut removed = 0;
        for role in roles.of_database(cx.db) {
            // Removing one role may have changed the document of another role.
            if let Some(old) = accounts.role(&role.name)? {
                accounts.delete_role(&role.name, &old)?;
                removed += 1;
            }
        }
        Ok(removed)
    })?;
    reply.append("n", removed);
    Ok(())
}
