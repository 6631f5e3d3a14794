//! The default engine on disk: fjall below the committer, used only through its plain
//! database, batch and snapshot, in four shared keyspaces, with our own group commit, journal
//! guard, bounds on memory and reclaiming of dropped ranges.
//!
//! Read in this order: `directory` (what lies in a database directory, its lock and format),
//! `skeleton` and `scratch` (how a new one is made), [`journal`] (what a torn or damaged log is worth), `salvage`
//! (what a repair does about damaged tables), `backend`
//! (reads, batches, pressure), `reclaim` (dropped ranges), `gaps` and `tombstones` (heads of
//! queues), `backup`.

mod backend;
mod backup;
mod directory;
mod disk_space;
mod error;
mod gaps;
pub mod journal;
mod log_sync;
mod reclaim;
mod salvage;
mod scratch;
mod skeleton;
mod tombstones;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quire_storage::{Committer, CommitterOptions, Engine, Result};

pub use backend::FjallBackend;
pub use directory::{FORMAT_VERSION, is_database};
pub use disk_space::{DISK_RESERVE_BYTES, DiskSpace, SpaceProbe};

/// How to open a database directory.
#[derive(Clone)]
pub struct FjallOptions {
    /// Snapshots, conflict table, ticker, clock.
    pub committer: CommitterOptions,
    /// Upper bound of the block cache; used as far as data is read.
    pub cache_bytes: u64,
    /// Mend a damaged log: keep every intact batch, put the damaged file aside, say what is
    /// lost. Begin index entries anew whose tables are damaged: the layer above makes them again.
    /// Without it such a directory is refused, or fails where it is read.
    pub repair: bool,
    /// A scan that waits this long for its first row remembers what it found empty. Zero makes
    /// every scan do so, for tests.
    pub slow_head: Duration,
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
            reserve_bytes: DISK_RESERVE_BYTES,
            space_probe: disk_space::system_probe(),
        }
    }
}

/// An open directory.
pub struct Opened {
    /// The engine.
    pub engine: Arc<dyn Engine>,
    /// What an operator should know: a torn record that was trimmed, what a repair lost.
    pub warnings: Vec<String>,
}

/// Opens a database directory, creating it if it is missing or empty.
///
/// Errors: `Unavailable` if another process has it open, if its format is newer or if it holds
/// another program's files; `Corruption` if the log is damaged with intact records after the
/// damage (nothing is changed then; `repair` mends it).
pub fn open(directory: &Path, options: FjallOptions) -> Result<Opened> {
    let (backend, warnings) = FjallBackend::open(directory, &options)?;
    let engine = Arc::new(Committer::open(backend, options.committer)?);
    Ok(Opened { engine, warnings })
}
