//! Creates a new database quickly. fjall creates a keyspace with some 17 fsyncs one after another,
//! which takes a third of a second on many disks. So a new database is created in a file system in
//! memory, if the system has one, then copied, and synced while the server already answers: all
//! files are written together, and most of the fsyncs have nothing left to do.
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
use crate::dropped::DroppedRanges;
use crate::keyspaces::Parts;
use crate::log_guard;
use crate::scratch::{self, Scratch};

const CACHE_BYTES: u64 = 1 << 20;

/// Fills `data`, which must not exist, with an empty database. Returns the files to sync. If there
/// is no file system in memory, it creates nothing and fjall does the work.
pub(crate) fn prepare(data: &Path) -> Result<Vec<PathBuf>> {
    let mut copied = Vec::new();
    let Some(scratch) = Scratch::new(Path::new(scratch::MEMORY)) else { return Ok(copied) };
    if make(scratch.path()).is_ok() {
        copy(scratch.path(), data, &mut copied)?;
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
            // fjall has replaced the file meanwhile, and synced the new one.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    completion.write()
}

/// Creates an empty database with an empty log.
pub(crate) fn make(data: &Path) -> Result<()> {
    let parts = Parts::open(data, CACHE_BYTES, 1, &Arc::new(DroppedRanges::default()))?;
    parts.flush()?;
    drop(parts);
    log_guard::clear(data)
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
        let parts =
            Parts::open(&data, CACHE_BYTES, 1, &Arc::new(DroppedRanges::default())).unwrap();
        assert!(parts.spaces.iter().all(|space| space.is_empty().unwrap()));
    }
}
