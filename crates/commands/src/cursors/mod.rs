//! Cursors: their first reply, and the commands that go on with one or close it.

pub mod cursor_reply;
pub mod execution_source;
pub mod get_more;
pub mod kill_cursors;
