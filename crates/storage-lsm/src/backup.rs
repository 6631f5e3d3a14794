//! A consistent copy while writes continue: a snapshot is streamed in key order into a new
//! directory.

use std::path::Path;
use std::sync::Arc;

use lsm_tree::AnyTree;
use quire_storage::backend::RawSnapshot;
use quire_storage::{Bytes, Interrupt, Page, Result, ScanRequest, Space, StorageError};

use crate::creation;
use crate::directory::Directory;
use crate::directory::private;
use crate::error::storage;
use crate::read::snapshot::LsmSnapshot;
use crate::table::dropped::DroppedRanges;
use crate::table::trees::Trees;

const CACHE_BYTES: u64 = 8 << 20;

/// Writes the copy. The directory must be missing or empty. It can be opened after its format file
/// is written, which comes last. If the copy fails, its files are removed.
pub(crate) fn write(snap: &LsmSnapshot, path: &Path, interrupt: &Interrupt) -> Result<()> {
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

fn copy(snap: &LsmSnapshot, directory: &Directory, interrupt: &Interrupt) -> Result<()> {
    directory.begin_copy()?;
    let made = creation::prepare(&directory.data())?;
    let copy = Trees::open(&directory.data(), CACHE_BYTES, &Arc::new(DroppedRanges::default()))?;
    // The parent directory may be readable by others; the copy's files are not.
    private::restrict(&directory.data());
    for space in Space::ALL {
        copy_space(snap, &copy, space, interrupt)?;
    }
    drop(copy);
    // Empty: everything is in tables.
    directory.durable_mark()?;
    creation::finish(&made, &directory.completion())?;
    directory.end_copy()
}

/// Writes the rows of a space straight into tables, which lsm-tree syncs.
fn copy_space(snap: &LsmSnapshot, copy: &Trees, space: Space, interrupt: &Interrupt) -> Result<()> {
    let failed = |error| storage(error, space.name());
    let target = AnyTree::Standard(copy.of(space).clone());
    let mut ingestion = target.ingestion().map_err(failed)?;
    let (mut page, mut start) = (Page::default(), Bytes::new());
    loop {
        interrupt.check()?;
        page.clear();
        snap.scan(&ScanRequest::new(space, &start, &[]), &mut page)?;
        for (key, value) in page.rows.drain(..) {
            ingestion.write(key, value).map_err(failed)?;
        }
        match page.resume.take() {
            Some(next) => start = next,
            None => return ingestion.finish().map_err(failed),
        }
    }
}
