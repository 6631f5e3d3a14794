//! The four ordered maps of an engine, and the hash by which a key of one of them is known to the
//! tables of locks and conflicts.

/// The four ordered maps of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Space {
    /// Catalog, sessions, settings. Keys that begin with the byte 0 are the engine's own: they
    /// cannot be written by callers and scans do not show them.
    Meta = 0,
    /// Documents, by collection and record id.
    Doc = 1,
    /// Index entries, by index and key.
    Idx = 2,
    /// Change records; written through [`Txn::append_log`](crate::Txn::append_log).
    Log = 3,
}

impl Space {
    /// All spaces, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Meta, Self::Doc, Self::Idx, Self::Log];

    /// The place of the space in arrays of four.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The space with this number.
    pub fn from_index(index: u8) -> Option<Self> {
        Self::ALL.get(usize::from(index)).copied()
    }

    /// The name of the space on disk.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Doc => "doc",
            Self::Idx => "idx",
            Self::Log => "log",
        }
    }
}

/// The hash of a key, which the lock and conflict tables have instead of the key. Two keys with the
/// same hash conflict although they differ: the writer retries.
pub type KeyHash = u64;

/// The hash that conflict tracking uses for a key.
pub fn key_hash(space: Space, key: &[u8]) -> KeyHash {
    xxhash_rust::xxh3::xxh3_64_with_seed(key, space as u64)
}
