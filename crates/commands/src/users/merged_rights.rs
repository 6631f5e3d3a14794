//! The rights that a document of `_mergeAuthzCollections` needs: those of the commands that would have
//! the same effect on the stored user or role.

use crate::frame::accounts::granted;
use crate::frame::context::Context;
use quire_access::{Action, Role, RoleName, Target, UserName};
use quire_document::{Doc, Value, identical};
use quire_error::Result;

/// The field with the addresses from which a user may log in.
const RESTRICTIONS: &str = "authenticationRestrictions";

/// The fields of a role that have an effect.
const ROLE_FIELDS: &[&str] = &["roles", "privileges", RESTRICTIONS];

/// Fails unless the client may make the user `new` of the stored user `old`, or create it: the rights
/// of `createUser`, or those of `updateUser` for each field that differs. A user with another
/// `userId` is another user, so that the old one is dropped.
///
/// # Errors
/// 13 Unauthorized.
pub(super) fn may_merge_user(
    cx: &Context<'_>,
    name: &UserName,
    old: Option<Doc<'_>>,
    new: Doc<'_>,
) -> Result<()> {
    let home = Target::Database(&name.db);
    let old = match old {
        Some(old) if !differs("userId", old, new) => old,
        replaced => {
            if replaced.is_some() {
                cx.require(home, Action::DropUser)?;
            }
            cx.require(home, Action::CreateUser)?;
            may_restrict(cx, home, Doc::empty(), new)?;
            return may_grant(cx, &granted(new));
        }
    };
    let own = cx.identity().is_some_and(|identity| identity.name == *name);
    for (field, any, mine) in [
        ("credentials", Action::ChangePassword, Action::ChangeOwnPassword),
        ("customData", Action::ChangeCustomData, Action::ChangeOwnCustomData),
    ] {
        if differs(field, old, new) && !(own && cx.may(home, mine)) {
            cx.require(home, any)?;
        }
    }
    may_restrict(cx, home, old, new)?;
    if differs("roles", old, new) {
        cx.require(home, Action::RevokeRole)?;
        may_grant(cx, &granted(new))?;
    }
    Ok(())
}

/// Fails unless the client may make the role `new` of the stored role `old`, or create it: the rights
/// of `createRole`, or those of `updateRole` if they differ.
///
/// # Errors
/// 13 Unauthorized.
pub(super) fn may_merge_role(
    cx: &Context<'_>,
    name: &RoleName,
    old: Option<Doc<'_>>,
    new: Doc<'_>,
) -> Result<()> {
    let home = Target::Database(&name.db);
    match old {
        Some(old) if !ROLE_FIELDS.iter().any(|field| differs(field, old, new)) => return Ok(()),
        Some(_) => cx.require(home, Action::RevokeRole)?,
        None => cx.require(home, Action::CreateRole)?,
    }
    may_restrict(cx, home, old.unwrap_or_default(), new)?;
    let role = Role::parse(new)?;
    may_grant(cx, &role.roles)?;
    role.privileges.iter().try_for_each(|privilege| {
        cx.require(Target::Database(privilege.resource.home()), Action::GrantRole)
    })
}

/// Requires the right to set address restrictions if `new` has other ones than `old`.
fn may_restrict(cx: &Context<'_>, home: Target<'_>, old: Doc<'_>, new: Doc<'_>) -> Result<()> {
    match differs(RESTRICTIONS, old, new) {
        true => cx.require(home, Action::SetAuthenticationRestriction),
        false => Ok(()),
    }
}

fn may_grant(cx: &Context<'_>, roles: &[RoleName]) -> Result<()> {
    roles.iter().try_for_each(|role| cx.require(Target::Database(&role.db), Action::GrantRole))
}

/// Returns true if the field has another value, compared byte by byte. An empty array of
/// restrictions is none.
fn differs(field: &str, old: Doc<'_>, new: Doc<'_>) -> bool {
    let is_given = |value: &Value<'_>| value.as_array().is_none_or(|list| list.count() > 0);
    match (old.get(field).filter(is_given), new.get(field).filter(is_given)) {
        (None, None) => false,
        (Some(old), Some(new)) => !identical(old, new),
        _ => true,
    }
}
