//! What can go wrong below MongoDB's errors: a small enum that the layer above maps
//! exhaustively, so that a new failure forces a decision there.

use std::fmt;

use bytes::Bytes;

use crate::interrupt::Interruption;
use crate::space::{KeyHash, Space};

/// The result of everything in this crate.
pub type Result<T, E = StorageError> = std::result::Result<T, E>;

/// Who clashed where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The space of the key.
    pub space: Space,
    /// The key that another transaction changed or holds.
    pub key: Bytes,
    /// The key as the lock table knows it.
    pub hash: KeyHash,
    /// True if an open transaction holds the key or it is reserved for the first of its line, false
    /// if a commit was faster. A single write drops everything it has and waits for its turn with
    /// [`KeyTurn::wait`](crate::KeyTurn::wait) before it tries again on a new snapshot.
    pub held: bool,
}

/// A failure of the storage layer. No text in here is meant for a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageError {
    /// Another commit or transaction was first. Nothing was written.
    Conflict(Box<Conflict>),
    /// `insert` found its key present; the number is the tag that the caller gave.
    Duplicate(u64),
    /// The snapshot was open for too long, or kept too much alive. Start again on a new one.
    SnapshotTooOld,
    /// A key, a value or a whole transaction exceeds what [`Caps`](crate::Caps) declares.
    TooLarge,
    /// Bytes on disk are not what was written.
    Corruption {
        /// File, space or key: for the log.
        place: String,
    },
    /// The disk is full, or so nearly that new data is refused. Nothing was written.
    Full,
    /// The operating system refused. After a failed write or fsync the engine serves no more
    /// writes; an fsync is never retried. A commit of which that leaves a doubt has
    /// `OutcomeUnknown` instead.
    Io(String),
    /// The engine does not serve: poisoned by an earlier failure, or locked by another process.
    Unavailable(String),
    /// The commit may or may not have happened, and why: its write or its fsync failed. It may be
    /// visible, and it may come to light after a restart.
    OutcomeUnknown(String),
    /// The engine was closed.
    Closed,
    /// The operation was killed, ran out of time or lost its client while it waited.
    Interrupted(Interruption),
    /// The engine cannot do this at all, e.g. a backup of memory.
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
    /// The failure of a commit that has been given to the disk, or is visible: it is unknown
    /// whether it survives a restart.
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
