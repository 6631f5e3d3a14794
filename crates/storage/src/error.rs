//! The errors of the storage layer: a small enum. The layer above maps it exhaustively to MongoDB's
//! errors, so that a new failure forces a decision there.

use std::fmt;

use bytes::Bytes;

use crate::interrupt::Interruption;
use crate::space::{KeyHash, Space};

/// The result of every fallible function in this crate.
pub type Result<T, E = StorageError> = std::result::Result<T, E>;

/// A conflict with another commit or transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The space of the key.
    pub space: Space,
    /// The key that another transaction has changed or locked.
    pub key: Bytes,
    /// The key's hash in the lock table.
    pub hash: KeyHash,
    /// True if an open transaction has locked the key, or it is reserved for the first of its line;
    /// false if another commit changed it. After a conflict a single write releases everything that
    /// it holds and waits for its turn with [`KeyTurn::wait`](crate::KeyTurn::wait), before it
    /// tries again on a new snapshot.
    pub held: bool,
}

/// A failure of the storage layer. Its texts are for the log, not for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageError {
    /// Another commit or transaction came first. Nothing was written.
    Conflict(Box<Conflict>),
    /// The key of an `insert` exists already. The number is the caller's tag.
    Duplicate(u64),
    /// The snapshot was open for too long, or retained too much. The caller should start again on a
    /// new one.
    SnapshotTooOld,
    /// A key, a value or a whole transaction exceeds what [`Caps`](crate::Caps) declares.
    TooLarge,
    /// The bytes on disk are not those that were written.
    Corruption {
        /// The file, space or key, for the log.
        place: String,
    },
    /// The disk is full, or so nearly full that new data is refused. Nothing was written.
    Full,
    /// An error of the operating system. After a failed write or fsync the engine accepts no more
    /// writes, and it never retries an fsync. A commit whose outcome is unknown because of such an
    /// error fails with `OutcomeUnknown` instead.
    Io(String),
    /// The engine is not available: poisoned by an earlier failure, or locked by another process.
    Unavailable(String),
    /// The commit may or may not have happened, because its write or fsync failed; the text says
    /// why. It may be visible now, and it may be there after a restart.
    OutcomeUnknown(String),
    /// The engine was closed.
    Closed,
    /// The operation was killed, passed its deadline or lost its client while it waited.
    Interrupted(Interruption),
    /// The engine does not support the operation, for example a backup of memory.
    Unsupported(&'static str),
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict(c) => write!(f, "conflict on {:?} {:02x?}", c.space, &c.key[..]),
            Self::Duplicate(tag) => write!(f, "duplicate key (tag {tag})"),
            Self::SnapshotTooOld => f.write_str("snapshot too old"),
            Self::TooLarge => f.write_str("key, value or transaction too large"),
            Self::Corruption { place } => write!(f, "corruption: {place}"),
            Self::Full => f.write_str("the disk is full, or less than the reserve is left of it"),
            Self::Io(text) => write!(f, "I/O error: {text}"),
            Self::Unavailable(why) => write!(f, "storage engine unavailable: {why}"),
            Self::OutcomeUnknown(why) => write!(f, "outcome of the commit unknown: {why}"),
            Self::Closed => f.write_str("storage engine closed"),
            Self::Interrupted(why) => write!(f, "interrupted: {why:?}"),
            Self::Unsupported(what) => write!(f, "the storage engine has no {what}"),
        }
    }
}

impl std::error::Error for StorageError {}

impl StorageError {
    /// Converts the error of a commit that was given to the disk or is visible: it is unknown
    /// whether the commit survives a restart.
    #[must_use]
    pub fn after_commit(self) -> Self {
        match self {
            Self::OutcomeUnknown(_) => self,
            other => Self::OutcomeUnknown(other.to_string()),
        }
    }
}

impl From<std::io::Error> for StorageError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::Io(error.to_string()),
        }
    }
}

impl From<Interruption> for StorageError {
    fn from(why: Interruption) -> Self {
        Self::Interrupted(why)
    }
}
