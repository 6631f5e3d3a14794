//! Creates a new database quickly. lsm-tree creates a tree with some ten fsyncs one after another,
//! which takes a fifth of a second for four of them on many disks. So a new database is created in
//! a file system in memory, if the system has one, then copied, and synced while the server already
//! answers: all files are written together, and most of the fsyncs have nothing left to do.
//!
//! `FORMAT` is written after everything is durable; a creation that did not get there is done
//! again. The first commit waits for it ([`Creation::wait`]), so nothing acknowledged can be lost.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use quire_storage::{Result, StorageError};

use crate::directory::Completion;
use crate::directory::durable_files::{sync_tree, write_synced};
use crate::directory::private::create_directories;
use crate::directory::scratch::{self, Scratch};
use crate::log::journal;
use crate::table::dropped::DroppedRanges;
use crate::table::trees::Trees;

const CACHE_BYTES: u64 = 1 << 20;
/// The file that names the format of the tables, since fjall 3. A directory with it holds data.
pub(crate) const VERSION: &str = "version";
pub(crate) const VERSION_TEXT: &[u8] = b"FJL\x03";

/// Fills `data`, which must not exist, with an empty database. Returns the files to sync. If there
/// is no file system in memory, it creates the database in its place.
pub(crate) fn prepare(data: &Path) -> Result<Vec<PathBuf>> {
    let mut copied = Vec::new();
    let scratch = Scratch::new(Path::new(scratch::MEMORY));
    match scratch.filter(|scratch| make(scratch.path()).is_ok()) {
        Some(scratch) => copy(scratch.path(), data, &mut copied)?,
        None => {
            create_directories(data)?;
            make(data)?;
            sync_tree(data)?;
        }
    }
    Ok(copied)
}

/// A directory that is becoming durable and complete.
pub(crate) struct Creation {
    thread: Mutex<Option<JoinHandle<Result<()>>>>,
    result: OnceLock<Result<()>>,
}

impl Creation {
    /// Returns the creation of a directory that was complete before.
    pub fn done() -> Self {
        Self { thread: Mutex::new(None), result: OnceLock::from(Ok(())) }
    }

    /// Starts a thread that syncs the files of `made` and then completes the directory.
    pub fn start(made: Vec<PathBuf>, completion: Completion) -> Result<Self> {
        let thread = std::thread::Builder::new().name("quire-create".into());
        let thread = thread.spawn(move || finish(&made, &completion))?;
        Ok(Self { thread: Mutex::new(Some(thread)), result: OnceLock::new() })
    }

    /// Waits until the directory is complete.
    pub fn wait(&self) -> Result<()> {
        if let Some(result) = self.result.get() {
            return result.clone();
        }
        let died = || Err(StorageError::Io("the creation of the directory did not end".into()));
        if let Some(thread) = self.thread.lock().take() {
            let _ = self.result.set(thread.join().unwrap_or_else(|_| died()));
        }
        self.result.get().cloned().unwrap_or_else(died)
    }
}

impl Drop for Creation {
    fn drop(&mut self) {
        // The thread must end before the lock of the directory is released.
        let _ = self.wait();
    }
}

/// Syncs the files of `made`, then marks the directory as complete.
pub(crate) fn finish(made: &[PathBuf], completion: &Completion) -> Result<()> {
    for path in made {
        match File::open(path) {
            Ok(file) => file.sync_all()?,
            // lsm-tree has replaced the file meanwhile, and synced the new one.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    completion.write()
}

/// Creates an empty database with an empty log in an existing directory.
pub(crate) fn make(data: &Path) -> Result<()> {
    Trees::open(data, CACHE_BYTES, &Arc::new(DroppedRanges::default()))?;
    write_synced(&journal::path(data, 0), b"")?;
    write_synced(&data.join(VERSION), VERSION_TEXT)
}

/// Copies a tree. Appends every file and directory that it creates to `copied`.
fn copy(from: &Path, to: &Path, copied: &mut Vec<PathBuf>) -> Result<()> {
    std::fs::create_dir(to)?;
    copied.push(to.to_owned());
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target, copied)?;
        } else {
            std::fs::copy(entry.path(), &target)?;
            copied.push(target);
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use lsm_tree::AbstractTree;
    use quire_storage::Space;

    #[test]
    fn a_copied_skeleton_opens_and_is_small() {
        let directory = tempfile::TempDir::new().unwrap();
        let scratch = Scratch::new(directory.path()).unwrap();
        make(scratch.path()).unwrap();
        let data = directory.path().join("data");
        let mut copied = Vec::new();
        copy(scratch.path(), &data, &mut copied).unwrap();
        let bytes: u64 = copied.iter().map(|path| path.metadata().unwrap().len()).sum();
        assert!(bytes < 1 << 20, "{bytes} bytes in {} files", copied.len());
        let trees = Trees::open(&data, CACHE_BYTES, &Arc::new(DroppedRanges::default())).unwrap();
        assert!(Space::ALL.iter().all(|space| trees.of(*space).table_count() == 0));
    }
}
