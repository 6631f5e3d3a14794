//! Every command: its arguments, its reply, and the one registry that lists them.
//!
//! Read in this order: [`service`] (what a server holds), `command` (what a command is to it),
//! `context` (what a command is given), `registry` (the rows), `dispatch` (what happens around
//! every command), then any command's own file.

mod account;
mod args;
mod command;
mod concern;
mod concern_defaults;
mod context;
mod cursor_reply;
mod dispatch;
mod execution_source;
mod fail_points;
mod find_request;
mod generic_fields;
mod gossip;
mod jobs;
pub mod log;
mod matching;
pub mod metrics;
mod operation;
mod operation_session;
mod pipeline_sources;
mod profiler;
mod projecting;
mod registry;
mod repeated;
mod reply;
pub mod service;
mod statement_ids;
mod tally;
mod usage;
mod write_gate;
mod write_reply;
mod writes;

mod admin;
mod aggregate;
mod bulk_write;
mod count;
mod ddl;
mod delete;
mod distinct;
mod explain;
mod find;
mod find_and_modify;
mod get_more;
mod insert;
mod kill_cursors;
mod search_indexes;
mod sessions;
mod update;

pub use admin::parameter_table::{PARAMETERS, Parameter};
pub use command::Command;
pub use jobs::Jobs;
pub use pipeline_sources::{SERVER_STAGES, ServerStage};
pub use registry::COMMANDS;
pub use service::{
    Connection, ConnectionInfo, Outcome, Request, Sequence, Service, ServiceOptions, Topology,
};

/// The version of MongoDB whose behaviour this server follows.
pub const MONGODB_VERSION: &str = "8.2.0";
/// The same as four numbers.
pub const MONGODB_VERSION_ARRAY: [i32; 4] = [8, 2, 0, 0];
/// The highest wire version announced: that of MongoDB 8.2.
pub const MAX_WIRE_VERSION: i32 = 27;
