//! The default engine on disk, below the committer of crate `storage`: a log, a memtable for each
//! of the four spaces, and the trees of lsm-tree, which reads and merges tables. A snapshot keeps
//! its memtables and tables, so that no reader waits for a writer or for lsm-tree.
//!
//! docs/storage.md describes the engine on one page: its files, what happens at an open, a commit,
//! a flush, a merge and a crash, what always holds, and the order of the locks. The folders are its
//! chapters: `directory` (the files, their lock, the format), `memory` (memtables), `table`
//! (the files of tables, and the lists of them), `log`, `store` (batches, views, background
//! threads, a full disk), `space` (what deletes leave behind), `read` (snapshots and scans),
//! `recovery` (how much of the files can be used after a crash) and `repair`.

mod backend;
mod backup;
mod creation;
mod directory;
mod error;
mod log;
mod memory;
mod opening;
mod options;
mod read;
mod recovery;
mod repair;
mod space;
mod store;
mod table;

use std::path::Path;
use std::sync::Arc;

use quire_storage::{Committer, Engine, Result};

pub use backend::LsmBackend;
pub use directory::disk_space::{DISK_RESERVE_BYTES, DiskSpace, SpaceProbe};
pub use directory::{FORMAT_VERSION, is_database};
pub use log::journal;
pub use options::LsmOptions;

/// An open directory.
pub struct Opened {
    /// The engine of the directory.
    pub engine: Arc<dyn Engine>,
    /// Warnings for the operator: a torn record that was trimmed, what a repair lost.
    pub warnings: Vec<String>,
}

/// The result of a check of a directory.
pub struct Examined {
    /// An engine on an image of the directory; `None` if the directory is too damaged. Writes to it
    /// are lost.
    pub opened: Option<Opened>,
    /// The damages of the files, each with its path.
    pub damages: Vec<String>,
}

/// Checks a database directory without changing anything in it; not even a torn record is cut off.
/// The image that is opened lies in the system's directory for temporary files and contains a copy
/// of the log.
///
/// Errors: `Unavailable` if another process has the directory open, if its format is newer or if it
/// is not a finished database.
pub fn examine(directory: &Path, options: LsmOptions) -> Result<Examined> {
    let opening::ExaminedFiles { backend, warnings, damages } =
        LsmBackend::examine(directory, &options)?;
    let mut damages: Vec<String> = damages.iter().map(ToString::to_string).collect();
    let Some(backend) = backend else { return Ok(Examined { opened: None, damages }) };
    let opened = match Committer::open(backend, options.committer) {
        Ok(engine) => Some(Opened { engine: Arc::new(engine), warnings }),
        Err(quire_storage::StorageError::Corruption { place }) => {
            damages.push(place);
            None
        }
        Err(error) => return Err(error),
    };
    Ok(Examined { opened, damages })
}

/// Ends a repair, after `directory` was opened for it and closed again: from now on it can be used.
///
/// Errors: `Unavailable` if another process has the directory open.
pub fn end_repair(directory: &Path) -> Result<()> {
    let lock = directory::Directory::lock(directory, true)?;
    directory::repair_mark::remove(directory)?;
    drop(lock);
    Ok(())
}

/// Opens a database directory; creates it if it is missing or empty.
///
/// Errors: `Unavailable` if another process has it open, if its format is newer, if it holds
/// another program's files, or while a repair has begun and not ended. `Corruption` if a file is
/// missing or damaged, or if the log is damaged and intact records follow the damage; nothing is
/// changed then, and `repair` repairs it.
pub fn open(directory: &Path, options: LsmOptions) -> Result<Opened> {
    let (backend, warnings) = LsmBackend::open(directory, &options)?;
    let engine = Arc::new(Committer::open(backend, options.committer)?);
    Ok(Opened { engine, warnings })
}
