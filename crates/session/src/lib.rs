//! What a client keeps between two commands: its cursors, and its logical sessions with their
//! retryable writes.

mod cursors;
mod session_id;
mod sessions;

pub use cursors::{Checkout, Cursor, CursorCounts, Cursors, Source};
pub use session_id::{NOBODY, SessionId};
pub use sessions::{Session, Sessions, Turn};
