//! `createUser`: stores a user with the credentials of the password, and roles.

use crate::frame::accounts::write_roles;
use crate::frame::args::{arguments, missing};
use crate::frame::context::Context;
use crate::users::arguments::{UserFields, append_restrictions, user_name};
use crate::users::mechanisms;
use quire_access::scram::{Credential, Mechanism};
use quire_access::{RoleName, UserName};
use quire_collections::Failure;
use quire_document::{Binary, Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let name = user_name(cx, body)?;
    let mut fields = UserFields::default();
    for arg in arguments(cx.command.name, body) {
        if !fields.read(cx, &arg)? {
            return Err(arg.unknown());
        }
    }
    let roles = fields.roles.take().ok_or_else(|| missing(cx.command.name, "roles"))?;
    check_password_given(&fields, &name)?;
    let credentials = match fields.password {
        None => Vec::new(),
        Some(_) => {
            let chosen = fields.chosen_mechanisms()?;
            let chosen = chosen.unwrap_or_else(|| mechanisms::enabled(cx));
            fields.credentials(cx, &name, &chosen)?
        }
    };
    if name.user.is_empty() {
        return Err(Error::bad_value("User document needs 'user' field to be non-empty"));
    }
    let doc = document(&name, &fields, &credentials, &roles)?;
    cx.change_accounts(|accounts| {
        accounts.all_roles()?.check_exist(&roles)?;
        accounts.insert_user(&doc).map_err(|failure| match failure {
            Failure::Error(error) if error.code() == ErrorCode::DuplicateKey => {
                Failure::Error(exists(&name))
            }
            other => other,
        })
    })
}

/// Checks that a password is given, except for users of `$external`, who log in with a certificate.
fn check_password_given(fields: &UserFields<'_>, name: &UserName) -> Result<()> {
    let is_external = name.db == "$external";
    let text = match (fields.password, is_external) {
        (None, false) => {
            "Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source db"
        }
        (Some(_), true) => "Cannot set the password for users defined on the '$external' database",
        _ if name.db == "local" => "Cannot create users in the local database",
        _ => return Ok(()),
    };
    Err(Error::bad_value(text))
}

fn document(
    name: &UserName,
    fields: &UserFields<'_>,
    credentials: &[(Mechanism, Credential)],
    roles: &[RoleName],
) -> Result<DocBuf> {
    let user_id = user_id()?;
    Ok(DocBuf::build(|out| {
        out.append("_id", name.id().as_str());
        out.append("userId", Value::Binary(Binary { subtype: 4, bytes: &user_id }));
        out.append("user", &name.user).append("db", &name.db);
        write_credentials(credentials, out);
        out.append_some("customData", fields.custom_data.map(Value::Document));
        write_roles(roles, out.array("roles"));
        append_restrictions(out, fields.restrictions.as_ref());
    }))
}

/// Appends `credentials`: one document for each mechanism; `{external: true}` for none.
pub fn write_credentials(credentials: &[(Mechanism, Credential)], out: &mut DocWriter<'_>) {
    let mut all = out.document("credentials");
    credentials.iter().for_each(|(mechanism, credential)| {
        credential.write(&mut all.document(mechanism.name()));
    });
    if credentials.is_empty() {
        all.append("external", true);
    }
}

/// Returns a random UUID (RFC 9562, version 4).
fn user_id() -> Result<[u8; 16]> {
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&quire_access::scram::random(16)?);
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    Ok(uuid)
}

fn exists(name: &UserName) -> Error {
    Error::location(51003, format!("User \"{name}\" already exists"))
}
