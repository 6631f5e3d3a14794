//! `updateRole`: replaces fields of a role.

use crate::frame::accounts::write_roles;
use crate::frame::args::arguments;
use crate::frame::context::Context;
use crate::users::arguments::{RoleFields, append_restrictions, role_name};
use quire_access::{RoleName, builtin};
use quire_document::{Doc, DocBuf, DocWriter};
use quire_error::{Error, ErrorCode, Result};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let name = role_name(cx, body)?;
    let mut fields = RoleFields::default();
    let mut given = false;
    for arg in arguments(cx.command.name, body) {
        if !fields.read(cx, &arg)? {
            return Err(arg.unknown());
        }
        given = true;
    }
    if !given {
        return Err(Error::bad_value("Must specify at least one field to update in updateRole"));
    }
    if builtin::privileges(&name).is_some() {
        // No stored role has the name.
        return Err(role_not_found(&name));
    }
    fields.check_reach(cx.db)?;
    cx.change_accounts(|accounts| {
        let old = accounts.role(&name)?.ok_or_else(|| role_not_found(&name))?;
        if let Some(roles) = &fields.roles {
            let all = accounts.all_roles()?;
            all.check_exist(roles)?;
            all.check_acyclic(&name, roles)?;
        }
        accounts.update_role(&old, &updated(old.doc.as_doc(), &fields))
    })
}

fn updated(old: Doc<'_>, fields: &RoleFields) -> DocBuf {
    DocBuf::build(|out| {
        for element in old.iter() {
            match (element.key(), &fields.privileges, &fields.roles) {
                ("privileges", Some(privileges), _) => {
                    privileges.write(out.array("privileges"));
                }
                ("roles", _, Some(roles)) => write_roles(roles, out.array("roles")),
                ("authenticationRestrictions", ..) if fields.restrictions.is_some() => {}
                _ => {
                    out.append_element(element);
                }
            }
        }
        append_restrictions(out, fields.restrictions.as_ref());
    })
}

/// Fails for a built-in role.
///
/// # Errors
/// 49 InvalidRoleModification.
pub fn check_not_built_in(name: &RoleName) -> Result<()> {
    match builtin::privileges(name) {
        None => Ok(()),
        Some(_) => {
            let text = format!("{name} is a built-in role and cannot be modified");
            Err(Error::new(ErrorCode::InvalidRoleModification, text))
        }
    }
}

/// Returns the error for a role that is not stored.
pub fn role_not_found(name: &RoleName) -> Error {
    Error::new(ErrorCode::RoleNotFound, format!("Role {name} not found"))
}
