//! Users, roles, privileges and SCRAM: what a user may do, and how a client proves its identity.
//! All functions are pure; other crates store the documents and run the commands.
//!
//! Read in this order: `action.rs`, `resource.rs` and `privilege.rs` (what is allowed), `name.rs`,
//! `builtin.rs`, `role.rs` and `user.rs` (which user is allowed it), `scram.rs`, `restriction.rs`
//! and `origin.rs` (how a user logs in, and from which addresses).

pub mod action;
pub mod builtin;
pub mod name;
pub mod origin;
pub mod privilege;
pub mod resource;
pub mod restriction;
pub mod role;
pub mod scram;
pub mod user;

pub use action::{Action, ActionSet};
pub use name::{RoleName, UserName};
pub use origin::origin;
pub use privilege::{Privilege, Privileges};
pub use resource::{Resource, Target};
pub use restriction::Restrictions;
pub use role::{Inherited, Role, Roles};
pub use scram::Mechanism;
pub use user::User;
