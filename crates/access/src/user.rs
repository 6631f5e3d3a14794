//! A user as `admin.system.users` stores it.

use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode, Result};
use ring::digest::{Context, SHA256};

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

    /// Returns the number to which the user's sessions, cursors and transactions belong: SHA-256 of
    /// 1 and `userId`, or, for a user that was stored without one, of 0, the length of the
    /// database's name, that name and the user's. A later user of the same name has another number,
    /// and no two names have the same.
    pub fn owner(&self) -> [u8; 32] {
        let mut of = Context::new(&SHA256);
        if self.id.is_empty() {
            of.update(&[0]);
            of.update(&(self.name.db.len() as u64).to_be_bytes());
            of.update(self.name.db.as_bytes());
            of.update(self.name.user.as_bytes());
        } else {
            of.update(&[1]);
            of.update(&self.id);
        }
        let mut owner = [0; 32];
        owner.copy_from_slice(of.finish().as_ref());
        owner
    }

    /// Returns the user's credential for a mechanism.
    pub fn credential(&self, mechanism: Mechanism) -> Option<&Credential> {
        self.credentials.iter().find(|(own, _)| *own == mechanism).map(|(_, credential)| credential)
    }
}

fn inconsistent(text: &str) -> Error {
    Error::new(ErrorCode::UserDataInconsistent, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::{Binary, doc};

    fn stored(user: &str, db: &str, id: &[u8]) -> User {
        let id = Value::Binary(Binary { subtype: 4, bytes: id });
        User::parse(doc! { "user": user, "db": db, "userId": id }.as_doc()).unwrap()
    }

    /// `alice@corp` of `admin` and `alice` of `corp@admin` had the same digest, and a user that was
    /// created again had that of the dropped one.
    #[test]
    fn no_two_users_own_the_same() {
        let nameless = |user, db| User::parse(doc! { "user": user, "db": db }.as_doc()).unwrap();
        let users = [
            stored("alice", "admin", &[1; 16]),
            stored("alice", "admin", &[2; 16]),
            nameless("alice@corp", "admin"),
            nameless("alice", "corp@admin"),
            nameless("alice", "admin"),
            nameless("ealice", "admin"),
            nameless("alice", "eadmin"),
        ];
        for (at, user) in users.iter().enumerate() {
            assert!(users.iter().skip(at + 1).all(|other| other.owner() != user.owner()), "{at}");
        }
        assert_eq!(stored("a", "b", &[1; 16]).owner(), stored("renamed", "b", &[1; 16]).owner());
    }
}
