//! `usersInfo`: users with their roles, and on request their privileges, restrictions or stored
//! credentials.

use crate::frame::accounts::{check_list_bytes, granted, users_namespace, write_roles};
use crate::frame::args::{Arg, arguments, missing};
use crate::frame::context::Context;
use crate::frame::matching::filter_documents;
use quire_access::{Inherited, UserName};
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use std::collections::HashSet;

/// The requested users.
enum Which {
    Named(HashSet<UserName>),
    OfDatabase,
    Everywhere,
}

struct Request<'a> {
    which: Which,
    show_credentials: bool,
    show_custom_data: bool,
    show_privileges: bool,
    show_restrictions: bool,
    filter: Option<Doc<'a>>,
}

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let request = parse(cx, body)?;
    let details = request.show_privileges || request.show_restrictions;
    if details && (!matches!(request.which, Which::Named(_)) || request.filter.is_some()) {
        let text = "Privilege or restriction details require exact-match usersInfo queries";
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    let stored = cx.service.stored_accounts(&users_namespace()?, &cx.interrupt, |doc| {
        let text = |name| doc.get(name).and_then(|value| value.as_str()).unwrap_or_default();
        match &request.which {
            Which::Named(names) => names.contains(&UserName::new(text("user"), text("db"))),
            Which::OfDatabase => text("db") == cx.db,
            Which::Everywhere => true,
        }
    })?;
    let roles = cx.service.roles()?;
    let (mut shown, mut bytes) = (Vec::with_capacity(stored.len()), 0);
    for user in &stored {
        cx.check_interrupt()?;
        let user = match details {
            true => detailed(user.as_doc(), &request, &roles.inherited(&granted(user.as_doc()))),
            false => brief(user.as_doc(), &request),
        };
        bytes += user.as_bytes().len();
        check_list_bytes(bytes)?;
        shown.push(user);
    }
    let kept = filter_documents(cx, request.filter.unwrap_or_default(), &shown)?;
    let mut users = reply.array("users");
    kept.into_iter().for_each(|user| {
        users.push(user);
    });
    Ok(())
}

fn parse<'a>(cx: &Context<'_>, body: Doc<'a>) -> Result<Request<'a>> {
    let mut request = Request {
        which: which(cx, body)?,
        show_credentials: false,
        show_custom_data: true,
        show_privileges: false,
        show_restrictions: false,
        filter: None,
    };
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "showCredentials" => request.show_credentials = arg.safe_bool()?,
            "showCustomData" => request.show_custom_data = arg.safe_bool()?,
            "showPrivileges" => request.show_privileges = arg.safe_bool()?,
            "showAuthenticationRestrictions" => request.show_restrictions = arg.safe_bool()?,
            "filter" => request.filter = Some(arg.document()?),
            _ => return Err(arg.unknown()),
        }
    }
    Ok(request)
}

fn which(cx: &Context<'_>, body: Doc<'_>) -> Result<Which> {
    let first = body.first().ok_or_else(|| missing(cx.command.name, cx.command.name))?;
    Ok(match first.value() {
        Value::Document(doc) if doc.contains("forAllDBs") => {
            match Arg::new(cx.command.name, first).document()?.get("forAllDBs") {
                Some(Value::Bool(true)) if doc.count() == 1 => Which::Everywhere,
                _ => return Err(Error::bad_value("forAllDBs must be true and stand alone")),
            }
        }
        Value::Array(names) => {
            let names = names.iter().map(|name| UserName::parse(name, cx.db));
            Which::Named(names.collect::<Result<_>>()?)
        }
        value @ (Value::String(_) | Value::Document(_)) => {
            Which::Named(HashSet::from([UserName::parse(value, cx.db)?]))
        }
        Value::Int32(1) | Value::Int64(1) => Which::OfDatabase,
        Value::Double(1.0) => Which::OfDatabase,
        _ => return Err(Error::bad_value("User and role names must be either strings or objects")),
    })
}

/// Returns a user's document with the names of its mechanisms.
fn brief(user: Doc<'_>, request: &Request<'_>) -> DocBuf {
    DocBuf::build(|out| {
        for element in user.iter() {
            match element.key() {
                "credentials" if !request.show_credentials => {}
                "customData" if !request.show_custom_data => {}
                "authenticationRestrictions" => {}
                _ => {
                    out.append_element(element);
                }
            }
        }
        write_mechanisms(user, out);
    })
}

/// Returns a user with everything that its roles grant.
fn detailed(user: Doc<'_>, request: &Request<'_>, inherited: &Inherited) -> DocBuf {
    DocBuf::build(|out| {
        for element in user.iter() {
            match element.key() {
                "roles" | "authenticationRestrictions" => {}
                "credentials" if !request.show_credentials => {}
                "customData" if !request.show_custom_data => {}
                _ => {
                    out.append_element(element);
                }
            }
        }
        write_mechanisms(user, out);
        if request.show_restrictions {
            let own = user.find("authenticationRestrictions");
            match own {
                Some(own) => drop(out.append_element(own)),
                None => out.array("authenticationRestrictions").finish(),
            }
        }
        write_roles(&granted(user), out.array("roles"));
        write_roles(&inherited.roles, out.array("inheritedRoles"));
        inherited.privileges.merged().write(out.array("inheritedPrivileges"));
        let mut restrictions = out.array("inheritedAuthenticationRestrictions");
        inherited.restrictions.iter().for_each(|list| {
            restrictions.push(list);
        });
    })
}

fn write_mechanisms(user: Doc<'_>, out: &mut DocWriter<'_>) {
    let credentials = user.get("credentials").and_then(|value| value.as_document());
    let mut names = out.array("mechanisms");
    for (name, _) in credentials.into_iter().flat_map(|stored| stored.fields()) {
        names.push(name);
    }
}
