//! A new directory in one go. fjall makes a keyspace with some 17 fsyncs one after another, which
//! is a third of a second on many disks. So a new database is made in memory where the system has
//! a memory file system, copied, and forced to the disk while the server already answers: what
//! lies ready goes in one write, and most of the fsyncs find nothing left to do.
//!
//! `FORMAT` is written when everything is durable, a creation that never came there is made again, and the
//! first commit waits for it ([`Creation::wait`]): nothing is acknowledged that could be lost.

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

/// Fills `data`, which must not exist, with an empty database; what has to be forced to the disk.
/// Leaves the work to fjall where there is no memory to do it in.
pub(crate) fn prepare(data: &Path) -> Result<Vec<PathBuf>> {
    let mut copied = Vec::new();
    let Some(scratch) = Scratch::new(Path::new(scratch::MEMORY)) else { return Ok(copied) };
    if make(scratch.path()).is_ok() {
        copy(scratch.path(), data, &mut copied)?;
    }
    Ok(copied)
}

/// A directory on its way to being durable and complete.
pub(crate) struct Creation {
    thread: Mutex<Option<JoinHandle<Result<()>>>>,
    result: OnceLock<Result<()>>,
}

impl Creation {
    /// A directory that was complete before.
    pub fn done() -> Self {
        Self { thread: Mutex::new(None), result: OnceLock::from(Ok(())) }
    }

    /// Starts to force what was made to the disk.
    pub fn start(made: Vec<PathBuf>, completion: Completion) -> Result<Self> {
        let thread = std::thread::Builder::new().name("quire-create".into());
        let thread = thread.spawn(move || finish(&made, &completion))?;
        Ok(Self { thread: Mutex::new(Some(thread)), result: OnceLock::new() })
    }

    /// Waits until it is complete.
    pub fn wait(&self) -> Result<()> {
        if let Some(result) = self.result.get() {
            return result.clone();
        }
        let died = || Err(StorageError::Io("creating the directory did not end".into()));
        if let Some(thread) = self.thread.lock().take() {
            let _ = self.result.set(thread.join().unwrap_or_else(|_| died()));
        }
        self.result.get().cloned().unwrap_or_else(died)
    }
}

impl Drop for Creation {
    fn drop(&mut self) {
        // No process writes into a directory whose lock is gone.
        let _ = self.wait();
    }
}

/// Forces what was made to the disk, then says that the directory is complete.
pub(crate) fn finish(made: &[PathBuf], completion: &Completion) -> Result<()> {
    for path in made {
        match File::open(path) {
            Ok(file) => file.sync_all()?,
            // fjall has replaced it meanwhile, durably.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    completion.write()
}

/// An empty database with an empty log.
pub(crate) fn make(data: &Path) -> Result<()> {
    let parts = Parts::open(data, CACHE_BYTES, 1, &Arc::new(DroppedRanges::default()))?;
    parts.flush()?;
    drop(parts);
    log_guard::clear(data)
}

/// Copies a tree; `copied` gets every file and directory that was made.
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
    fn what_is_copied_opens_and_is_small() {
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
