//! What every engine promises: ordered bytes in four spaces, snapshots, and an atomic commit
//! that fails if another commit was faster. Synchronous and object-safe; calls take many keys or
//! return a page, so that a remote engine can batch. Callers use [`Txn`](crate::Txn), which
//! speaks this contract for them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

pub use crate::batch::{
    Check, CommitBatch, CountDelta, Counts, DropRange, Durability, LockOwner, Op, Place,
};
use crate::error::Result;
use crate::interrupt::Interrupt;
pub use crate::space::{KeyHash, Space, key_hash};
pub use crate::version::{ClusterTime, Committed, Version};

/// What an engine can bear; declared, not discovered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Longest key, in bytes.
    pub key_bytes_max: usize,
    /// Longest value, in bytes.
    pub value_bytes_max: usize,
    /// Most bytes one transaction may buffer.
    pub txn_bytes_max: usize,
    /// How long a snapshot may stay open once newer commits exist.
    pub snapshot_age_max: Option<Duration>,
    /// True if the data outlive the process.
    pub persistent: bool,
    /// True if [`Engine::backup`] works.
    pub backup: bool,
}

/// Which way a scan walks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// In the order of rising keys.
    #[default]
    Forward,
    /// In the order of falling keys.
    Reverse,
}

/// One page's worth of a range: keys in `[start, end)`, an empty `end` is open.
#[derive(Debug, Clone, Copy)]
pub struct ScanRequest<'a> {
    /// The space to read.
    pub space: Space,
    /// First key that belongs to the range, whichever way the scan walks.
    pub start: &'a [u8],
    /// First key that does not belong to the range any more; empty for the end of the space.
    pub end: &'a [u8],
    /// Which way to walk.
    pub direction: Direction,
    /// Leave values empty.
    pub keys_only: bool,
    /// Most rows in the page; at least 1.
    pub rows_max: usize,
    /// The page ends with the row that reaches this sum of key and value bytes.
    pub bytes_max: usize,
}

impl<'a> ScanRequest<'a> {
    /// A forward scan of `[start, end)` with pages of at most 1,000 rows or 1 MiB.
    pub const fn new(space: Space, start: &'a [u8], end: &'a [u8]) -> Self {
        Self {
            space,
            start,
            end,
            direction: Direction::Forward,
            keys_only: false,
            rows_max: 1000,
            bytes_max: 1 << 20,
        }
    }

    /// The same range, walked from its end.
    #[must_use]
    pub const fn reverse(mut self) -> Self {
        self.direction = Direction::Reverse;
        self
    }

    /// The same range, keys only.
    #[must_use]
    pub const fn keys_only(mut self) -> Self {
        self.keys_only = true;
        self
    }

    /// The same range with pages of at most `rows_max` rows.
    #[must_use]
    pub const fn rows_max(mut self, rows_max: usize) -> Self {
        self.rows_max = rows_max;
        self
    }

    /// The request for the page after the one that ended with this resume key.
    #[must_use]
    pub const fn resumed(mut self, resume: &'a [u8]) -> Self {
        match self.direction {
            Direction::Forward => self.start = resume,
            Direction::Reverse => self.end = resume,
        }
        self
    }

    /// Whether the range cannot hold a key.
    pub fn is_empty(&self) -> bool {
        !self.end.is_empty() && self.start >= self.end
    }
}

/// The rows of one scan step and where the next one begins.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// Keys with their values (empty if the request said `keys_only`), in scan order.
    pub rows: Vec<(Bytes, Bytes)>,
    /// What [`ScanRequest::resumed`] takes to go on; `None` when the range is exhausted. A page
    /// that has a resume key has at least one row; the page after it may still be empty.
    pub resume: Option<Bytes>,
}

impl Page {
    /// Empties the page and keeps its memory.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.resume = None;
    }

    /// Sets the resume key that follows the last row of the page.
    pub fn resume_after_last(&mut self, direction: Direction) {
        self.resume = self.rows.last().map(|(key, _)| match direction {
            Direction::Forward => {
                let mut next = Vec::with_capacity(key.len() + 1);
                next.extend_from_slice(key);
                next.push(0);
                Bytes::from(next)
            }
            Direction::Reverse => key.clone(),
        });
    }
}

/// The smallest key that is greater than every key with this prefix; empty (open) if there is none.
pub fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.last_mut() {
        if *last < u8::MAX {
            *last += 1;
            return end;
        }
        end.pop();
    }
    end
}

/// A consistent view of all spaces at one version. Cheap to open (well under a microsecond),
/// cheap to hold as long as there are no commits; past the engine's caps every call answers
/// `SnapshotTooOld`. [`Txn`](crate::Txn) is one too, with its own writes merged in.
pub trait Snapshot: Send + Sync {
    /// The last commit that the view contains.
    fn version(&self) -> Version;

    /// The cluster time of that commit.
    fn cluster_time(&self) -> ClusterTime;

    /// The value of a key.
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>>;

    /// The values of many keys, appended to `out` in the order of `keys`.
    fn get_many(&self, space: Space, keys: &[&[u8]], out: &mut Vec<Option<Bytes>>) -> Result<()>;

    /// Replaces the content of `page` by the first rows of the range.
    fn scan(&self, request: &ScanRequest<'_>, page: &mut Page) -> Result<()>;

    /// One page for each request; `pages` is resized to fit and its memory reused.
    fn scan_many(&self, requests: &[ScanRequest<'_>], pages: &mut Vec<Page>) -> Result<()> {
        pages.resize_with(requests.len(), Page::default);
        for (request, page) in requests.iter().zip(pages.iter_mut()) {
            self.scan(request, page)?;
        }
        Ok(())
    }
}

/// An estimate of what a range holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    /// Bytes, as stored.
    pub bytes: u64,
    /// Keys; 0 if the engine cannot tell.
    pub keys: u64,
}

/// Work that an engine does when told to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maintenance {
    /// Everything in memory to its final place, so that the next start is quick.
    Flush,
    /// Give back what deleted keys occupy, however long it takes.
    Compact,
    /// Reclaim dropped ranges that no snapshot needs any more, as far as that is cheap; what
    /// would need much rewriting waits for the engine's own compaction, or for `Compact`.
    Reclaim,
    /// What the engine's own ticker does every 100 ms: sync buffered commits, enforce the caps
    /// on snapshots. For simulations, which have no ticker.
    Tick,
}

/// What an engine holds that can outlive the collection or the index that it belonged to. The layer
/// above gives out no number that occurs in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Traces {
    /// The collections that have counters, in rising order.
    pub counted: Vec<u32>,
    /// Every dropped range whose record still exists, also if its space has come back.
    pub dropped: Vec<DropRange>,
}

/// Counters since the engine was opened, for `serverStatus` and for tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EngineStats {
    /// The number of successful commits.
    pub commits: u64,
    /// Commits that lost against another.
    pub conflicts: u64,
    /// Batches given to the backend; `commits / groups` is the size of a group.
    pub groups: u64,
    /// Times the log was forced to stable storage.
    pub fsyncs: u64,
    /// Key and value bytes committed.
    pub written_bytes: u64,
    /// Microseconds that commits have waited for backpressure.
    pub pressure_us: u64,
    /// Snapshots (distinct versions) that are open, the current one included.
    pub snapshots: u64,
    /// Snapshots that the engine holds apart, because much was written since they were opened.
    pub snapshots_held: u64,
    /// Bytes of memory that only those need.
    pub snapshots_held_bytes: u64,
    /// Snapshots that were taken from their owner by the caps.
    pub snapshots_revoked: u64,
    /// Keys in the conflict table.
    pub conflict_keys: u64,
    /// Keys held by open transactions.
    pub locks: u64,
    /// Dropped ranges whose space has not come back yet.
    pub ranges_dropped: u64,
    /// Dropped ranges whose space has come back, but whose record is still kept: a crash could
    /// bring them back.
    pub ranges_freed: u64,
    /// Bytes of memory in unflushed writes.
    pub memtable_bytes: u64,
    /// Bytes of memory in the block cache.
    pub cache_bytes: u64,
    /// Upper bound of the block cache.
    pub cache_capacity_bytes: u64,
    /// Bytes on disk, the log included.
    pub disk_bytes: u64,
    /// Bytes on disk that are log.
    pub journal_bytes: u64,
    /// True while commits with new data, or all commits, are refused because the disk is nearly full.
    pub is_short_of_space: bool,
}

/// A storage engine. Everything uses it as `Arc<dyn Engine>`.
pub trait Engine: Send + Sync {
    /// The limits of this engine.
    fn caps(&self) -> &Caps;

    /// A view of everything committed so far.
    fn snapshot(&self) -> Result<Box<dyn Snapshot>>;

    /// A view of the state at a time: everything committed up to it and nothing after it. Every
    /// commit from now on gets a later time. `SnapshotTooOld` for a time whose state is not known
    /// any more; the last seconds are ([`keep_history`](Self::keep_history)).
    fn snapshot_at(&self, time: ClusterTime) -> Result<Box<dyn Snapshot>>;

    /// How long the past stays readable by [`snapshot_at`](Self::snapshot_at), at the most: much
    /// that is written shortens it, and so does the maintenance that gives space back.
    fn keep_history(&self, window: Duration);

    /// Commits a batch: atomic, and durable as asked when it returns. `Full` while less than the
    /// reserve of the disk is left, unless the batch only deletes, drops or changes `Meta`; `Full`
    /// for every batch while nearly nothing is left.
    fn commit(&self, batch: CommitBatch) -> Result<Committed>;

    /// Waits until flushing and compaction have caught up, as [`commit`](Self::commit) does before
    /// it queues a batch. A caller that commits under a lock of its own calls this first, and says
    /// so in [`CommitBatch::admitted`].
    fn admit(&self, interrupt: Option<&Interrupt>) -> Result<()>;

    /// Whether the documents in memory are about to become a table. A caller that knows when no record
    /// id is under way then calls [`cut_table`](Self::cut_table) at such a moment.
    fn wants_cut(&self) -> bool;

    /// Begins a new table with the next document, if one is about to begin. If all documents that follow
    /// have greater record ids, the tables do not overlap, and are never merged.
    fn cut_table(&self) -> Result<()>;

    /// Takes locks on keys now, first updater wins: `Conflict` if another transaction holds one
    /// of them or a commit after `base` changed one. Locks taken before the failure stay.
    fn lock(&self, owner: LockOwner, base: Version, keys: &[Check]) -> Result<()>;

    /// Releases all locks of a transaction. A commit that succeeds does so itself, once it is
    /// visible.
    fn unlock(&self, owner: LockOwner);

    /// Takes a place at the end of the line for a key; [`KeyTurn`](crate::KeyTurn) speaks this
    /// and the next three. The interrupt is what will wait in it.
    fn join_line(&self, hash: KeyHash, interrupt: &Arc<Interrupt>) -> Place;

    /// Waits until this place is the first of its line and no transaction holds the key. The caller
    /// must hold no other place and no lock.
    fn wait_in_line(&self, place: Place, interrupt: &Arc<Interrupt>) -> Result<()>;

    /// The first in a line was not fast enough: until it leaves, no other single write of the key
    /// is let through. A transaction is: it does not wait in lines.
    fn reserve(&self, place: Place);

    /// Leaves a line. A commit that succeeds does so itself, once it is visible.
    fn leave_line(&self, place: Place);

    /// Returns once every commit up to `version` is on stable storage.
    fn barrier(&self, version: Version) -> Result<()>;

    /// Waits at most `limit` until every commit up to `version` is on stable storage. Returns whether
    /// it is.
    fn barrier_within(&self, version: Version, limit: Duration) -> Result<bool>;

    /// Returns the last version that is known to be on stable storage with everything before it. A reader
    /// that goes no further sees nothing that a power cut takes back, without an fsync of its own.
    fn durable_version(&self) -> Version;

    /// Returns once a commit after `version` is visible, or why `interrupt` ended the wait.
    fn wait_past(&self, version: Version, interrupt: &Arc<Interrupt>) -> Result<()>;

    /// Gives up the change records of all commits before `before`, durably. Their space comes back as that
    /// of a dropped range does: whole tables are removed, the rest goes with a compaction.
    fn truncate_log(&self, before: Version) -> Result<()>;

    /// Returns the version that the change records begin with: those of earlier commits have been given
    /// up, and reads may or may not show them. [`seek_log`](crate::seek_log) finds a place by its time.
    fn log_begins_at(&self) -> Version;

    /// Drops a range in a commit of its own; see [`CommitBatch::drops`].
    fn drop_range(&self, space: Space, start: &[u8], end: &[u8]) -> Result<()>;

    /// The dropped ranges whose space has not come back yet, which may still show keys.
    fn dropped_ranges(&self) -> Vec<DropRange>;

    /// What the engine still holds under numbers that were given out once.
    fn traces(&self) -> Traces;

    /// Returns a key that no key of `space` exceeds, or `None` if the space is empty. Also
    /// answers where the last keys are damaged.
    fn upper_bound(&self, space: Space) -> Result<Option<Bytes>>;

    /// Estimates what a range holds.
    fn approximate_size(&self, space: Space, start: &[u8], end: &[u8]) -> Result<Size>;

    /// Estimates the bytes that deleted and overwritten keys of a range occupy, which
    /// [`Maintenance::Compact`] would give back. `live` is the number of keys that the range has, if
    /// the caller knows it. What has not been flushed does not count.
    fn reclaimable_bytes(
        &self,
        space: Space,
        start: &[u8],
        end: &[u8],
        live: Option<u64>,
    ) -> Result<u64>;

    /// The counters of a collection as of the last commit; exact, also after a crash.
    fn counts(&self, collection: u32) -> Counts;

    /// Writes a consistent copy into a new or empty directory that the same engine can open, and
    /// says which commit is the last in it. Commits go on meanwhile. A copy that fails or is
    /// interrupted leaves nothing behind.
    fn backup(&self, directory: &Path, interrupt: &Interrupt) -> Result<Committed>;

    /// Does a piece of maintenance now.
    fn maintenance(&self, task: Maintenance) -> Result<()>;

    /// The latest commit's version.
    fn version(&self) -> Version;

    /// The latest commit's cluster time.
    fn cluster_time(&self) -> ClusterTime;

    /// Every later commit gets a cluster time after this one. Not remembered across restarts.
    fn advance_clock(&self, to: ClusterTime);

    /// Returns the counters of the engine.
    fn stats(&self) -> EngineStats;

    /// An error once the engine is poisoned: it serves no more writes and should be left.
    fn health(&self) -> Result<()>;

    /// Makes everything durable, stops the engine's threads and releases its files. Later
    /// calls answer `Closed`.
    fn close(&self) -> Result<()>;
}
