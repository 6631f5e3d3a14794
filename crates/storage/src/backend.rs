//! What lies below the committer: raw ordered bytes. A backend knows nothing of conflicts,
//! versions, counters or groups; it applies batches that never overlap in time.

use std::path::Path;

use bytes::Bytes;

use crate::contract::{
    Caps, CommitBatch, DropRange, EngineStats, Maintenance, Op, Page, ScanRequest, Size, Space,
};
use crate::error::{Result, StorageError};
use crate::interrupt::Interrupt;

/// A consistent view of a backend's bytes.
pub trait RawSnapshot: Send + Sync + 'static {
    /// The value of a key.
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>>;

    /// The values of many keys, appended in their order.
    fn get_many(&self, space: Space, keys: &[&[u8]], out: &mut Vec<Option<Bytes>>) -> Result<()> {
        for key in keys {
            out.push(self.get(space, key)?);
        }
        Ok(())
    }

    /// Fills an empty page; see [`Snapshot::scan`](crate::Snapshot::scan).
    fn scan(&self, request: &ScanRequest<'_>, page: &mut Page) -> Result<()>;
}

/// What has become of a dropped range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reclaimed {
    /// Some of it is left.
    Left,
    /// Its space has come back, but a crash could still bring some of it back.
    Freed,
    /// Nothing is left of it for good.
    Gone,
}

/// Which commits the disk has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Room {
    /// None: nearly nothing is left, so that a write of any kind could fail and poison the engine.
    None,
    /// Commits that add no data. Less than the reserve is left, which is for compactions and for
    /// deletes.
    Reserve,
    /// There is room for every write.
    Enough,
}

/// Ordered bytes that a [`Committer`](crate::Committer) turns into an engine.
pub trait Backend: Send + Sync + 'static {
    /// A view of everything applied.
    type Snap: RawSnapshot;

    /// The limits of the backend.
    fn caps(&self) -> &Caps;

    /// A view of everything applied so far. Never called while `apply` runs.
    fn snapshot(&self) -> Result<Self::Snap>;

    /// Returns a snapshot with the content of `snap`, which is open, for which the backend need
    /// not keep what is written after it, so that it can live long under load. `None` if the
    /// backend has no such thing.
    fn hold(&self, _snap: &Self::Snap) -> Result<Option<Self::Snap>> {
        Ok(None)
    }

    /// Estimates the memory that only held snapshots keep.
    fn held_bytes(&self) -> u64 {
        0
    }

    /// Applies a batch as a whole and, if `sync`, forces it and everything before it to stable
    /// storage. Never called twice at once. An error poisons the engine.
    fn apply(&self, ops: Vec<Op>, sync: bool) -> Result<()>;

    /// Forces everything applied to stable storage. An error poisons the engine.
    fn sync(&self) -> Result<()>;

    /// Called about every 100 ms: measures what [`room`](Self::room) returns. An error says that
    /// background work has failed for good, and poisons the engine.
    fn look(&self) -> Result<()> {
        Ok(())
    }

    /// Returns which commits the disk has room for, as of the last look.
    fn room(&self) -> Room {
        Room::Enough
    }

    /// Everything up to this version is on stable storage now: what a log must not be short of.
    fn note_durable(&self, _version: u64) {}

    /// Whether a new commit should wait because flushing or compaction is behind.
    fn under_pressure(&self) -> bool {
        false
    }

    /// Whether the documents in memory are about to become a table, so that
    /// [`cut`](Self::cut) should be called at the next moment that suits it.
    fn wants_cut(&self) -> bool {
        false
    }

    /// Makes a table of the documents that are in memory now. Called at a moment when every document
    /// that follows will have a greater record id, tables do not overlap, and need no merge.
    fn cut(&self) -> Result<()> {
        Ok(())
    }

    /// Gives back the space of ranges that no snapshot reads any more. `apply` commits deletes;
    /// `stop` says that the engine is closing. For each range, what has become of it; all that
    /// are not gone are asked for again later, also after a restart.
    fn reclaim(
        &self,
        ranges: &[DropRange],
        apply: &dyn Fn(Vec<Op>) -> Result<()>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<Reclaimed>> {
        ranges.iter().map(|range| delete_range(self, range, apply, stop)).collect()
    }

    /// Whether there is background work besides reclaiming. Asked at every tick.
    fn wants_work(&self) -> bool {
        false
    }

    /// Does that work, on a thread of its own.
    fn work(&self, _stop: &dyn Fn() -> bool) -> Result<()> {
        Ok(())
    }

    /// Returns a key that no key of `space` exceeds, or `None` if the space is empty.
    fn upper_bound(&self, space: Space) -> Result<Option<Bytes>> {
        last_key(self, space)
    }

    /// Estimates what a range holds.
    fn approximate_size(&self, space: Space, start: &[u8], end: &[u8]) -> Result<Size>;

    /// Estimates the bytes of a range that are dead, as
    /// [`Engine::reclaimable_bytes`](crate::Engine::reclaimable_bytes) says; 0 in memory.
    fn reclaimable_bytes(
        &self,
        _space: Space,
        _start: &[u8],
        _end: &[u8],
        _live: Option<u64>,
    ) -> Result<u64> {
        Ok(0)
    }

    /// Flushes or compacts; `Reclaim` and `Tick` are the committer's.
    fn maintenance(&self, _task: Maintenance) -> Result<()> {
        Ok(())
    }

    /// Called about every 100 ms, never while `apply` runs: forget what only snapshots older
    /// than `oldest` needed.
    fn housekeeping(&self, _oldest: &Self::Snap) {}

    /// Copies a view into a new directory; leaves nothing behind if it fails or is interrupted.
    fn backup(&self, _snap: &Self::Snap, _directory: &Path, _interrupt: &Interrupt) -> Result<()> {
        Err(StorageError::Unsupported("backup"))
    }

    /// Adds what only the backend knows.
    fn stats(&self, _stats: &mut EngineStats) {}

    /// A fault that a simulation injects: this commit is to fail with a conflict.
    fn inject_conflict(&self, _batch: &CommitBatch) -> bool {
        false
    }

    /// Releases files and threads. All snapshots are gone by then.
    fn close(&self) -> Result<()> {
        Ok(())
    }
}

/// Returns the last key of a space.
pub fn last_key<B: Backend + ?Sized>(backend: &B, space: Space) -> Result<Option<Bytes>> {
    let mut page = Page::default();
    let request = ScanRequest::new(space, &[], &[]).reverse().keys_only().rows_max(1);
    backend.snapshot()?.scan(&request, &mut page)?;
    Ok(page.rows.pop().map(|(key, _)| key))
}

/// Deletes every key of a range in batches of some hundred: right for small ranges and for
/// memory. What a crash brings back, it brings back with its deletes.
pub fn delete_range<B: Backend + ?Sized>(
    backend: &B,
    range: &DropRange,
    apply: &dyn Fn(Vec<Op>) -> Result<()>,
    stop: &dyn Fn() -> bool,
) -> Result<Reclaimed> {
    let mut page = Page::default();
    let mut start = range.start.clone();
    loop {
        if stop() {
            return Ok(Reclaimed::Left);
        }
        let request = ScanRequest::new(range.space, &start, &range.end).keys_only();
        page.clear();
        backend.snapshot()?.scan(&request, &mut page)?;
        if page.rows.is_empty() {
            return Ok(Reclaimed::Gone);
        }
        let keys = page.rows.drain(..).map(|(key, _)| key);
        apply(keys.map(|key| Op { space: range.space, key, value: None }).collect())?;
        match page.resume.take() {
            Some(next) => start = next,
            None => return Ok(Reclaimed::Gone),
        }
    }
}
