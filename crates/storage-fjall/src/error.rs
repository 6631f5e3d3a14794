//! Converts fjall's errors into those of the storage contract.

use std::io::{self, ErrorKind};

use fjall::{Error, LsmError};
use quire_storage::StorageError;

fn corruption(what: &str, place: &str) -> StorageError {
    StorageError::Corruption { place: format!("{place}: {what}") }
}

/// Converts an I/O error. A length or an offset from a damaged file can point outside the file.
fn from_io(error: io::Error, place: &str) -> StorageError {
    match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::InvalidInput => corruption(&error.to_string(), place),
        _ => error.into(),
    }
}

fn from_lsm(error: LsmError, place: &str) -> StorageError {
    match error {
        LsmError::Io(error) => from_io(error, place),
        LsmError::ChecksumMismatch { .. } => corruption("a checksum does not match", place),
        LsmError::Decompress(_) => corruption("a block cannot be decompressed", place),
        _ => corruption("bytes are not what was written", place),
    }
}

/// Returns true if the error is caused by damaged bytes, and not by the device.
pub(crate) fn is_damage(error: LsmError) -> bool {
    matches!(from_lsm(error, ""), StorageError::Corruption { .. })
}

/// Converts an error; `place` names what was read or written.
pub(crate) fn storage(error: Error, place: &str) -> StorageError {
    match error {
        Error::Storage(error) => from_lsm(error, place),
        Error::Io(error) => from_io(error, place),
        Error::Poisoned => StorageError::Unavailable(
            "an earlier write, fsync or background task failed; restart to recover".into(),
        ),
        Error::Locked => StorageError::Unavailable("another process has the database open".into()),
        Error::InvalidVersion(version) => {
            StorageError::Unavailable(format!("unknown fjall format {version:?}"))
        }
        _ => corruption("bytes are not what was written", place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_beyond_the_end_of_a_file_is_damage() {
        let of = |kind: ErrorKind| storage(LsmError::Io(kind.into()).into(), "opening");
        for kind in [ErrorKind::UnexpectedEof, ErrorKind::InvalidInput] {
            assert!(matches!(of(kind), StorageError::Corruption { .. }), "{kind}");
        }
        assert!(matches!(of(ErrorKind::PermissionDenied), StorageError::Io(_)));
    }
}
