//! The common arguments of the commands about users and roles.

use crate::frame::args::{Arg, missing};
use crate::frame::context::Context;
use quire_access::scram::{Credential, Mechanism, digest_password};
use quire_access::{Privileges, Restrictions, RoleName, UserName};
use quire_document::limits::PASSWORD_BYTES_MAX;
use quire_document::{ArrayBuf, Doc, DocWriter};
use quire_error::{Error, ErrorCode, Result};
use std::num::NonZeroU32;

/// The fields of `createUser` and `updateUser`.
#[derive(Default)]
pub struct UserFields<'a> {
    /// `pwd`: the password.
    pub password: Option<&'a str>,
    /// `customData`: a document for the client.
    pub custom_data: Option<Doc<'a>>,
    /// `roles`: the roles that are granted.
    pub roles: Option<Vec<RoleName>>,
    /// `digestPassword: false`: the client has digested the password.
    pub is_digested: bool,
    /// `authenticationRestrictions`: the allowed addresses of a login, of the client and of the
    /// server.
    pub restrictions: Option<ArrayBuf>,
    /// `mechanisms`: the mechanisms of the login.
    pub mechanisms: Option<Vec<&'a str>>,
}

/// The fields of `createRole` and `updateRole`.
#[derive(Default)]
pub struct RoleFields {
    /// `privileges`: the privileges that are granted.
    pub privileges: Option<Privileges>,
    /// `roles`: the roles that are granted.
    pub roles: Option<Vec<RoleName>>,
    /// `authenticationRestrictions`: the allowed addresses of a login, of the client and of the
    /// server.
    pub restrictions: Option<ArrayBuf>,
}

impl<'a> UserFields<'a> {
    /// Reads an argument. Returns false if it is not one of these.
    pub fn read(&mut self, cx: &Context<'_>, arg: &Arg<'a>) -> Result<bool> {
        match arg.name() {
            "pwd" => self.password = Some(arg.string()?),
            "customData" => self.custom_data = Some(arg.document()?),
            "roles" => self.roles = Some(RoleName::parse_list(arg.array()?, cx.db)?),
            "digestPassword" => self.is_digested = !arg.safe_bool()?,
            "authenticationRestrictions" => {
                self.restrictions = Some(restrictions(cx, arg)?);
            }
            "mechanisms" => self.mechanisms = Some(mechanisms(arg)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns the requested mechanisms without duplicates.
    ///
    /// # Errors
    /// 2 BadValue for an empty list and for unknown names.
    pub fn chosen_mechanisms(&self) -> Result<Option<Vec<Mechanism>>> {
        let Some(names) = &self.mechanisms else { return Ok(None) };
        if names.is_empty() {
            return Err(Error::bad_value("mechanisms field must not be empty"));
        }
        let mut chosen = Vec::new();
        for name in names {
            let unknown = || Error::bad_value(format!("Unknown auth mechanism '{name}'"));
            chosen.push(Mechanism::parse(name).ok_or_else(unknown)?);
        }
        chosen.sort_unstable();
        chosen.dedup();
        Ok(Some(chosen))
    }

    /// Creates the credentials of a password for the mechanisms.
    ///
    /// # Errors
    /// 2 BadValue if a mechanism cannot use a digested password.
    pub fn credentials(
        &self,
        cx: &Context<'_>,
        user: &UserName,
        mechanisms: &[Mechanism],
    ) -> Result<Vec<(Mechanism, Credential)>> {
        let password = self.password.unwrap_or_default();
        if password.is_empty() {
            return Err(Error::bad_value("Password cannot be empty"));
        }
        if password.len() > PASSWORD_BYTES_MAX {
            let text = format!("Password cannot be longer than {PASSWORD_BYTES_MAX} bytes");
            return Err(Error::bad_value(text));
        }
        if self.is_digested && mechanisms.contains(&Mechanism::Sha256) {
            let text = "Use of SCRAM-SHA-256 requires undigested passwords";
            return Err(Error::bad_value(text));
        }
        let credential = |mechanism: &Mechanism| {
            let iterations = iterations(cx, *mechanism);
            let made = match mechanism {
                Mechanism::Sha1 if !self.is_digested => {
                    let digested = digest_password(&user.user, password);
                    Credential::new(*mechanism, &digested, iterations)
                }
                _ => Credential::new(*mechanism, password, iterations),
            };
            made.map(|made| (*mechanism, made))
        };
        mechanisms.iter().map(credential).collect()
    }
}

impl RoleFields {
    /// Reads an argument. Returns false if it is not one of these.
    pub fn read(&mut self, cx: &Context<'_>, arg: &Arg<'_>) -> Result<bool> {
        match arg.name() {
            "privileges" => self.privileges = Some(Privileges::parse(arg.array()?)?),
            "roles" => self.roles = Some(RoleName::parse_list(arg.array()?, cx.db)?),
            "authenticationRestrictions" => {
                self.restrictions = Some(restrictions(cx, arg)?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Refuses privileges and roles that a role of this database must not have: only roles of
    /// `admin` reach beyond their database.
    ///
    /// # Errors
    /// 49 InvalidRoleModification.
    pub fn check_reach(&self, db: &str) -> Result<()> {
        if let Some(roles) = &self.roles {
            check_roles_reach(roles, db)?;
        }
        match &self.privileges {
            Some(privileges) => check_privileges_reach(privileges, db),
            None => Ok(()),
        }
    }
}

/// Fails for roles of another database, unless the role belongs to `admin`.
pub fn check_roles_reach(roles: &[RoleName], db: &str) -> Result<()> {
    match db == "admin" || roles.iter().all(|role| role.db == db) {
        true => Ok(()),
        false => Err(beyond(format!(
            "Roles on the '{db}' database cannot be granted roles from other databases"
        ))),
    }
}

/// Fails for privileges on another database or the cluster, unless the role belongs to `admin`.
pub fn check_privileges_reach(privileges: &Privileges, db: &str) -> Result<()> {
    let within = |privilege: &quire_access::Privilege| privilege.resource.home() == db;
    match db == "admin" || privileges.iter().all(within) {
        true => Ok(()),
        false => Err(beyond(format!(
            "Roles on the '{db}' database cannot be granted privileges that target other databases or the cluster"
        ))),
    }
}

fn beyond(text: String) -> Error {
    Error::new(ErrorCode::InvalidRoleModification, text)
}

/// Returns the string that the command's first field must be.
pub fn name<'a>(cx: &Context<'_>, body: Doc<'a>) -> Result<&'a str> {
    let first = body.first().ok_or_else(|| missing(cx.command.name, cx.command.name))?;
    let name = Arg::new(cx.command.name, first).string()?;
    match name.contains('\0') {
        true => Err(Error::bad_value("names cannot contain NUL characters")),
        false => Ok(name),
    }
}

/// Returns the user that the command's first field names.
pub fn user_name(cx: &Context<'_>, body: Doc<'_>) -> Result<UserName> {
    Ok(UserName::new(name(cx, body)?, cx.db))
}

/// Returns the role that the command's first field names.
pub fn role_name(cx: &Context<'_>, body: Doc<'_>) -> Result<RoleName> {
    Ok(RoleName::new(name(cx, body)?, cx.db))
}

/// Appends a field unless it is an empty array, which means "none".
pub fn append_restrictions(out: &mut DocWriter<'_>, restrictions: Option<&ArrayBuf>) {
    if let Some(list) = restrictions.filter(|list| list.as_array().count() > 0) {
        out.append("authenticationRestrictions", list);
    }
}

/// Returns the PBKDF2 iterations of new credentials.
pub fn iterations(cx: &Context<'_>, mechanism: Mechanism) -> NonZeroU32 {
    let name = match mechanism {
        Mechanism::Sha1 => "scramIterationCount",
        Mechanism::Sha256 => "scramSHA256IterationCount",
    };
    let rounds = u32::try_from(cx.service.parameters.number(name)).ok();
    rounds.and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
}

fn restrictions(cx: &Context<'_>, arg: &Arg<'_>) -> Result<ArrayBuf> {
    let list = arg.array()?;
    Restrictions::parse(list, cx.command.name)?;
    Ok(list.iter().collect())
}

fn mechanisms<'a>(arg: &Arg<'a>) -> Result<Vec<&'a str>> {
    let names = arg.array()?.iter().enumerate();
    names
        .map(|(at, name)| name.as_str().ok_or_else(|| arg.wrong_element(at, name, "string")))
        .collect()
}
