//! The default engine on disk, below the committer of crate `storage`: a log, a memtable for each
//! of the four spaces, and the trees of lsm-tree, which reads and merges tables. A snapshot keeps
//! its memtables and tables, so that no reader waits for a writer or for lsm-tree.
//!
//! Read in this order: `options`, `directory` (the files of a database directory, its lock and
//! format), `layout` and `tuning` (the path and the sizes of each space); what runs: `store`
//! (batches; its background threads; what it does on a nearly full disk, with `disk_space`),
//! `view`, `log`, `memtable`, `row_tree`, `key_filter`, `flush`, `table_output`, `table_writer`,
//! `block_header` and `archive` (the file of a table), `pace`, `tables` (the trees and lists of
//! their tables), `retired` (what nothing uses any more), `backend` (the engine's side),
//! `snapshot`, `range`, `range_source`, `lookups`, `open_table` and `block_rows` (reads), `held`
//! (long snapshots), `locate` (the damaged block behind an error); what happens at an open:
//! `opening` (its steps), `inventory` and `manifest` (the files that must exist), `skeleton` and
//! `scratch` (how a new database is created), [`journal`] and `log_guard` (how much of a torn or
//! damaged log can be used), `replay`, `image` (what a check opens), `salvage`, `table_file` and
//! `rebuild` (how a repair treats damaged tables), `repair_mark` (the mark of an unfinished
//! repair); and space: `dropped` and `reclaim` (dropped ranges), `early_sync`, `sizes` and `dead`
//! (the size of ranges, and what a merge would free), `heads`, `gaps` and `tombstones` (deleted
//! keys at the heads of queues), `backup`.

mod archive;
mod backend;
mod backup;
mod block_fields;
mod block_header;
mod block_index;
mod block_rows;
mod bytes_at;
mod damage;
mod dead;
mod directory;
mod disk_space;
mod dropped;
mod durable_files;
mod durable_mark;
mod early_sync;
mod error;
mod flush;
mod gaps;
mod heads;
mod held;
mod image;
mod inventory;
pub mod journal;
mod key_filter;
mod layout;
mod locate;
mod log;
mod log_guard;
mod lookups;
mod manifest;
mod memtable;
mod open_table;
mod opening;
mod options;
mod pace;
mod private;
mod range;
mod range_back;
mod range_source;
mod rebuild;
mod reclaim;
mod repair_mark;
mod replay;
mod retired;
mod row_tree;
mod salvage;
mod scratch;
mod sizes;
mod skeleton;
mod snapshot;
mod store;
mod table_cut;
mod table_file;
mod table_output;
mod table_writer;
mod tables;
mod tombstones;
mod tuning;
mod view;

use std::path::Path;
use std::sync::Arc;

use quire_storage::{Committer, Engine, Result};

pub use backend::LsmBackend;
pub use directory::{FORMAT_VERSION, is_database};
pub use disk_space::{DISK_RESERVE_BYTES, DiskSpace, SpaceProbe};
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
    repair_mark::remove(directory)?;
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
