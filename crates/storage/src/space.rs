//! The four ordered maps of an engine, and the hash that represents a key in the lock and conflict
//! tables.

use twox_hash::XxHash3_64;

/// The four ordered maps of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Space {
    /// Catalog, sessions, settings. Keys that begin with the byte 0 belong to the engine: callers
    /// cannot write them, and scans do not show them.
    Meta = 0,
    /// Documents, by collection and record id.
    Doc = 1,
    /// Index entries, by index and key.
    Idx = 2,
    /// Change records, written by [`Txn::append_log`](crate::Txn::append_log).
    Log = 3,
}

impl Space {
    /// All spaces, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Meta, Self::Doc, Self::Idx, Self::Log];

    /// Returns the index of the space in arrays of four.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns the space with this number.
    pub fn from_index(index: u8) -> Option<Self> {
        Self::ALL.get(usize::from(index)).copied()
    }

    /// Returns the name of the space on disk.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Doc => "doc",
            Self::Idx => "idx",
            Self::Log => "log",
        }
    }
}

/// The hash of a key, which the lock and conflict tables contain instead of the key. Two different
/// keys with the same hash conflict; the writer then retries.
pub type KeyHash = u64;

/// Returns the hash of a key for conflict detection.
pub fn key_hash(space: Space, key: &[u8]) -> KeyHash {
    XxHash3_64::oneshot_with_seed(space as u64, key)
}
