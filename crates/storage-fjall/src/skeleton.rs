//! A new directory in one go. fjall makes a keyspace with some 17 fsyncs one after another, which
//! is a third of a second on many disks. So a new database is made in memory where the system has
//! a memory file system, copied, and then forced to the disk: what lies ready goes in one write,
//! and most of the fsyncs find nothing left to do.
//!
//! Nothing here is needed for correctness: `FORMAT` is written last, and a directory without it is
//! made again.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use quire_storage::Result;

use crate::backend::Parts;
use crate::journal;
use crate::reclaim::DroppedRanges;

/// A file system in memory, if the system has one here.
const MEMORY: &str = "/dev/shm";
const CACHE_BYTES: u64 = 1 << 20;

/// Fills `data`, which must not exist, with an empty database; leaves that to fjall where there is
/// no memory to make it in.
pub(crate) fn prepare(data: &Path) -> Result<()> {
    let Some(scratch) = Scratch::new(Path::new(MEMORY)) else { return Ok(()) };
    if make(&scratch.0).is_err() {
        return Ok(());
    }
    let mut copied = Vec::new();
    copy(&scratch.0, data, &mut copied)?;
    for path in copied {
        File::open(path)?.sync_all()?;
    }
    Ok(())
}

/// An empty database with an empty log.
fn make(data: &Path) -> Result<()> {
    let parts = Parts::open(data, CACHE_BYTES, &Arc::new(DroppedRanges::default()))?;
    parts.flush()?;
    drop(parts);
    journal::clear(data)
}

/// A directory in memory that goes with the value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(memory: &Path) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = memory.join(format!("quire-new-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).ok().map(|()| Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays behind is a few kilobytes, and the system forgets them at its next start.
        let _ = std::fs::remove_dir_all(&self.0);
    }
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
    fn what_is_copied_opens_and_is_small_and_the_scratch_is_gone() {
        let directory = tempfile::TempDir::new().unwrap();
        let scratch = Scratch::new(directory.path()).unwrap();
        make(&scratch.0).unwrap();
        let data = directory.path().join("data");
        let mut copied = Vec::new();
        copy(&scratch.0, &data, &mut copied).unwrap();
        let bytes: u64 = copied.iter().map(|path| path.metadata().unwrap().len()).sum();
        assert!(bytes < 1 << 20, "{bytes} bytes in {} files", copied.len());
        let made = scratch.0.clone();
        drop(scratch);
        assert!(!made.exists());
        let parts = Parts::open(&data, CACHE_BYTES, &Arc::new(DroppedRanges::default())).unwrap();
        assert!(parts.spaces.iter().all(|space| space.is_empty().unwrap()));
    }
}
