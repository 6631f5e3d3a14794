//! fjall's errors in the contract's words.

use fjall::{Error, LsmError};
use quire_storage::StorageError;

fn corruption(what: &str, place: &str) -> StorageError {
    StorageError::Corruption { place: format!("{place}: {what}") }
}

fn from_lsm(error: LsmError, place: &str) -> StorageError {
    match error {
        LsmError::Io(error) => error.into(),
        other => corruption(&other.to_string(), place),
    }
}

/// Translates; `place` says what was read or written.
pub(crate) fn storage(error: Error, place: &str) -> StorageError {
    match error {
        Error::Storage(error) => from_lsm(error, place),
        Error::Io(error) => error.into(),
        Error::Poisoned => StorageError::Unavailable(
            "an earlier write, fsync or background task failed; restart to recover".into(),
        ),
        Error::Locked => StorageError::Unavailable("another process has the database open".into()),
        Error::InvalidVersion(version) => {
            StorageError::Unavailable(format!("unknown fjall format {version:?}"))
        }
        other => corruption(&other.to_string(), place),
    }
}
