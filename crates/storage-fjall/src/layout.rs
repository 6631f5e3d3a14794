//! The paths of the keyspaces below fjall's directory.

use std::path::{Path, PathBuf};

use quire_storage::Space;

/// Returns the directory of a keyspace. fjall numbers keyspaces from 1 in the order of their
/// creation, and the four spaces are created in their order.
pub(crate) fn keyspace_path(data: &Path, number: u64) -> PathBuf {
    data.join("keyspaces").join(number.to_string())
}

/// Returns the number of a space's keyspace.
pub(crate) fn number_of(space: Space) -> u64 {
    u64::try_from(space.index()).unwrap_or_default() + 1
}
