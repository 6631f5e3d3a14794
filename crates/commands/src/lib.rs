//! All commands: their arguments, their replies, and the registry that lists them.
//!
//! A folder imports only the folders before it: `frame` (the code below every command), `cursors`,
//! `sessions`, `users`, `admin`, `ddl`, `write`, `laboratory` (a database in memory in which indexes
//! are tried), `read`, `advise`, `job_commands`; then `requires` (the privileges that each command
//! needs), `registry` (the table of commands) and `jobs` (background jobs).

mod frame;

mod admin;
mod advise;
mod cursors;
mod ddl;
mod job_commands;
mod laboratory;
mod read;
mod sessions;
mod users;
mod write;

mod jobs;
mod registry;
mod requires;

pub use frame::audit_log::{AuditOptions, AuditSink};
pub use frame::certificate::ServerCertificate;
pub use frame::change_log::ChangeLogOptions;
pub use frame::cluster_parameters::{CLUSTER_PARAMETERS, ClusterParameter};
pub use frame::command::Command;
pub use frame::idle_connections::IdleConnection;
pub use frame::in_process::Call;
pub use frame::job_kind::{JobKind, StepContext, WholeStep, Work};
pub use frame::parameters::table::{PARAMETERS, Parameter};
pub use frame::service::{
    ADVISOR_DRIVER, Connection, ConnectionInfo, Outcome, Request, Sequence, Service,
    ServiceOptions, Topology,
};
pub use frame::{MAX_WIRE_VERSION, MONGODB_VERSION, MONGODB_VERSION_ARRAY};
pub use frame::{history, log, metrics, service};
pub use jobs::Jobs;
pub use quire_collections::ChangeLogMode;
pub use registry::COMMANDS;
