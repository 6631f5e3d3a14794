//! The limits of updates, with MongoDB's numbers.

use crate::too_large;
use quire_document::Doc;
use quire_document::limits::INTERNAL_DOCUMENT_BYTES_MAX;
use quire_error::{Error, ErrorCode, Result};

/// The most levels of nesting in a stored document.
pub(super) const DEPTH_MAX: usize = 180;

/// The most nulls that an update may write before a new array element.
pub(super) const BACKFILL_MAX: u32 = 1_500_000;

/// The largest stored document in bytes.
pub(super) const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Returns the error 15, for a result that nests too deep.
pub(super) fn too_deep() -> Error {
    let message = format!("Document exceeds maximum nesting depth of {DEPTH_MAX}");
    Error::new(ErrorCode::Overflow, message)
}

/// Fails with 17419 if the result of updating `original` has more bytes than a stored document, with
/// 10334 if it has more than any document.
pub(super) fn check_size(bytes: usize, original: Doc<'_>) -> Result<()> {
    if bytes > INTERNAL_DOCUMENT_BYTES_MAX {
        return Err(too_large(bytes, original.first()));
    }
    if bytes > DOCUMENT_BYTES_MAX {
        let message =
            format!("Resulting document after update is larger than {DOCUMENT_BYTES_MAX}");
        return Err(Error::location(17419, message));
    }
    Ok(())
}
