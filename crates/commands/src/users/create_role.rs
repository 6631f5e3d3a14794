//! `createRole`: stores a role with its privileges and the roles that it inherits from.

use crate::frame::accounts::write_roles;
use crate::frame::args::{arguments, missing};
use crate::frame::context::Context;
use crate::users::arguments::{RoleFields, append_restrictions, role_name};
use quire_access::{RoleName, builtin};
use quire_collections::Failure;
use quire_document::{Doc, DocBuf, DocWriter};
use quire_error::{Error, ErrorCode, Result};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let name = role_name(cx, body)?;
    let mut fields = RoleFields::default();
    for arg in arguments(cx.command.name, body) {
        if !fields.read(cx, &arg)? {
            return Err(arg.unknown());
        }
    }
    if fields.privileges.is_none() {
        return Err(missing(cx.command.name, "privileges"));
    }
    let inherits = fields.roles.clone().ok_or_else(|| missing(cx.command.name, "roles"))?;
    check_name(&name)?;
    fields.check_reach(cx.db)?;
    if inherits.contains(&name) {
        let text = format!("Cannot grant role {name} to itself.");
        return Err(Error::new(ErrorCode::InvalidRoleModification, text));
    }
    let doc = document(&name, &fields, &inherits);
    cx.change_accounts(|accounts| {
        let all = accounts.all_roles()?;
        all.check_exist(&inherits)?;
        all.check_acyclic(&name, &inherits)?;
        accounts.insert_role(&doc).map_err(|failure| match failure {
            Failure::Error(error) if error.code() == ErrorCode::DuplicateKey => {
                Failure::Error(exists(&name))
            }
            other => other,
        })
    })
}

/// Refuses a name that a user-defined role must not have.
pub fn check_name(name: &RoleName) -> Result<()> {
    let text = match name.db.as_str() {
        _ if name.role.is_empty() => "Role name must be non-empty",
        "local" => "Cannot create roles in the local database",
        "$external" => "Cannot create roles in the $external database",
        _ if builtin::privileges(name).is_some() => {
            "Cannot create roles with the same name as a built-in role"
        }
        _ => return Ok(()),
    };
    Err(Error::bad_value(text))
}

fn document(name: &RoleName, fields: &RoleFields, inherits: &[RoleName]) -> DocBuf {
    DocBuf::build(|out| {
        out.append("_id", name.id().as_str()).append("role", &name.role).append("db", &name.db);
        if let Some(privileges) = &fields.privileges {
            privileges.write(out.array("privileges"));
        }
        write_roles(inherits, out.array("roles"));
        append_restrictions(out, fields.restrictions.as_ref());
    })
}

fn exists(name: &RoleName) -> Error {
    Error::location(51002, format!("Role \"{name}\" already exists"))
}
