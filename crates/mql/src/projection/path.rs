//! The paths in projections.

use crate::expression::{FieldPath, PATH_COMPONENTS_MAX};
use quire_error::{Error, ErrorCode, Result};

/// Splits a path into components. Fails with MongoDB's codes: 40352 for an empty path, 40353 for a
/// dot at its end, 15998 for an empty component, 16410 for a component that begins with a dollar
/// sign, 15 for too many components.
pub(super) fn components(path: &str) -> Result<Vec<&str>> {
    if path.split('.').count() > PATH_COMPONENTS_MAX {
        return Err(Error::new(ErrorCode::Overflow, "FieldPath is too long"));
    }
    FieldPath::parse(path)?;
    Ok(path.split('.').collect())
}
