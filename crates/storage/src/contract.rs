//! The contract of every engine: ordered bytes in four spaces, snapshots, and an atomic commit that
//! fails if it conflicts with another. It is synchronous and object-safe. Calls take many keys or
//! return a page, so that a remote engine can batch. Callers use it through [`Txn`](crate::Txn).

use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

pub use crate::batch::{
    Check, CommitBatch, CountDelta, Counts, DropRange, Durability, LinePlace, LockOwner, Op,
};
use crate::error::Result;
use crate::interrupt::Interrupt;
pub use crate::space::{KeyHash, Space, key_hash};
pub use crate::version::{ClusterTime, Committed, Version};
use crate::watch::{Reach, Watch, Watched};

/// The limits and abilities of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// The longest key in bytes.
    pub key_bytes_max: usize,
    /// The longest value in bytes.
    pub value_bytes_max: usize,
    /// The most bytes that one transaction may buffer.
    pub txn_bytes_max: usize,
    /// How long a snapshot may stay open after the first newer commit.
    pub snapshot_age_max: Option<Duration>,
    /// True if the data outlives the process.
    pub persistent: bool,
    /// True if [`Engine::backup`] works.
    pub backup: bool,
}

/// The direction of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// In ascending order of the keys.
    #[default]
    Forward,
    /// In descending order of the keys.
    Reverse,
}

/// A range of keys `[start, end)`, and the limits of one page of it.
#[derive(Debug, Clone, Copy)]
pub struct ScanRequest<'a> {
    /// The space to read.
    pub space: Space,
    /// The first key of the range, for both directions.
    pub start: &'a [u8],
    /// The first key after the range; empty for the end of the space.
    pub end: &'a [u8],
    /// The direction of the scan.
    pub direction: Direction,
    /// Returns keys with empty values.
    pub keys_only: bool,
    /// The most rows in the page; at least 1.
    pub rows_max: usize,
    /// The page ends with the row at which the sum of key and value bytes reaches this number.
    pub bytes_max: usize,
}

impl<'a> ScanRequest<'a> {
    /// Returns a forward scan of `[start, end)` with pages of at most 1,000 rows or 1 MiB.
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

    /// Returns the same range, scanned in descending order.
    #[must_use]
    pub const fn reverse(mut self) -> Self {
        self.direction = Direction::Reverse;
        self
    }

    /// Returns the same range, with keys only.
    #[must_use]
    pub const fn keys_only(mut self) -> Self {
        self.keys_only = true;
        self
    }

    /// Returns the same range with pages of at most `rows_max` rows.
    #[must_use]
    pub const fn rows_max(mut self, rows_max: usize) -> Self {
        self.rows_max = rows_max;
        self
    }

    /// Returns the request for the page that follows one with this resume key.
    #[must_use]
    pub const fn resumed(mut self, resume: &'a [u8]) -> Self {
        match self.direction {
            Direction::Forward => self.start = resume,
            Direction::Reverse => self.end = resume,
        }
        self
    }

    /// Returns true if the range cannot contain a key.
    pub fn is_empty(&self) -> bool {
        !self.end.is_empty() && self.start >= self.end
    }
}

/// The rows of one scan step, and the position at which the next step begins.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// Keys with their values (empty for `keys_only`), in scan order.
    pub rows: Vec<(Bytes, Bytes)>,
    /// The argument of [`ScanRequest::resumed`] for the next page; `None` at the end of the range.
    /// A page with a resume key has at least one row. The page after it may be empty.
    pub resume: Option<Bytes>,
}

impl Page {
    /// Clears the page and keeps its memory.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.resume = None;
    }

    /// Sets the resume key to the position after the last row of the page.
    pub fn resume_after_last(&mut self, direction: Direction) {
        self.resume = self.rows.last().map(|(key, _)| match direction {
            Direction::Forward => next_key(key),
            Direction::Reverse => key.clone(),
        });
    }

    /// Removes all rows except the last. Returns how many there were.
    pub fn keep_last(&mut self) -> usize {
        let rows = self.rows.len();
        self.rows.drain(..rows.saturating_sub(1));
        rows
    }
}

/// A row that a scan passes to a visitor.
#[derive(Debug, Clone, Copy)]
pub struct VisitedRow<'r> {
    /// The row's key, which is valid only during the call.
    pub key: &'r [u8],
    /// The value; empty for `keys_only`.
    pub value: &'r [u8],
    /// The bytes that the value, if it is not empty, is a part of: a block of the engine, or the
    /// value itself.
    pub whole: &'r Bytes,
}

impl VisitedRow<'_> {
    /// Returns the value from its byte `from` on, without a copy. It keeps `whole` in memory.
    pub fn to_bytes(&self, from: usize) -> Bytes {
        self.whole.slice_ref(self.value.get(from..).unwrap_or_default())
    }
}

/// The function that a scan calls for each row. It may end the scan.
pub type Visitor<'v> = dyn FnMut(&VisitedRow<'_>) -> ControlFlow<()> + 'v;

/// Passes the rows of a page that `scan` fills to a visitor; see [`Snapshot::visit`].
pub(crate) fn visit_page(
    request: &ScanRequest<'_>,
    visitor: &mut Visitor<'_>,
    scan: impl FnOnce(&mut Page) -> Result<()>,
) -> Result<Option<Bytes>> {
    let mut page = Page::default();
    scan(&mut page)?;
    let is_last = |(key, whole): &(Bytes, Bytes)| {
        visitor(&VisitedRow { key, value: whole, whole }).is_break()
    };
    if let Some(last) = page.rows.iter().position(is_last) {
        page.rows.truncate(last + 1);
        page.resume_after_last(request.direction);
    }
    Ok(page.resume)
}

/// Returns the smallest key that is greater than this one.
pub fn next_key(key: &[u8]) -> Bytes {
    Bytes::from([key, &[0]].concat())
}

/// Returns the smallest key that is greater than every key with this prefix; empty (open) if there
/// is none.
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

/// A consistent view of all spaces at one version. Cheap to open (well under a microsecond), and
/// cheap to keep open while there are no commits. Beyond the engine's caps every call returns
/// `SnapshotTooOld`. A [`Txn`](crate::Txn) is a snapshot too, merged with its own writes.
pub trait Snapshot: Send + Sync {
    /// Returns the version of the last commit in the view.
    fn version(&self) -> Version;

    /// Returns the cluster time of that commit.
    fn cluster_time(&self) -> ClusterTime;

    /// Returns the value of a key.
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>>;

    /// Appends the values of `keys` to `out`, in the same order.
    fn get_many(&self, space: Space, keys: &[&[u8]], out: &mut Vec<Option<Bytes>>) -> Result<()>;

    /// Replaces the content of `page` by the first rows of the range.
    fn scan(&self, request: &ScanRequest<'_>, page: &mut Page) -> Result<()>;

    /// Counts the first rows of the range. Returns the number of rows that a page of `scan` could
    /// have, and only the last of them in `page`. The engine may ignore `bytes_max`.
    fn pass(&self, request: &ScanRequest<'_>, page: &mut Page) -> Result<usize> {
        self.scan(request, page)?;
        Ok(page.keep_last())
    }

    /// Calls `visitor` for the rows that a page of `scan` would have, without making the page. The
    /// visitor may take long. Returns the key of [`Page::resume`]; if the visitor breaks, the key
    /// after its row.
    fn visit(&self, request: &ScanRequest<'_>, visitor: &mut Visitor<'_>) -> Result<Option<Bytes>> {
        visit_page(request, visitor, |page| self.scan(request, page))
    }

    /// Fills one page for each request. Resizes `pages` and reuses its memory.
    fn scan_many(&self, requests: &[ScanRequest<'_>], pages: &mut Vec<Page>) -> Result<()> {
        pages.resize_with(requests.len(), Page::default);
        for (request, page) in requests.iter().zip(pages.iter_mut()) {
            self.scan(request, page)?;
        }
        Ok(())
    }
}

/// An estimate of the content of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    /// The stored size in bytes.
    pub bytes: u64,
    /// The number of keys; 0 if the engine cannot estimate it.
    pub keys: u64,
}

/// Work that an engine does on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maintenance {
    /// Writes everything in memory to its final place, so that the next start is quick.
    Flush,
    /// Reclaims the space of deleted keys, however long it takes.
    Compact,
    /// Reclaims dropped ranges that no snapshot needs any more, as far as that is cheap. Ranges
    /// that need much rewriting wait for the engine's own compaction or for `Compact`.
    Reclaim,
    /// The work of the engine's ticker, which normally runs every 100 ms: sync buffered commits,
    /// enforce the caps on snapshots. For simulations, which have no ticker.
    Tick,
}

/// Ids in the engine's records that may outlive their collection or index. The layer above must not
/// assign them again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Traces {
    /// The collections that have counters, in ascending order.
    pub counted: Vec<u32>,
    /// Every dropped range that still has a record, even if its space is reclaimed.
    pub dropped: Vec<DropRange>,
}

/// Counters since the engine was opened, for `serverStatus` and for tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EngineStats {
    /// The number of successful commits.
    pub commits: u64,
    /// The number of commits that failed with a conflict.
    pub conflicts: u64,
    /// The number of batches given to the backend; `commits / groups` is the mean size of a group.
    pub groups: u64,
    /// The number of times that the log was forced to stable storage.
    pub fsyncs: u64,
    /// Key and value bytes committed.
    pub written_bytes: u64,
    /// Microseconds that commits have waited for backpressure.
    pub pressure_us: u64,
    /// The number of open snapshots (distinct versions), with the current one.
    pub snapshots: u64,
    /// Snapshots that the engine holds separately, because many bytes were written since they were
    /// opened.
    pub snapshots_held: u64,
    /// Memory in bytes that only the held snapshots need.
    pub snapshots_held_bytes: u64,
    /// Snapshots that the caps have revoked.
    pub snapshots_revoked: u64,
    /// Keys in the conflict table.
    pub conflict_keys: u64,
    /// Keys that open transactions have locked.
    pub locks: u64,
    /// The number of readers that are registered for commits now.
    pub watches: u64,
    /// How often such a reader was woken.
    pub wakes: u64,
    /// Dropped ranges whose space is not yet reclaimed.
    pub ranges_dropped: u64,
    /// Dropped ranges whose space is reclaimed, but whose record is kept, because a crash could
    /// bring them back.
    pub ranges_freed: u64,
    /// Memory in bytes of unflushed writes.
    pub memtable_bytes: u64,
    /// Memory in bytes of the block cache.
    pub cache_bytes: u64,
    /// The upper bound of the block cache in bytes.
    pub cache_capacity_bytes: u64,
    /// Bytes on disk, with the log.
    pub disk_bytes: u64,
    /// Bytes on disk of the log.
    pub journal_bytes: u64,
    /// True while the engine refuses commits that add data, or all commits, because the disk is
    /// nearly full.
    pub is_short_of_space: bool,
}

/// A storage engine. All users share it as `Arc<dyn Engine>`.
pub trait Engine: Send + Sync {
    /// Returns the limits of this engine.
    fn caps(&self) -> &Caps;

    /// Returns a snapshot of everything committed so far.
    fn snapshot(&self) -> Result<Box<dyn Snapshot>>;

    /// Returns a snapshot of the state at `time`: everything committed up to it and nothing later.
    /// Every commit from now on gets a later time. Fails with `SnapshotTooOld` if the state of that
    /// time is not kept any more; see [`keep_history`](Self::keep_history).
    fn snapshot_at(&self, time: ClusterTime) -> Result<Box<dyn Snapshot>>;

    /// Sets how long past states can be read by [`snapshot_at`](Self::snapshot_at). The time is an
    /// upper bound: many written bytes shorten it, and so does maintenance that reclaims space.
    fn keep_history(&self, window: Duration);

    /// Commits a batch atomically. It has the requested durability on return. Fails with `Full` if
    /// the free disk space is less than the reserve, unless the batch only deletes, drops or
    /// changes `Meta`. Fails with `Full` for every batch if the disk is nearly full.
    fn commit(&self, batch: CommitBatch) -> Result<Committed>;

    /// Waits until flushing and compaction have caught up, as [`commit`](Self::commit) does before
    /// it queues a batch. A caller that commits while it holds a lock calls this before it takes
    /// the lock, and sets [`CommitBatch::admitted`].
    fn admit(&self, interrupt: Option<&Interrupt>) -> Result<()>;

    /// Returns true if the documents in memory are about to become a table. A caller that knows the
    /// record ids in use then calls [`cut_table`](Self::cut_table).
    fn wants_cut(&self) -> bool;

    /// Begins a new table of documents, if one is about to begin. Documents with the keys that
    /// `late` returns still go to the table before it. `late` is called while no batch is written.
    /// If it returns, for each collection whose record ids are under way, the keys below the next
    /// id, then the tables do not overlap, and are never merged. The ranges must not overlap.
    fn cut_table(&self, late: &mut dyn FnMut() -> Vec<Range<Bytes>>) -> Result<()>;

    /// Tells that no new document will have a key that the last call of
    /// [`cut_table`](Self::cut_table) was given. After much was written, the engine no longer waits
    /// for this call.
    fn end_late(&self);

    /// Takes locks on the keys that are written; the first updater wins. Fails with `Conflict` if
    /// another transaction has locked one of these, or if a commit after `base` changed a key. Keeps
    /// the locks that were taken before the failure.
    fn lock(&self, owner: LockOwner, base: Version, keys: &[Check]) -> Result<()>;

    /// Releases all locks of a transaction. A successful commit releases them itself when it
    /// becomes visible.
    fn unlock(&self, owner: LockOwner);

    /// Takes a place at the end of the line for a key. `interrupt` belongs to the waiter.
    /// [`KeyTurn`](crate::KeyTurn) uses this function and the next three.
    fn join_line(&self, hash: KeyHash, interrupt: &Arc<Interrupt>) -> LinePlace;

    /// Waits until this place is the first of its line and no transaction has locked the key. The
    /// caller must hold no other place and no lock.
    fn wait_in_line(&self, place: LinePlace, interrupt: &Arc<Interrupt>) -> Result<()>;

    /// Reserves the key for the first of its line, after it lost the key again: until it leaves,
    /// other single writes of the key fail. Transactions do not, because they do not wait in lines.
    fn reserve(&self, place: LinePlace);

    /// Leaves a line. A successful commit leaves it itself when it becomes visible.
    fn leave_line(&self, place: LinePlace);

    /// Returns once every commit up to `version` is on stable storage.
    fn barrier(&self, version: Version) -> Result<()>;

    /// Waits at most `limit` until every commit up to `version` is on stable storage. Returns true
    /// if it is.
    fn barrier_within(&self, version: Version, limit: Duration) -> Result<bool>;

    /// Returns the last version that is known to be on stable storage, with everything before it. A
    /// reader that reads no further sees nothing that a power failure can undo, and needs no fsync.
    fn durable_version(&self) -> Version;

    /// Registers a reader that waits for commits ([`Watch::wait`]). It registers before it reads, so
    /// that it misses no commit. `interrupt` ends its waits.
    fn watch(&self, watched: Watched, reach: Reach, interrupt: &Arc<Interrupt>) -> Watch;

    /// Wakes the readers that watch a collection, although no commit has changed it: something that
    /// kept them from its documents has ended.
    fn wake(&self, collection: u32);

    /// Deletes, durably, the change records of all commits before `before`. The space is reclaimed
    /// as that of a dropped range: whole tables are removed, the rest goes with a compaction.
    fn truncate_log(&self, before: Version) -> Result<()>;

    /// Returns the version at which the change records begin. Earlier records are truncated, and a
    /// read may or may not show them. [`seek_log`](crate::seek_log) finds a record by its time.
    fn log_begins_at(&self) -> Version;

    /// Drops a range in a separate commit; see [`CommitBatch::drops`].
    fn drop_range(&self, space: Space, start: &[u8], end: &[u8]) -> Result<()>;

    /// Returns the dropped ranges whose space is not yet reclaimed. A read may still show their
    /// keys.
    fn dropped_ranges(&self) -> Vec<DropRange>;

    /// Returns the ids that still occur in the engine's records.
    fn traces(&self) -> Traces;

    /// Returns an upper bound of the keys in `space`, or `None` if the space is empty. Succeeds
    /// even if the last keys are damaged.
    fn upper_bound(&self, space: Space) -> Result<Option<Bytes>>;

    /// Returns an estimate of the content of a range.
    fn approximate_size(&self, space: Space, start: &[u8], end: &[u8]) -> Result<Size>;

    /// Returns an estimate of the bytes of deleted and overwritten keys in a range, which
    /// [`Maintenance::Compact`] would reclaim. `live` is the number of keys in the range, if the
    /// caller knows it. Unflushed writes do not count.
    fn reclaimable_bytes(
        &self,
        space: Space,
        start: &[u8],
        end: &[u8],
        live: Option<u64>,
    ) -> Result<u64>;

    /// Returns the counters of a collection as of the last commit. They are exact, also after a
    /// crash.
    fn counts(&self, collection: u32) -> Counts;

    /// Writes a consistent copy, which the same engine can open, into a new or empty directory.
    /// Returns the last commit in the copy. Commits continue meanwhile. Leaves no files behind if
    /// it fails or is interrupted.
    fn backup(&self, directory: &Path, interrupt: &Interrupt) -> Result<Committed>;

    /// Does one maintenance task now.
    fn maintenance(&self, task: Maintenance) -> Result<()>;

    /// Returns the version of the latest commit.
    fn version(&self) -> Version;

    /// Returns the cluster time of the latest commit.
    fn cluster_time(&self) -> ClusterTime;

    /// Makes every later commit get a cluster time after `to`. Not kept across restarts.
    fn advance_clock(&self, to: ClusterTime);

    /// Returns the counters of the engine.
    fn stats(&self) -> EngineStats;

    /// Fails if the engine is poisoned. Then it accepts no more writes and should be closed.
    fn health(&self) -> Result<()>;

    /// Makes everything durable, stops the engine's threads and releases its files. Later calls
    /// return `Closed`.
    fn close(&self) -> Result<()>;
}
