//! What an update may not exceed, with MongoDB's numbers.

use quire_error::{Error, ErrorCode, Result};

/// Levels of nesting in a stored document.
pub(super) const DEPTH_MAX: usize = 180;

/// Nulls that an update may write in front of a new array element.
pub(super) const BACKFILL_MAX: u32 = 1_500_000;

/// Bytes of a stored document.
pub(super) const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// 15: the result nests too deep.
pub(super) fn too_deep() -> Error {
    let message = format!("Document exceeds maximum nesting depth of {DEPTH_MAX}");
    Error::new(ErrorCode::Overflow, message)
}

/// Refuses a result of too many bytes (17419).
pub(super) fn check_size(bytes: usize) -> Result<()> {
    if bytes > DOCUMENT_BYTES_MAX {
        let message =
            format!("Resulting document after update is larger than {DOCUMENT_BYTES_MAX}");
        return Err(Error::location(17419, message));
    }
    Ok(())
}
