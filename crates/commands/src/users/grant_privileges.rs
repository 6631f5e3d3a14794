//! `grantPrivilegesToRole` and `revokePrivilegesFromRole`.

use crate::frame::args::{arguments, missing};
use crate::frame::context::Context;
use crate::users::arguments::{check_privileges_reach, role_name};
use crate::users::update_role::{check_not_built_in, role_not_found};
use quire_access::{Privileges, Role};
use quire_document::{Doc, DocBuf, DocWriter};
use quire_error::{Error, Result};

/// Runs the command `grantPrivilegesToRole`.
pub fn grant(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    change(cx, body, |own, named| own.grant_all(named.iter().cloned()))
}

/// Runs the command `revokePrivilegesFromRole`.
pub fn revoke(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    change(cx, body, Privileges::revoke_all)
}

fn change(cx: &Context<'_>, body: Doc<'_>, change: fn(&mut Privileges, &Privileges)) -> Result<()> {
    let name = role_name(cx, body)?;
    let named = named_privileges(cx, body)?;
    check_not_built_in(&name)?;
    check_privileges_reach(&named, cx.db)?;
    cx.change_accounts(|accounts| {
        let old = accounts.role(&name)?.ok_or_else(|| role_not_found(&name))?;
        let mut privileges = Role::parse(old.doc.as_doc())?.privileges;
        change(&mut privileges, &named);
        let new = DocBuf::build(|out| {
            for element in old.doc.as_doc().iter() {
                match element.key() {
                    "privileges" => privileges.write(out.array("privileges")),
                    _ => {
                        out.append_element(element);
                    }
                }
            }
        });
        accounts.update_role(&old, &new)
    })
}

fn named_privileges(cx: &Context<'_>, body: Doc<'_>) -> Result<Privileges> {
    let command = cx.command.name;
    let mut privileges = None;
    for arg in arguments(command, body) {
        match arg.name() {
            "privileges" => privileges = Some(Privileges::parse(arg.array()?)?),
            _ => return Err(arg.unknown()),
        }
    }
    let privileges = privileges.ok_or_else(|| missing(command, "privileges"))?;
    match privileges.is_empty() {
        false => Ok(privileges),
        true => {
            let text = format!("{command} command requires a non-empty \"privileges\" array");
            Err(Error::bad_value(text))
        }
    }
}
