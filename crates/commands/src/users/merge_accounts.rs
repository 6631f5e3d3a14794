//! `_mergeAuthzCollections`: makes the users and roles that mongorestore has put into two
//! collections those of the server. Each document needs the rights of the commands that would have
//! the same effect (`merged_rights.rs`).

use crate::frame::accounts::{Accounts, granted};
use crate::frame::args::arguments;
use crate::frame::context::Context;
use crate::users::arguments::{check_privileges_reach, check_roles_reach};
use crate::users::create_role::check_name;
use crate::users::merged_rights::{may_merge_role, may_merge_user};
use quire_access::{Action, Role, RoleName, Target, User, UserName};
use quire_catalog::Namespace;
use quire_collections::Attempt;
use quire_document::{Doc, DocBuf, DocWriter};
use quire_error::{Error, Result};

/// The parsed arguments.
#[derive(Default)]
struct Request<'a> {
    users: &'a str,
    roles: &'a str,
    /// The database whose users and roles are merged; empty for all.
    db: &'a str,
    /// True to remove users and roles that are not among the new ones.
    drop: bool,
}

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let request = parse(cx, body)?;
    if request.users.is_empty() && request.roles.is_empty() {
        let text =
            "Must provide at least one of \"tempUsersCollection\" and \"tempRolesCollection\"";
        return Err(Error::bad_value(text));
    }
    let users = read(cx, request.users, &request)?;
    let roles = read(cx, request.roles, &request)?;
    let users: Vec<_> = users.into_iter().map(check_user).collect::<Result<_>>()?;
    let roles: Vec<_> = roles.into_iter().map(check_role).collect::<Result<_>>()?;
    cx.change_accounts(|accounts| {
        if !request.roles.is_empty() {
            merge_roles(cx, accounts, &roles, &request)?;
        }
        if !request.users.is_empty() {
            merge_users(cx, accounts, &users, &request)?;
        }
        Ok(())
    })
}

fn parse<'a>(cx: &Context<'_>, body: Doc<'a>) -> Result<Request<'a>> {
    let mut request = Request::default();
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "tempUsersCollection" => request.users = arg.string()?,
            "tempRolesCollection" => request.roles = arg.string()?,
            "db" => request.db = arg.string()?,
            "drop" => request.drop = arg.safe_bool()?,
            _ => return Err(arg.unknown()),
        }
    }
    Ok(request)
}

/// Returns the documents of a collection that belong to the requested database.
///
/// # Errors
/// 13 Unauthorized if the client may not read the collection.
fn read(cx: &Context<'_>, collection: &str, request: &Request<'_>) -> Result<Vec<DocBuf>> {
    if collection.is_empty() {
        return Ok(Vec::new());
    }
    let (db, name) = collection.split_once('.').unwrap_or((collection, ""));
    cx.require(Target::Collection(db, name), Action::Find)?;
    let is_wanted = |doc: Doc<'_>| {
        request.db.is_empty() || doc.get("db").and_then(|db| db.as_str()) == Some(request.db)
    };
    cx.service.stored_accounts(&Namespace::new(db, name)?, &cx.interrupt, is_wanted)
}

fn check_user(doc: DocBuf) -> Result<(UserName, DocBuf)> {
    let user = User::parse(doc.as_doc())?;
    check_id(doc.as_doc(), &user.name.id())?;
    Ok((user.name, doc))
}

fn check_role(doc: DocBuf) -> Result<(RoleName, DocBuf)> {
    let role = Role::parse(doc.as_doc())?;
    check_id(doc.as_doc(), &role.name.id())?;
    check_name(&role.name)?;
    check_roles_reach(&role.roles, &role.name.db)?;
    check_privileges_reach(&role.privileges, &role.name.db)?;
    Ok((role.name, doc))
}

fn check_id(doc: Doc<'_>, id: &str) -> Result<()> {
    match doc.get("_id").and_then(|id| id.as_str()) == Some(id) {
        true => Ok(()),
        false => Err(Error::bad_value(format!("the _id of the document must be '{id}'"))),
    }
}

fn merge_roles(
    cx: &Context<'_>,
    accounts: &mut Accounts<'_>,
    roles: &[(RoleName, DocBuf)],
    request: &Request<'_>,
) -> Attempt<()> {
    for (name, doc) in roles {
        let old = accounts.role(name)?;
        may_merge_role(cx, name, old.as_ref().map(|old| old.doc.as_doc()), doc.as_doc())?;
        match old {
            Some(old) => accounts.update_role(&old, doc)?,
            None => accounts.insert_role(doc)?,
        }
    }
    if request.drop {
        for old in accounts.role_records()? {
            let name = Role::parse(old.doc.as_doc())?.name;
            let is_kept = roles.iter().any(|(new, _)| *new == name);
            if !is_kept && (request.db.is_empty() || request.db == name.db) {
                cx.require(Target::Database(&name.db), Action::DropRole)?;
                accounts.delete_role(&name, &old)?;
            }
        }
    }
    let all = accounts.all_roles()?;
    for (name, doc) in roles {
        let inherited = granted(doc.as_doc());
        all.check_exist(&inherited)?;
        all.check_acyclic(name, &inherited)?;
    }
    Ok(())
}

fn merge_users(
    cx: &Context<'_>,
    accounts: &mut Accounts<'_>,
    users: &[(UserName, DocBuf)],
    request: &Request<'_>,
) -> Attempt<()> {
    let all = accounts.all_roles()?;
    for (name, doc) in users {
        all.check_exist(&granted(doc.as_doc()))?;
        let old = accounts.user(name)?;
        may_merge_user(cx, name, old.as_ref().map(|old| old.doc.as_doc()), doc.as_doc())?;
        match old {
            Some(old) => accounts.update_user(&old, doc)?,
            None => accounts.insert_user(doc)?,
        }
    }
    if request.drop {
        for old in accounts.users()? {
            let name = User::parse(old.doc.as_doc())?.name;
            let is_kept = users.iter().any(|(new, _)| *new == name);
            if !is_kept && (request.db.is_empty() || request.db == name.db) {
                cx.require(Target::Database(&name.db), Action::DropUser)?;
                accounts.delete_user(&old)?;
            }
        }
    }
    Ok(())
}
