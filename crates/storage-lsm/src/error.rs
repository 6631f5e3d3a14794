//! Converts the errors of lsm-tree into those of the storage contract.

use std::io::{self, ErrorKind};

use lsm_tree::Error;
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

/// Returns true if the error is caused by damaged bytes, and not by the device.
pub(crate) fn is_damage(error: Error) -> bool {
    matches!(storage(error, ""), StorageError::Corruption { .. })
}

/// Converts an error; `place` names what was read or written.
pub(crate) fn storage(error: Error, place: &str) -> StorageError {
    match error {
        Error::Io(error) => from_io(error, place),
        Error::ChecksumMismatch { .. } => corruption("a checksum does not match", place),
        Error::Decompress(_) => corruption("a block cannot be decompressed", place),
        _ => corruption("bytes are not what was written", place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_beyond_the_end_of_a_file_is_damage() {
        let of = |kind: ErrorKind| storage(Error::Io(kind.into()), "opening");
        for kind in [ErrorKind::UnexpectedEof, ErrorKind::InvalidInput] {
            assert!(matches!(of(kind), StorageError::Corruption { .. }), "{kind}");
        }
        assert!(matches!(of(ErrorKind::PermissionDenied), StorageError::Io(_)));
    }
}
