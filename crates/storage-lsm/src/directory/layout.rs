//! The paths of the keyspaces. A keyspace is the tree of one space and its files.

use std::path::{Path, PathBuf};

use quire_storage::Space;

/// Returns the directory of the keyspace with a number from 1 to 4.
pub(crate) fn keyspace_path(data: &Path, number: u64) -> PathBuf {
    data.join("keyspaces").join(number.to_string())
}

/// Returns the number of a space's keyspace, in its path and in the log.
pub(crate) fn number_of(space: Space) -> u64 {
    u64::try_from(space.index()).unwrap_or_default() + 1
}
