//! What every command stands on: its row, its context, arguments and replies, what is done around
//! it, and what the server counts and logs of it. No file here knows a command; the table of
//! commands comes in through [`service::Service`].
//!
//! Read in this order: [`service`] (what a server holds), `command` (what a command is to it),
//! `context` (what a command is given), `dispatch` (what happens around every command).

pub mod account;
pub mod accounts;
pub mod args;
pub mod audit;
pub mod audit_log;
pub mod authorize;
pub mod certificate;
pub mod command;
pub mod concern;
pub mod concern_defaults;
pub mod context;
pub mod dispatch;
pub mod fail_points;
pub mod failed_logins;
pub mod generic_fields;
pub mod gossip;
pub mod host;
pub mod in_process;
pub mod log;
pub mod login;
pub mod matching;
pub mod metrics;
pub mod operation;
pub mod operation_session;
pub mod parameters;
pub mod profiler;
pub mod query_args;
pub mod reply;
pub mod service;
pub mod tally;
pub mod transactions;
pub mod usage;
pub mod write_gate;

/// The version of MongoDB whose behaviour this server follows.
pub const MONGODB_VERSION: &str = "8.2.0";
/// The same as four numbers.
pub const MONGODB_VERSION_ARRAY: [i32; 4] = [8, 2, 0, 0];
/// The highest wire version announced: that of MongoDB 8.2.
pub const MAX_WIRE_VERSION: i32 = 27;
