//! Cursors and logical sessions.
