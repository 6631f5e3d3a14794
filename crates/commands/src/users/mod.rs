//! Users, roles and logins: one file for each command.

pub mod arguments;
pub mod audited;
pub mod authenticate;
pub mod create_role;
pub mod create_user;
pub mod drop_role;
pub mod drop_user;
pub mod grant_privileges;
pub mod grant_roles;
pub mod invalidate_user_cache;
pub mod logout;
pub mod mechanisms;
pub mod merge_accounts;
mod merged_rights;
pub mod roles_info;
pub mod sasl;
pub mod update_role;
pub mod update_user;
pub mod users_info;
