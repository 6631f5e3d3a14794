//! `grantRolesToUser`, `revokeRolesFromUser`, `grantRolesToRole`, `revokeRolesFromRole`.

use crate::frame::accounts::{granted, with_roles};
use crate::frame::args::{arguments, missing};
use crate::frame::context::Context;
use crate::users::arguments::{check_roles_reach, role_name, user_name};
use crate::users::update_role::{check_not_built_in, role_not_found};
use quire_access::{RoleName, UserName};
use quire_document::{Doc, DocWriter};
use quire_error::{Error, ErrorCode, Result};

/// Runs the command `grantRolesToUser`.
pub fn to_user(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    change_user(cx, body, add)
}

/// Runs the command `revokeRolesFromUser`.
pub fn from_user(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    change_user(cx, body, remove)
}

/// Runs the command `grantRolesToRole`.
pub fn to_role(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    change_role(cx, body, add)
}

/// Runs the command `revokeRolesFromRole`.
pub fn from_role(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    change_role(cx, body, remove)
}

/// Changes a list of roles by the named roles.
type Change = fn(&mut Vec<RoleName>, &[RoleName]);

fn add(roles: &mut Vec<RoleName>, named: &[RoleName]) {
    let new: Vec<_> = named.iter().filter(|role| !roles.contains(role)).cloned().collect();
    roles.extend(new);
}

fn remove(roles: &mut Vec<RoleName>, named: &[RoleName]) {
    roles.retain(|role| !named.contains(role));
}

fn change_user(cx: &Context<'_>, body: Doc<'_>, change: Change) -> Result<()> {
    let name = user_name(cx, body)?;
    let named = named_roles(cx, body)?;
    cx.change_accounts(|accounts| {
        let old = accounts.user(&name)?.ok_or_else(|| user_not_found(&name))?;
        accounts.all_roles()?.check_exist(&named)?;
        let mut roles = granted(old.doc.as_doc());
        change(&mut roles, &named);
        accounts.update_user(&old, &with_roles(old.doc.as_doc(), &roles))
    })
}

fn change_role(cx: &Context<'_>, body: Doc<'_>, change: Change) -> Result<()> {
    let name = role_name(cx, body)?;
    let named = named_roles(cx, body)?;
    check_not_built_in(&name)?;
    check_roles_reach(&named, cx.db)?;
    cx.change_accounts(|accounts| {
        let old = accounts.role(&name)?.ok_or_else(|| role_not_found(&name))?;
        let all = accounts.all_roles()?;
        all.check_exist(&named)?;
        let mut roles = granted(old.doc.as_doc());
        change(&mut roles, &named);
        all.check_acyclic(&name, &roles)?;
        accounts.update_role(&old, &with_roles(old.doc.as_doc(), &roles))
    })
}

fn named_roles(cx: &Context<'_>, body: Doc<'_>) -> Result<Vec<RoleName>> {
    let command = cx.command.name;
    let mut roles = None;
    for arg in arguments(command, body) {
        match arg.name() {
            "roles" => roles = Some(RoleName::parse_list(arg.array()?, cx.db)?),
            _ => return Err(arg.unknown()),
        }
    }
    let roles = roles.ok_or_else(|| missing(command, "roles"))?;
    match roles.is_empty() {
        true => {
            let text = format!("{command} command requires a non-empty \"roles\" array");
            Err(Error::bad_value(text))
        }
        false => Ok(roles),
    }
}

fn user_not_found(name: &UserName) -> Error {
    let text = format!("Could not find user \"{}\" for db \"{}\"", name.user, name.db);
    Error::new(ErrorCode::UserNotFound, text)
}
