//! The code below every command: its row, context, arguments and reply, the steps around it, and
//! the server's counters and logs. No file here imports a command; [`service::Service`] gets the
//! table of commands as a parameter.
//!
//! Read in this order: [`service`] (the state of a server), `command` (the row of a command),
//! `context` (the state of a running command), `dispatch` (the steps around every command).

pub mod account;
pub mod accounts;
pub mod args;
pub mod audit;
pub mod audit_log;
pub mod authorize;
pub mod auto_compact;
pub mod certificate;
pub mod change_log;
mod cluster_clock;
pub mod cluster_parameters;
pub mod command;
pub mod command_shape;
pub mod concern;
pub mod concern_defaults;
pub mod config_version;
pub mod context;
pub mod dispatch;
pub mod executions;
pub mod fail_points;
pub mod failed_logins;
pub mod fingerprint;
pub mod generic_fields;
pub mod gossip;
pub mod history;
pub mod host;
pub mod idle_connections;
pub mod in_process;
pub mod job_kind;
pub mod job_list;
pub mod laboratory_gate;
pub mod lane_name;
pub mod log;
pub mod login;
pub mod matching;
pub mod metrics;
pub mod operation;
pub mod operation_session;
pub mod own_collections;
pub mod parameters;
pub mod profiler;
pub mod query_args;
pub mod query_settings;
mod read_preference;
pub mod recorder;
pub mod redaction;
pub mod reply;
pub mod service;
mod set_name;
pub mod tally;
pub mod transactions;
pub mod units;
pub mod usage;
pub mod violations;
pub mod write_block;
pub mod write_gate;

/// The version of MongoDB whose behaviour this server follows.
pub const MONGODB_VERSION: &str = "8.2.0";
/// The same version as four numbers.
pub const MONGODB_VERSION_ARRAY: [i32; 4] = [8, 2, 0, 0];
/// The highest wire version announced: that of MongoDB 8.2.
pub const MAX_WIRE_VERSION: i32 = 27;
