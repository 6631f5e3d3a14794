//! The paths that projections name.

use crate::expression::{FieldPath, PATH_COMPONENTS_MAX};
use quire_error::{Error, ErrorCode, Result};

/// The components of a path, checked with MongoDB's codes: 40352 empty, 40353 ending in a dot,
/// 15998 an empty component, 16410 a component that starts with a dollar sign, 15 too deep.
pub(super) fn components(path: &str) -> Result<Vec<&str>> {
    if path.split('.').count() > PATH_COMPONENTS_MAX {
        return Err(Error::new(ErrorCode::Overflow, "FieldPath is too long"));
    }
    FieldPath::parse(path)?;
    Ok(path.split('.').collect())
}
