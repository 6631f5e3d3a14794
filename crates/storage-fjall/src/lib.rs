//! The default engine on disk.
