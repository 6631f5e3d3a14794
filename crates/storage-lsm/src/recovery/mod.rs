//! What an open does before anything is written: it checks that all files exist, judges how much of
//! the log can be used after a crash, and replays that.

pub(crate) mod inventory;
pub(crate) mod log_guard;
pub(crate) mod replay;
