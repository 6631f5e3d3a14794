//! Syncs files and directory entries to stable storage.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use quire_storage::Result;

/// Syncs all files and directories of a tree.
pub(crate) fn sync_tree(path: &Path) -> Result<()> {
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => sync_tree(&entry.path())?,
            false => File::open(entry.path())?.sync_all()?,
        }
    }
    sync_directory(path)
}

/// Writes a file and syncs it.
pub(crate) fn write_synced(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(())
}

/// Syncs the entries of a directory.
pub(crate) fn sync_directory(path: &Path) -> Result<()> {
    #[cfg(unix)]
    File::open(path)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}
