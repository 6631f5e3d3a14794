//! `updateUser`: replaces fields of a user.

use crate::frame::accounts::write_roles;
use crate::frame::args::arguments;
use crate::frame::context::Context;
use crate::users::arguments::{UserFields, append_restrictions, user_name};
use crate::users::create_user::write_credentials;
use crate::users::mechanisms;
use quire_access::UserName;
use quire_access::scram::{Credential, Mechanism};
use quire_access::user::User;
use quire_document::{Doc, DocBuf, DocWriter};
use quire_error::{Error, ErrorCode, Result};

type Credentials = Vec<(Mechanism, Credential)>;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let name = user_name(cx, body)?;
    let mut fields = UserFields::default();
    let mut given = false;
    for arg in arguments(cx.command.name, body) {
        if !fields.read(cx, &arg)? {
            return Err(arg.unknown());
        }
        given = true;
    }
    if !given {
        return Err(Error::bad_value("Must specify at least one field to update in updateUser"));
    }
    if name.db == "$external" && fields.password.is_some() {
        let text = "Cannot set the password for users defined on the '$external' database";
        return Err(Error::bad_value(text));
    }
    let chosen = fields.chosen_mechanisms()?;
    // Hashing is slow on purpose: it is done once, not again for each attempt to commit.
    let fresh = match fields.password {
        Some(_) => {
            let chosen = chosen.clone().unwrap_or_else(|| mechanisms::enabled(cx));
            Some(fields.credentials(cx, &name, &chosen)?)
        }
        None => None,
    };
    cx.change_accounts(|accounts| {
        let old = accounts.user(&name)?.ok_or_else(|| not_found(&name))?;
        if let Some(roles) = &fields.roles {
            accounts.all_roles()?.check_exist(roles)?;
        }
        let stored = User::parse(old.doc.as_doc())?;
        let credentials = match (&fresh, &chosen) {
            (Some(fresh), _) => Some(fresh.clone()),
            (None, Some(chosen)) => Some(kept(&stored.credentials, chosen)?),
            (None, None) => None,
        };
        let new = updated(old.doc.as_doc(), &fields, credentials.as_ref());
        accounts.update_user(&old, &new)
    })
}

/// Returns the credentials to keep: without a new password mechanisms can only be removed.
fn kept(stored: &Credentials, chosen: &[Mechanism]) -> Result<Credentials> {
    let has = |mechanism: &Mechanism| stored.iter().any(|(own, _)| own == mechanism);
    if !chosen.iter().all(has) {
        let text = "mechanisms field must be a subset of previously set mechanisms";
        return Err(Error::bad_value(text));
    }
    Ok(stored.iter().filter(|(own, _)| chosen.contains(own)).cloned().collect())
}

fn updated(old: Doc<'_>, fields: &UserFields<'_>, credentials: Option<&Credentials>) -> DocBuf {
    DocBuf::build(|out| {
        for element in old.iter() {
            match element.key() {
                "credentials" if credentials.is_some() => {}
                "customData" if fields.custom_data.is_some() => {}
                "roles" if fields.roles.is_some() => {}
                "authenticationRestrictions" if fields.restrictions.is_some() => {}
                _ => {
                    out.append_element(element);
                }
            }
        }
        if let Some(credentials) = credentials {
            write_credentials(credentials, out);
        }
        if let Some(data) = fields.custom_data.filter(|data| !data.is_empty()) {
            out.append("customData", data);
        }
        if let Some(roles) = &fields.roles {
            write_roles(roles, out.array("roles"));
        }
        append_restrictions(out, fields.restrictions.as_ref());
    })
}

fn not_found(name: &UserName) -> Error {
    Error::new(ErrorCode::UserNotFound, format!("User {name} not found"))
}
