//! Cursors: their first reply, and the commands that continue or close them.

pub mod await_data;
pub mod cursor_reply;
pub mod get_more;
pub mod kill_cursors;
