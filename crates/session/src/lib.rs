//! Cursors: what a client keeps between two batches.

mod cursors;

pub use cursors::{Checkout, Cursor, CursorCounts, Cursors, Source};
