//! How a database directory is opened.

use std::time::Duration;

use quire_storage::CommitterOptions;

use crate::directory::disk_space::{self, DISK_RESERVE_BYTES, SpaceProbe};

/// The number of threads that merge tables, one for each keyspace.
const MERGE_THREADS: usize = 4;

/// Options for opening a database directory.
#[derive(Clone)]
pub struct LsmOptions {
    /// The options of the committer: snapshots, conflict table, ticker, clock.
    pub committer: CommitterOptions,
    /// The largest size of the block cache, in bytes. The cache grows with the data that is read.
    pub cache_bytes: u64,
    /// Repairs missing and damaged files: keeps every intact batch of the log and every readable
    /// row, puts the damaged files aside and reports what is lost. The layer above builds lost
    /// index entries again. Until [`end_repair`](crate::end_repair) only another repair can open
    /// the directory. Without this option a damaged directory is refused, or reads of the damaged
    /// part fail.
    pub repair: bool,
    /// A scan that waits this long for its first row remembers the empty range before it. With zero
    /// every scan does so, for tests.
    pub slow_head: Duration,
    /// The number of threads that merge tables. One more flushes memtables.
    pub merge_threads: usize,
    /// The size of a log file, in bytes, from which on the next one is used.
    pub log_file_bytes: u64,
    /// When commits have waited for this many syncs of a log file, the next file is filled with zeros
    /// before it is used. Its syncs take less time (docs/adr/0023-filled-log-files.md).
    pub log_fill_syncs: u64,
    /// The bytes of the file system that stay free, but at most a quarter of it. While less is
    /// free, commits that add data fail with `Full`.
    pub reserve_bytes: u64,
    /// Measures the free space of the data's file system.
    pub space_probe: SpaceProbe,
}

impl Default for LsmOptions {
    fn default() -> Self {
        Self {
            committer: CommitterOptions::default(),
            cache_bytes: 256 << 20,
            repair: false,
            slow_head: Duration::from_micros(200),
            merge_threads: MERGE_THREADS,
            log_file_bytes: 64 << 20,
            log_fill_syncs: 1000,
            reserve_bytes: DISK_RESERVE_BYTES,
            space_probe: disk_space::system_probe(),
        }
    }
}
