//! The layer below the committer: ordered bytes. A backend knows nothing of conflicts, versions,
//! counters or groups. It applies one batch at a time.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;

use crate::contract::{
    Caps, CommitBatch, DropRange, EngineStats, Maintenance, Op, Page, ScanRequest, Size, Space,
    Visitor,
};
use crate::error::{Result, StorageError};
use crate::interrupt::Interrupt;

/// A consistent snapshot of a backend's bytes.
pub trait RawSnapshot: Send + Sync + 'static {
    /// Returns the value of a key.
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>>;

    /// Appends the values of `keys` to `out`, in the same order.
    fn get_many(&self, space: Space, keys: &[&[u8]], out: &mut Vec<Option<Bytes>>) -> Result<()> {
        for key in keys {
            out.push(self.get(space, key)?);
        }
        Ok(())
    }

    /// Fills `page`, which is empty, with the first rows of the range; see
    /// [`Snapshot::scan`](crate::Snapshot::scan).
    fn scan(&self, request: &ScanRequest<'_>, page: &mut Page) -> Result<()>;

    /// Counts the first rows of the range; see [`Snapshot::pass`](crate::Snapshot::pass). `page` is
    /// empty.
    fn pass(&self, request: &ScanRequest<'_>, page: &mut Page) -> Result<usize> {
        self.scan(request, page)?;
        Ok(page.keep_last())
    }

    /// Returns a reader of the same content, which stays open if the engine closes this snapshot
    /// while a visitor takes long. `None` if visitors should get the rows of pages.
    fn reader(&self) -> Option<Box<dyn RangeReader>> {
        None
    }
}

/// Passes rows to visitors; see [`Snapshot::visit`](crate::Snapshot::visit).
pub trait RangeReader {
    /// Calls `visitor` for the first rows of the range. Returns the resume key.
    fn visit(&self, request: &ScanRequest<'_>, visitor: &mut Visitor<'_>) -> Result<Option<Bytes>>;
}

/// The progress of reclaiming a dropped range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reclaimed {
    /// Part of the range still occupies space.
    Left,
    /// The space is reclaimed, but a crash could bring part of the range back.
    Freed,
    /// The range is permanently gone.
    Gone,
}

/// The kinds of commits for which the disk has room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Room {
    /// No commits. The disk is nearly full, so any write could fail and poison the engine.
    None,
    /// Only commits that add no data. The free space is less than the reserve, which is kept for
    /// compactions and deletes.
    Reserve,
    /// All commits are allowed.
    Enough,
}

/// Ordered bytes, from which a [`Committer`](crate::Committer) makes an engine.
pub trait Backend: Send + Sync + 'static {
    /// The type of the backend's snapshots.
    type Snap: RawSnapshot;

    /// Returns the limits of the backend.
    fn caps(&self) -> &Caps;

    /// Returns a snapshot of everything applied so far. While `apply` runs, only estimates and
    /// reclaims call it, which do not need all or nothing of the batch.
    fn snapshot(&self) -> Result<Self::Snap>;

    /// Returns a snapshot with the same content as `snap`, which is open, but one that can live
    /// long under load: for it the backend need not keep later versions. Returns `None` if the
    /// backend does not support this.
    fn hold(&self, _snap: &Self::Snap) -> Result<Option<Self::Snap>> {
        Ok(None)
    }

    /// Returns an estimate of the memory, in bytes, that only held snapshots keep.
    fn held_bytes(&self) -> u64 {
        0
    }

    /// Applies a batch as a whole. If `sync` is true, then also forces it and everything before it
    /// to stable storage. Calls never overlap. After `Full`, nothing of the batch is applied or will
    /// be after a restart; any other error poisons the engine.
    fn apply(&self, ops: Vec<Op>, sync: bool) -> Result<()>;

    /// Forces everything applied to stable storage. An error poisons the engine.
    fn sync(&self) -> Result<()>;

    /// Counts a [`sync`](Self::sync) that a commit waits for.
    fn note_awaited_sync(&self) {}

    /// Measures the free space that [`room`](Self::room) reports. Called about every 100 ms.
    /// Returns an error, which poisons the engine, if background work has failed permanently.
    fn look(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the commits for which the disk has room, as of the last measurement.
    fn room(&self) -> Room {
        Room::Enough
    }

    /// Tells the backend that everything up to this version is on stable storage. After a crash the
    /// log must contain at least that.
    fn note_durable(&self, _version: u64) {}

    /// Returns true if new commits should wait because flushing or compaction is behind.
    fn under_pressure(&self) -> bool {
        false
    }

    /// Returns the time for which the next commit should wait before it is queued, so that commits are
    /// not faster than flushing for long; `None` if it need not wait.
    fn pause(&self) -> Option<Duration> {
        None
    }

    /// Returns true if that pressure ends only when the disk has more room.
    fn is_stuck(&self) -> bool {
        false
    }

    /// Does what [`Engine::wants_cut`](crate::Engine::wants_cut) says.
    fn wants_cut(&self) -> bool {
        false
    }

    /// Does what [`Engine::cut_table`](crate::Engine::cut_table) says.
    fn cut(&self, _late: &mut dyn FnMut() -> Vec<Range<Bytes>>) -> Result<()> {
        Ok(())
    }

    /// Does what [`Engine::end_late`](crate::Engine::end_late) says.
    fn end_late(&self) {}

    /// Reclaims the space of ranges that no snapshot reads any more, and returns the progress for
    /// each range. `apply` commits deletes; `stop` returns true when the engine is closing. The
    /// committer calls it again later, also after a restart, for each range that is not `Gone`.
    fn reclaim(
        &self,
        ranges: &[DropRange],
        apply: &dyn Fn(Vec<Op>) -> Result<()>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<Reclaimed>> {
        ranges.iter().map(|range| delete_range(self, range, apply, stop)).collect()
    }

    /// Returns true if there is background work besides reclaiming. Called at every tick.
    fn wants_work(&self) -> bool {
        false
    }

    /// Does that background work. Called on a separate thread.
    fn work(&self, _stop: &dyn Fn() -> bool) -> Result<()> {
        Ok(())
    }

    /// Returns an upper bound of the keys in `space`, or `None` if the space is empty.
    fn upper_bound(&self, space: Space) -> Result<Option<Bytes>> {
        last_key(self, space)
    }

    /// Returns an estimate of the content of a range.
    fn approximate_size(&self, space: Space, start: &[u8], end: &[u8]) -> Result<Size>;

    /// Returns an estimate of the dead bytes in a range; see
    /// [`Engine::reclaimable_bytes`](crate::Engine::reclaimable_bytes). 0 for a backend in memory.
    fn reclaimable_bytes(
        &self,
        _space: Space,
        _start: &[u8],
        _end: &[u8],
        _live: Option<u64>,
    ) -> Result<u64> {
        Ok(0)
    }

    /// Flushes or compacts. The committer handles `Reclaim` and `Tick` itself.
    fn maintenance(&self, _task: Maintenance) -> Result<()> {
        Ok(())
    }

    /// Discards versions that only snapshots older than `oldest` need. Called about every 100 ms,
    /// never while `apply` runs.
    fn housekeeping(&self, _oldest: &Self::Snap) {}

    /// Copies a snapshot into a new directory. Leaves no files behind if it fails or is
    /// interrupted.
    fn backup(&self, _snap: &Self::Snap, _directory: &Path, _interrupt: &Interrupt) -> Result<()> {
        Err(StorageError::Unsupported("backup"))
    }

    /// Adds the numbers that only the backend knows.
    fn stats(&self, _stats: &mut EngineStats) {}

    /// Returns true if a simulation wants this commit to fail with a conflict.
    fn inject_conflict(&self, _batch: &CommitBatch) -> bool {
        false
    }

    /// Releases files and threads. All snapshots are closed before.
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

/// Deletes every key of a range, in batches of a few hundred. Suitable for small ranges and for
/// memory. If a crash brings the range back, it brings back the deletes too.
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
