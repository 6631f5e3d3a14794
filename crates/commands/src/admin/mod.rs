//! Handshake, diagnostics and administration: one file a command.

pub mod backup;
pub mod build_info;
pub mod coll_stats;
pub mod command_line;
pub mod configure_fail_point;
pub mod connection_status;
pub mod current_op;
pub mod get_default_rw_concern;
pub mod get_log;
pub mod hello;
pub mod host_info;
pub mod kill_op;
pub mod list_commands;
pub mod log_rotate;
pub mod parameters;
pub mod ping;
pub mod repl_set;
pub mod server_status;
pub mod set_default_rw_concern;
pub mod shutdown;
pub mod whatsmyuri;
