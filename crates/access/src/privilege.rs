//! Privileges: actions on resources, and lists of privileges in which each resource occurs once.

use quire_document::{Array, ArrayWriter, Value};
use quire_error::{Error, Result};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::action::{Action, ActionSet};
use crate::resource::{Resource, Target};

/// The actions that are allowed on one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privilege {
    /// The resource to which the privilege applies.
    pub resource: Resource,
    /// The actions that it allows.
    pub actions: ActionSet,
}

/// Privileges in the order in which they were granted. A resource occurs once, except after
/// [`append_all`](Self::append_all).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Privileges(Vec<Privilege>);

impl Privileges {
    /// Returns an empty list.
    pub const fn new() -> Self {
        Privileges(Vec::new())
    }

    /// Reads an array of privilege documents, `{resource, actions}`.
    ///
    /// # Errors
    /// 9 FailedToParse for a malformed document, 14 TypeMismatch for a value of a wrong type.
    pub fn parse(array: Array<'_>) -> Result<Self> {
        array.iter().map(parse_privilege).collect()
    }

    /// Grants privileges: adds the actions of each to those of the same resource, or appends it.
    /// Takes time in proportion to the length of both lists.
    pub fn grant_all(&mut self, privileges: impl IntoIterator<Item = Privilege>) {
        let own = self.0.iter().enumerate();
        let mut places: HashMap<Resource, usize> =
            own.map(|(place, own)| (own.resource.clone(), place)).collect();
        for privilege in privileges {
            match places.entry(privilege.resource.clone()) {
                Entry::Occupied(place) => {
                    let own = &mut self.0[*place.get()].actions;
                    *own = own.union(privilege.actions);
                }
                Entry::Vacant(place) => {
                    place.insert(self.0.len());
                    self.0.push(privilege);
                }
            }
        }
    }

    /// Appends all privileges of `other`, even if the list already has the resource. `rolesInfo`
    /// shows the privileges of several roles in this form.
    pub fn append_all(&mut self, other: &Privileges) {
        self.0.extend(other.0.iter().cloned());
    }

    /// Returns the same privileges with each resource once.
    #[must_use]
    pub fn merged(&self) -> Privileges {
        self.0.iter().cloned().collect()
    }

    /// Removes the actions of each privilege from those of the same resource. Removes a privilege
    /// that has no actions left. Takes time in proportion to the length of both lists.
    pub fn revoke_all(&mut self, privileges: &Privileges) {
        let mut revoked: HashMap<&Resource, ActionSet> = HashMap::new();
        for privilege in privileges.iter() {
            let actions = revoked.entry(&privilege.resource).or_insert(ActionSet::EMPTY);
            *actions = actions.union(privilege.actions);
        }
        self.0.retain_mut(|own| {
            if let Some(actions) = revoked.get(&own.resource) {
                own.actions = own.actions.without(*actions);
            }
            !own.actions.is_empty()
        });
    }

    /// Returns true if the action is allowed on the target.
    pub fn allow(&self, target: Target<'_>, action: Action) -> bool {
        self.0.iter().any(|own| own.actions.allows(action) && own.resource.covers(target))
    }

    /// Returns true if a privilege allows the action on a resource in the database. With such a
    /// privilege a user can see the database.
    pub fn allow_somewhere_in(&self, db: &str, action: Action) -> bool {
        self.0.iter().any(|own| {
            own.actions.allows(action)
                && match &own.resource {
                    Resource::Any => true,
                    Resource::Collection { db: own, .. } => own.is_empty() || own == db,
                    Resource::Cluster | Resource::Buckets { .. } => false,
                }
        })
    }

    /// Returns true if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the privileges in order.
    pub fn iter(&self) -> impl Iterator<Item = &Privilege> {
        self.0.iter()
    }

    /// Writes the list as an array of privilege documents, with the actions ordered by name.
    pub fn write(&self, mut out: ArrayWriter<'_>) {
        for privilege in &self.0 {
            let mut doc = out.document();
            privilege.resource.write(&mut doc.document("resource"));
            let mut actions = doc.array("actions");
            privilege.actions.iter().for_each(|action| {
                actions.push(action.name());
            });
        }
    }
}

impl FromIterator<Privilege> for Privileges {
    fn from_iter<I: IntoIterator<Item = Privilege>>(privileges: I) -> Self {
        let mut list = Privileges::new();
        list.grant_all(privileges);
        list
    }
}

fn parse_privilege(element: Value<'_>) -> Result<Privilege> {
    let doc = element.as_document().ok_or_else(|| {
        let text = format!("a privilege is an object, found {}", element.type_name());
        Error::type_mismatch(text)
    })?;
    let (mut resource, mut actions) = (None, None);
    for (name, value) in doc.fields() {
        match (name, value) {
            ("resource", Value::Document(doc)) => resource = Some(Resource::parse(doc)?),
            ("actions", Value::Array(names)) => actions = Some(parse_actions(names)?),
            ("resource" | "actions", other) => {
                let text = format!("privilege.{name} has the wrong type {}", other.type_name());
                return Err(Error::type_mismatch(text));
            }
            _ => {
                let text = format!("BSON field 'privilege.{name}' is an unknown field.");
                return Err(Error::new(quire_error::ErrorCode::IDLUnknownField, text));
            }
        }
    }
    match (resource, actions) {
        (Some(resource), Some(actions)) => Ok(Privilege { resource, actions }),
        (None, _) => Err(Error::failed_to_parse("a privilege needs a 'resource'")),
        (_, None) => Err(Error::failed_to_parse("a privilege needs 'actions'")),
    }
}

fn parse_actions(names: Array<'_>) -> Result<ActionSet> {
    let (mut set, mut unknown) = (ActionSet::EMPTY, Vec::new());
    for value in names.iter() {
        let Value::String(name) = value else {
            let text = format!("an action is a string, found {}", value.type_name());
            return Err(Error::type_mismatch(text));
        };
        match Action::parse(name) {
            Some(action) => set = set.union(ActionSet::of(&[action])),
            None => unknown.push(name),
        }
    }
    match unknown.is_empty() {
        true => Ok(set),
        false => Err(Error::failed_to_parse(format!(
            "Unrecognized action privilege strings: {}",
            unknown.join(",")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::{Privilege, Privileges};
    use crate::action::{Action, ActionSet};
    use crate::resource::{Resource, Target};

    fn on(collection: &str, actions: &[Action]) -> Privilege {
        let resource = Resource::collection("shop", collection);
        Privilege { resource, actions: ActionSet::of(actions) }
    }

    #[test]
    fn what_is_granted_is_allowed_until_it_is_revoked() {
        let mut list: Privileges =
            [on("a", &[Action::Find]), on("a", &[Action::Insert])].into_iter().collect();
        assert_eq!(list.iter().count(), 1);
        let target = Target::Collection("shop", "a");
        assert!(list.allow(target, Action::Find) && list.allow(target, Action::Insert));
        assert!(!list.allow(Target::Collection("shop", "b"), Action::Find));
        list.revoke_all(&[on("a", &[Action::Find, Action::Remove])].into_iter().collect());
        assert!(!list.allow(target, Action::Find) && list.allow(target, Action::Insert));
        list.revoke_all(&[on("a", &[Action::Insert])].into_iter().collect());
        assert_eq!(list, Privileges::new());
    }
    /// A search in the whole list for each privilege took minutes for a role with 100,000
    /// privileges.
    #[test]
    fn long_lists_are_granted_and_revoked_in_one_pass() {
        let names = || (0..100_000).map(|at| on(&format!("c{at}"), &[Action::Find]));
        let mut list: Privileges = names().collect();
        list.grant_all(names());
        assert_eq!(list.iter().count(), 100_000);
        list.revoke_all(&names().skip(1).collect());
        assert_eq!(list.iter().count(), 1);
    }
}
