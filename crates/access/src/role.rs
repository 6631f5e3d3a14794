//! User-defined roles, and the privileges that a set of roles has through inheritance.

use std::collections::{HashMap, HashSet, VecDeque};

use quire_document::{ArrayBuf, Doc, Value};
use quire_error::{Error, ErrorCode, Result};

use crate::builtin;
use crate::name::RoleName;
use crate::privilege::Privileges;
use crate::restriction::Restrictions;

/// A role as `admin.system.roles` stores it.
#[derive(Clone, Debug)]
pub struct Role {
    /// The name of the role.
    pub name: RoleName,
    /// The privileges of the role itself, without inherited ones.
    pub privileges: Privileges,
    /// The roles that it inherits from.
    pub roles: Vec<RoleName>,
    /// The restrictions as stored; `None` if the role has none.
    pub restrictions: Option<ArrayBuf>,
}

/// All user-defined roles.
#[derive(Clone, Debug, Default)]
pub struct Roles(HashMap<RoleName, Role>);

/// Everything that a set of roles grants, with inherited roles.
#[derive(Clone, Debug, Default)]
pub struct Inherited {
    /// Each role once: the given roles first, then the roles that they inherit from.
    pub roles: Vec<RoleName>,
    /// The privileges of all these roles.
    pub privileges: Privileges,
    /// The restrictions, as stored, of each role that has restrictions.
    pub restrictions: Vec<ArrayBuf>,
}

impl Role {
    /// Reads a role's document.
    ///
    /// # Errors
    /// 80 RoleDataInconsistent for a document that is not a role.
    pub fn parse(doc: Doc<'_>) -> Result<Self> {
        let text = |name: &str| doc.get(name).and_then(|value| value.as_str());
        let (Some(role), Some(db)) = (text("role"), text("db")) else {
            return Err(inconsistent("a role's document needs 'role' and 'db'"));
        };
        let list = |name: &str| doc.get(name).and_then(|value| value.as_array());
        let read = || -> Result<Role> {
            Ok(Role {
                name: RoleName::new(role, db),
                privileges: list("privileges")
                    .map(Privileges::parse)
                    .transpose()?
                    .unwrap_or_default(),
                roles: list("roles")
                    .map(|roles| RoleName::parse_list(roles, db))
                    .transpose()?
                    .unwrap_or_default(),
                restrictions: list("authenticationRestrictions")
                    .map(|restrictions| {
                        Restrictions::parse(restrictions, "role")
                            .map(|_| restrictions.iter().collect())
                    })
                    .transpose()?,
            })
        };
        read().map_err(|error| inconsistent(&format!("{role}@{db}: {}", error.message())))
    }
}

impl Roles {
    /// Adds a role, or replaces the role of the same name.
    pub fn insert(&mut self, role: Role) {
        self.0.insert(role.name.clone(), role);
    }

    /// Returns the user-defined role of this name.
    pub fn get(&self, name: &RoleName) -> Option<&Role> {
        self.0.get(name)
    }

    /// Returns the user-defined roles of a database, ordered by name.
    pub fn of_database(&self, db: &str) -> Vec<&Role> {
        let mut found: Vec<&Role> = self.0.values().filter(|role| role.name.db == db).collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    /// Returns every user-defined role, ordered by name.
    pub fn all(&self) -> Vec<&Role> {
        let mut found: Vec<&Role> = self.0.values().collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    /// Fails for the first role that is neither built-in nor defined.
    ///
    /// # Errors
    /// 31 RoleNotFound.
    pub fn check_exist(&self, names: &[RoleName]) -> Result<()> {
        match names.iter().find(|name| !self.exists(name)) {
            None => Ok(()),
            Some(name) => {
                let text = format!("Could not find role: {name}");
                Err(Error::new(ErrorCode::RoleNotFound, text))
            }
        }
    }

    /// Returns true for a built-in role and for a defined role.
    pub fn exists(&self, name: &RoleName) -> bool {
        self.0.contains_key(name) || builtin::privileges(name).is_some()
    }

    /// Fails if the role would inherit from itself.
    ///
    /// # Errors
    /// 49 InvalidRoleModification.
    pub fn check_acyclic(&self, role: &RoleName, inherits: &[RoleName]) -> Result<()> {
        if self.inherited(inherits).roles.contains(role) {
            let text =
                format!("Granting roles to {role} would introduce a cycle in the role graph");
            return Err(Error::new(ErrorCode::InvalidRoleModification, text));
        }
        Ok(())
    }

    /// Returns everything that the roles grant. Ignores roles that no longer exist.
    pub fn inherited(&self, roles: &[RoleName]) -> Inherited {
        let mut sum = Inherited::default();
        let mut waiting: VecDeque<&RoleName> = roles.iter().collect();
        let mut seen: HashSet<&RoleName> = HashSet::new();
        while let Some(name) = waiting.pop_front() {
            if !seen.insert(name) {
                continue;
            }
            if let Some(role) = self.0.get(name) {
                sum.roles.push(name.clone());
                sum.privileges.append_all(&role.privileges);
                sum.restrictions.extend(role.restrictions.clone());
                waiting.extend(&role.roles);
            } else if let Some(privileges) = builtin::privileges(name) {
                sum.roles.push(name.clone());
                sum.privileges.append_all(&privileges);
            }
        }
        sum
    }
}

impl FromIterator<Role> for Roles {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Self {
        Roles(roles.into_iter().map(|role| (role.name.clone(), role)).collect())
    }
}

impl Inherited {
    /// Returns one condition for each stored list of restrictions; a login must meet all of them.
    ///
    /// # Errors
    /// 80 RoleDataInconsistent for stored restrictions that are malformed.
    pub fn conditions(&self) -> Result<Vec<Restrictions>> {
        let lists = self.restrictions.iter();
        lists
            .map(|list| Restrictions::parse(list.as_array(), "role"))
            .collect::<Result<_>>()
            .map_err(|error| inconsistent(error.message()))
    }
}

fn inconsistent(text: &str) -> Error {
    Error::new(ErrorCode::RoleDataInconsistent, text)
}

/// Returns the roles in an array of role documents. Ignores malformed entries.
pub(crate) fn stored_roles(value: Option<Value<'_>>) -> Vec<RoleName> {
    let roles = value.and_then(|value| value.as_array()).into_iter();
    roles.flat_map(|roles| roles.iter()).filter_map(|role| RoleName::parse(role, "").ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::{Role, Roles};
    use crate::action::Action;
    use crate::name::RoleName;
    use crate::privilege::Privileges;
    use crate::resource::Target;

    fn role(name: &str, inherits: &[&str]) -> Role {
        Role {
            name: RoleName::new(name, "shop"),
            privileges: Privileges::new(),
            roles: inherits.iter().map(|name| RoleName::new(name, "shop")).collect(),
            restrictions: None,
        }
    }

    #[test]
    fn roles_inherit_through_several_steps_and_cycles_end() {
        let roles: Roles =
            [role("a", &["b"]), role("b", &["a", "read", "gone"])].into_iter().collect();
        let sum = roles.inherited(&[RoleName::new("a", "shop")]);
        let names: Vec<&str> = sum.roles.iter().map(|role| role.role.as_str()).collect();
        assert_eq!(names, ["a", "b", "read"]);
        assert!(sum.privileges.allow(Target::Collection("shop", "x"), Action::Find));
        assert!(
            roles
                .check_acyclic(&RoleName::new("b", "shop"), &[RoleName::new("a", "shop")])
                .is_err()
        );
        assert!(roles.check_exist(&[RoleName::new("gone", "shop")]).is_err());
    }
}
