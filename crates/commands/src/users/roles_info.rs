//! `rolesInfo`: roles with those that they inherit from, and on request their privileges and
//! restrictions.

use crate::frame::accounts::{check_list_bytes, write_roles};
use crate::frame::args::{Arg, arguments, missing};
use crate::frame::context::Context;
use quire_access::{Role, RoleName, Roles, builtin};
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, Result};

#[derive(Default)]
struct Options {
    privileges: bool,
    restrictions: bool,
    built_in: bool,
}

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let names = names(cx, body)?;
    let options = parse(cx, body)?;
    let roles = cx.service.roles()?;
    let mut out = reply.array("roles");
    let names = match names {
        Some(names) => names,
        None => {
            let stored = roles.of_database(cx.db).into_iter().map(|role| role.name.clone());
            let built_in = match options.built_in {
                true => builtin::roles_of(cx.db),
                false => Vec::new(),
            };
            stored.chain(built_in).collect()
        }
    };
    for name in names {
        cx.check_interrupt()?;
        check_list_bytes(out.len())?;
        if let Some(role) = roles.get(&name) {
            write_stored(role, &roles, &options, &mut out.document());
        } else if builtin::privileges(&name).is_some() {
            write_built_in(&name, &options, &mut out.document());
        }
    }
    check_list_bytes(out.len())
}

/// Returns the named roles; `None` for all roles of the database.
fn names(cx: &Context<'_>, body: Doc<'_>) -> Result<Option<Vec<RoleName>>> {
    let first = body.first().ok_or_else(|| missing(cx.command.name, cx.command.name))?;
    match first.value() {
        Value::Array(names) => RoleName::parse_list(names, cx.db).map(Some),
        value @ (Value::String(_) | Value::Document(_)) => {
            Ok(Some(vec![RoleName::parse(value, cx.db)?]))
        }
        Value::Int32(1) | Value::Int64(1) => Ok(None),
        Value::Double(1.0) => Ok(None),
        _ => Err(Error::bad_value("User and role names must be either strings or objects")),
    }
}

fn parse(cx: &Context<'_>, body: Doc<'_>) -> Result<Options> {
    let mut options = Options::default();
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "showPrivileges" => options.privileges = show_privileges(&arg)?,
            "showAuthenticationRestrictions" => options.restrictions = arg.safe_bool()?,
            "showBuiltinRoles" => options.built_in = arg.safe_bool()?,
            _ => return Err(arg.unknown()),
        }
    }
    Ok(options)
}

fn show_privileges(arg: &Arg<'_>) -> Result<bool> {
    match arg.value() {
        Value::Bool(flag) => Ok(flag),
        Value::String("asUserFragment") => Err(Error::not_built("rolesInfo as a user fragment")),
        other => Err(Error::bad_value(format!(
            "Failed to parse 'showPrivileges'. 'showPrivileges' should either be a boolean or the string 'asUserFragment', given: showPrivileges: {}",
            quire_document::message(other)
        ))),
    }
}

fn write_stored(role: &Role, roles: &Roles, options: &Options, out: &mut DocWriter<'_>) {
    let inherited = roles.inherited(&role.roles);
    out.append("_id", role.name.id().as_str());
    out.append("role", &role.name.role).append("db", &role.name.db);
    if options.privileges {
        role.privileges.write(out.array("privileges"));
    }
    write_roles(&role.roles, out.array("roles"));
    if options.restrictions {
        let mut lists = out.array("authenticationRestrictions");
        role.restrictions.iter().for_each(|list| {
            lists.push(list);
        });
    }
    write_roles(&inherited.roles, out.array("inheritedRoles"));
    if options.privileges {
        let mut all = role.privileges.clone();
        all.append_all(&inherited.privileges);
        all.write(out.array("inheritedPrivileges"));
    }
    if options.restrictions {
        let mut lists = out.array("inheritedAuthenticationRestrictions");
        role.restrictions.iter().chain(&inherited.restrictions).for_each(|list| {
            lists.push(list);
        });
    }
    out.append("isBuiltin", false);
}

fn write_built_in(name: &RoleName, options: &Options, out: &mut DocWriter<'_>) {
    let privileges = builtin::privileges(name).filter(|_| options.privileges);
    out.append("db", &name.db).append("role", &name.role);
    out.array("roles").finish();
    if let Some(privileges) = &privileges {
        privileges.write(out.array("privileges"));
    }
    if options.restrictions {
        out.array("authenticationRestrictions").finish();
    }
    out.array("inheritedRoles").finish();
    if let Some(privileges) = &privileges {
        privileges.write(out.array("inheritedPrivileges"));
    }
    if options.restrictions {
        out.array("inheritedAuthenticationRestrictions").finish();
    }
    out.append("isBuiltin", true);
}
