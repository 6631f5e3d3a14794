//! The default engine on disk: the LSM trees of fjall below the committer of crate `storage`. fjall
//! stores the engine's four spaces as four keyspaces, writes batches to its journal and gives
//! snapshots. Group commit, the check of the journal at an open, the bounds on memory and the
//! reclaiming of dropped ranges are our own.
//!
//! Read in this order: `directory` (what lies in a database directory, its lock and format), `layout`
//! and `tuning` (where fjall keeps each space, and with which sizes), `opening` (the steps of an
//! open), `inventory` and `manifest` (what must be there before fjall opens it), `skeleton` and
//! `scratch` (how a new one is made), [`journal`] and `log_guard` (what a torn or damaged log is
//! worth), `image` (what a check opens), `salvage`, `table_file` and `rebuild` (what a repair does about
//! damaged tables), `repair_mark` (that it is done), `keyspaces` (fjall's handles), `backend` (reads,
//! batches, pressure), `newest`, `lookups`, `open_table` and `block_rows` (reads of what nothing has
//! changed since, straight from the tables), `memtables`, `retired` and `early_sync` (what is done
//! outside of fjall's locks), `dropped` and `reclaim` (dropped ranges), `sizes` and `dead` (what ranges
//! hold, and what a compaction would give back), `heads`, `gaps` and `tombstones` (heads of queues),
//! `backup`.

mod backend;
mod backup;
mod block_rows;
mod bytes_at;
mod cut;
mod damage;
mod dead;
mod directory;
mod disk_space;
mod dropped;
mod durable_files;
mod durable_mark;
mod early_sync;
mod error;
mod gaps;
mod heads;
mod held;
mod image;
mod inventory;
pub mod journal;
mod keyspaces;
mod layout;
mod log_guard;
mod log_sync;
mod lookups;
mod manifest;
mod memtables;
mod newest;
mod newest_back;
mod open_table;
mod opening;
mod private;
mod rebuild;
mod recent_keys;
mod reclaim;
mod repair_mark;
mod retired;
mod salvage;
mod scratch;
mod sizes;
mod skeleton;
mod snapshot;
mod table_file;
mod tombstones;
mod tuning;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quire_storage::{Committer, CommitterOptions, Engine, Result};

pub use backend::FjallBackend;
pub use directory::{FORMAT_VERSION, is_database};
pub use disk_space::{DISK_RESERVE_BYTES, DiskSpace, SpaceProbe};

/// fjall's first background thread only flushes: it puts each request for a compaction back into the
/// queue, at full speed, until another thread takes it. With a thread for the compaction of each of
/// the four keyspaces beside it, none stays in the queue (docs/benchmarks.md, "Sustained writes").
const WORKERS: usize = 5;

/// How to open a database directory.
#[derive(Clone)]
pub struct FjallOptions {
    /// Snapshots, conflict table, ticker, clock.
    pub committer: CommitterOptions,
    /// Upper bound of the block cache; used as far as data is read.
    pub cache_bytes: u64,
    /// Mend what is missing or damaged: keep every intact batch of the log and every row that can be
    /// read, put the damaged files aside, say what is lost. Lost index entries are made again by the
    /// layer above. Until [`end_repair`] only another repair can open the directory. Without this such a
    /// directory is refused, or fails where it is read.
    pub repair: bool,
    /// A scan that waits this long for its first row remembers what it found empty. Zero makes
    /// every scan do so, for tests.
    pub slow_head: Duration,
    /// fjall's background threads: one flushes, the others compact.
    pub workers: usize,
    /// Bytes of the file system that stay free, but at most a quarter of it: while less is left,
    /// commits that add data answer `Full`.
    pub reserve_bytes: u64,
    /// Measures the file system of the data.
    pub space_probe: SpaceProbe,
}

impl Default for FjallOptions {
    fn default() -> Self {
        Self {
            committer: CommitterOptions::default(),
            cache_bytes: 256 << 20,
            repair: false,
            slow_head: Duration::from_micros(200),
            workers: WORKERS,
            reserve_bytes: DISK_RESERVE_BYTES,
            space_probe: disk_space::system_probe(),
        }
    }
}

/// An open directory.
pub struct Opened {
    /// The engine that was opened.
    pub engine: Arc<dyn Engine>,
    /// What an operator should know: a torn record that was trimmed, what a repair lost.
    pub warnings: Vec<String>,
}

/// What a check of a directory found.
pub struct Examined {
    /// An engine on an image of the directory, unless it is too damaged for that. What is written to
    /// it is lost.
    pub opened: Option<Opened>,
    /// What is wrong with the files, each with its path.
    pub damages: Vec<String>,
}

/// Looks at a database directory without changing anything in it, not even what a start would cut
/// off or tidy away. The image that is opened lies in the system's directory for temporary files,
/// and has a copy of the log.
///
/// Errors: `Unavailable` if another process has the directory open, if its format is newer or if it
/// is no finished database.
pub fn examine(directory: &Path, options: FjallOptions) -> Result<Examined> {
    let opening::Examined { backend, warnings, damages } =
        FjallBackend::examine(directory, &options)?;
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

/// Ends a repair that has opened `directory` and closed it again: from now on it can be used.
///
/// Errors: `Unavailable` if another process has the directory open.
pub fn end_repair(directory: &Path) -> Result<()> {
    let lock = directory::Directory::lock(directory, true)?;
    repair_mark::remove(directory)?;
    drop(lock);
    Ok(())
}

/// Opens a database directory, creating it if it is missing or empty.
///
/// Errors: `Unavailable` if another process has it open, if its format is newer or if it holds
/// another program's files; `Corruption` if a file is missing or damaged, or if the log is damaged
/// with intact records after the damage (nothing is changed then; `repair` mends it). `Unavailable`
/// also while a repair has begun and not ended.
pub fn open(directory: &Path, options: FjallOptions) -> Result<Opened> {
    let (backend, warnings) = FjallBackend::open(directory, &options)?;
    let engine = Arc::new(Committer::open(backend, options.committer)?);
    Ok(Opened { engine, warnings })
}
