//! A user as `admin.system.users` stores it.

use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode, Result};

use crate::name::{RoleName, UserName};
use crate::restriction::Restrictions;
use crate::role::stored_roles;
use crate::scram::{Credential, Mechanism};

/// A stored user.
#[derive(Clone)]
pub struct User {
    /// The name of the user.
    pub name: UserName,
    /// Distinguishes the user from an earlier or later one of the same name (`userId`); empty for a
    /// user that was stored without it.
    pub id: Vec<u8>,
    /// The roles that were granted.
    pub roles: Vec<RoleName>,
    /// The stored credentials by mechanism. Empty for users of `$external`, who log in with a
    /// certificate.
    pub credentials: Vec<(Mechanism, Credential)>,
    /// The addresses from which the user may log in.
    pub restrictions: Restrictions,
}

impl User {
    /// Reads a user's document.
    ///
    /// # Errors
    /// 45 UserDataInconsistent for a document that is not a user.
    pub fn parse(doc: Doc<'_>) -> Result<Self> {
        let text = |name: &str| doc.get(name).and_then(|value| value.as_str());
        let (Some(user), Some(db)) = (text("user"), text("db")) else {
            return Err(inconsistent("a user's document needs 'user' and 'db'"));
        };
        let stored = doc.get("credentials").and_then(|value| value.as_document());
        let mut credentials = Vec::new();
        for mechanism in Mechanism::ALL.iter().copied() {
            let own = stored.and_then(|stored| stored.get(mechanism.name()));
            if let Some(own) = own.and_then(|own| own.as_document()) {
                credentials.push((mechanism, Credential::parse(mechanism, own)?));
            }
        }
        let restrictions = match doc.get("authenticationRestrictions") {
            None => Restrictions::default(),
            Some(value) => {
                let list = value.as_array();
                let list = list.ok_or_else(|| inconsistent("the restrictions are not an array"))?;
                Restrictions::parse(list, "user").map_err(|error| inconsistent(error.message()))?
            }
        };
        let id = match doc.get("userId") {
            Some(Value::Binary(id)) => id.bytes.to_vec(),
            _ => Vec::new(),
        };
        Ok(User {
            name: UserName::new(user, db),
            id,
            roles: stored_roles(doc.get("roles")),
            credentials,
            restrictions,
        })
    }

    /// Returns true if a login as `earlier` is still valid: `self` is the same user with the same
    /// credentials.
    pub fn is_still(&self, earlier: &User) -> bool {
        self.id == earlier.id && self.credentials == earlier.credentials
    }

    /// Returns the user's credential for a mechanism.
    pub fn credential(&self, mechanism: Mechanism) -> Option<&Credential> {
        self.credentials.iter().find(|(own, _)| *own == mechanism).map(|(_, credential)| credential)
    }
}

fn inconsistent(text: &str) -> Error {
    Error::new(ErrorCode::UserDataInconsistent, text)
}
