//! A consistent copy while writers go on: a snapshot streamed in key order into a new directory.
//! Never hard links: fjall rewrites and removes live files as it likes.

use std::path::Path;
use std::sync::Arc;

use fjall::Readable;
use quire_storage::{Result, Space, StorageError};

use crate::backend::{FjallSnapshot, Parts};
use crate::directory::Directory;
use crate::error::storage;
use crate::reclaim::DroppedRanges;
use crate::skeleton;

const CACHE_BYTES: u64 = 8 << 20;

/// Writes the copy. The directory must be missing or empty; it can be opened once its format
/// file is there, which is written last.
pub(crate) fn write(snap: &FjallSnapshot, path: &Path) -> Result<()> {
    if path.try_exists()? && path.read_dir()?.next().is_some() {
        return Err(StorageError::Io(format!("{} is not empty", path.display())));
    }
    let directory = Directory::lock(path)?;
    // All iterators first: each holds its tables from then on, also when the copy takes longer
    // than a snapshot may live.
    let spaces = Space::ALL.map(|space| (space, snap.snapshot.iter(snap.parts.space(space))));
    let made = skeleton::prepare(&directory.data())?;
    let copy = Parts::open(&directory.data(), CACHE_BYTES, &Arc::new(DroppedRanges::default()))?;
    for (space, rows) in spaces {
        copy_space(rows, &copy, space)?;
    }
    copy.db.persist(fjall::PersistMode::SyncAll).map_err(|error| storage(error, "fsync"))?;
    drop(copy);
    skeleton::finish(&made, &directory.completion())
}

fn copy_space(rows: fjall::Iter, copy: &Parts, space: Space) -> Result<()> {
    let failed = |error| storage(error, space.name());
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return Ok(());
    }
    let target = copy.space(space);
    let mut ingestion = target.start_ingestion().map_err(failed)?;
    for row in rows {
        let (key, value) = row.into_inner().map_err(failed)?;
        ingestion.write(key, value).map_err(failed)?;
    }
    ingestion.finish().map_err(failed)
}
