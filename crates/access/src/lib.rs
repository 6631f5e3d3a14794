//! Users, roles, privileges and SCRAM: who may do what, and how a client proves who it is. Pure
//! functions of their input; documents are stored and commands are run above.
//!
//! Read in this order: `action.rs`, `resource.rs` and `privilege.rs` (what is allowed),
//! `name.rs`, `builtin.rs`, `role.rs` and `user.rs` (to whom), `scram.rs`, `restriction.rs`
//! and `origin.rs` (how a user proves it, and where from).

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
