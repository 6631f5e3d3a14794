//! Cursors: their first reply, and the commands that continue or close them.

pub mod cursor_reply;
pub mod execution_source;
pub mod get_more;
pub mod kill_cursors;
