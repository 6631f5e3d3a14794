//! A consistent copy while writes continue: a snapshot is streamed in key order into a new
//! directory. Hard links are not possible, because fjall rewrites and removes live files at any
//! time.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use quire_storage::{Interrupt, Result, Space, StorageError};

use crate::directory::Directory;
use crate::dropped::DroppedRanges;
use crate::error::storage;
use crate::keyspaces::Parts;
use crate::snapshot::{FjallSnapshot, Rows};
use crate::{private, skeleton};

const CACHE_BYTES: u64 = 8 << 20;
/// The number of rows between two checks of the interrupt.
const LOOK_EVERY: usize = 256;

/// Writes the copy. The directory must be missing or empty. It can be opened after its format file
/// is written, which comes last. If the copy fails, its files are removed.
pub(crate) fn write(snap: &FjallSnapshot, path: &Path, interrupt: &Interrupt) -> Result<()> {
    let missing = is_missing(path)?;
    let directory = Directory::lock(path, false)?;
    let restricted = if missing { restrict(path) } else { Ok(()) };
    let copied = restricted.and_then(|()| copy(snap, &directory, interrupt));
    if copied.is_err() {
        directory.abandon_copy();
        if missing {
            // Fails if files are left in it, so that these stay visible.
            let _ = std::fs::remove_dir(path);
        }
    }
    copied
}

/// Returns true if the directory is missing; an error if it exists and is not empty.
fn is_missing(path: &Path) -> Result<bool> {
    if !path.try_exists()? {
        return Ok(true);
    }
    match path.read_dir()?.next() {
        None => Ok(false),
        Some(_) => Err(StorageError::Io(format!("{} is not empty", path.display()))),
    }
}

/// Makes a new directory readable by this user only.
fn restrict(path: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

fn copy(snap: &FjallSnapshot, directory: &Directory, interrupt: &Interrupt) -> Result<()> {
    directory.begin_copy()?;
    // All iterators are created first: each keeps its tables from then on, also if the copy takes
    // longer than a snapshot may live.
    let all = (Bound::Unbounded, Bound::Unbounded);
    let spaces = Space::ALL.map(|space| (space, snap.rows(space, all)));
    let made = skeleton::prepare(&directory.data())?;
    let copy = Parts::open(&directory.data(), CACHE_BYTES, 1, &Arc::new(DroppedRanges::default()))?;
    // The parent directory may be readable by others; the copy's files are not.
    private::restrict(&directory.data());
    for (space, rows) in spaces {
        copy_space(rows, &copy, space, interrupt)?;
    }
    copy.db.persist(fjall::PersistMode::SyncAll).map_err(|error| storage(error, "fsync"))?;
    drop(copy);
    skeleton::finish(&made, &directory.completion())?;
    directory.end_copy()
}

fn copy_space(rows: Rows, copy: &Parts, space: Space, interrupt: &Interrupt) -> Result<()> {
    let failed = |error| storage(error, space.name());
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return Ok(());
    }
    let target = copy.space(space);
    let mut ingestion = target.start_ingestion().map_err(failed)?;
    for (number, row) in rows.enumerate() {
        if number % LOOK_EVERY == 0 {
            interrupt.check()?;
        }
        let (key, value) = row.map_err(failed)?;
        ingestion.write(key, value).map_err(failed)?;
    }
    ingestion.finish().map_err(failed)
}
