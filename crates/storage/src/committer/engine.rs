//! The storage contract, implemented by the committer.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;

use crate::backend::{Backend, Room};
use crate::committer::views::Handle;
use crate::committer::{Committer, records};
use crate::contract::{
    Caps, Check, ClusterTime, CommitBatch, Committed, Counts, DropRange, Durability, Engine,
    EngineStats, KeyHash, LinePlace, LockOwner, Maintenance, Size, Snapshot, Space, Traces,
    Version,
};
use crate::error::{Result, StorageError};
use crate::interrupt::Interrupt;
use crate::watch::{Reach, Watch, Watched};

impl<B: Backend> Engine for Committer<B> {
    fn caps(&self) -> &Caps {
        self.inner.backend.caps()
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        self.inner.check_open()?;
        Ok(Box::new(Handle(Arc::clone(&self.inner.current.read()))))
    }

    fn snapshot_at(&self, time: ClusterTime) -> Result<Box<dyn Snapshot>> {
        self.inner.check_open()?;
        Ok(Box::new(Handle(self.inner.view_at(time)?)))
    }

    fn keep_history(&self, window: Duration) {
        self.inner.set_history(window);
    }

    fn commit(&self, batch: CommitBatch) -> Result<Committed> {
        self.inner.commit(batch)
    }

    fn admit(&self, interrupt: Option<&Interrupt>) -> Result<()> {
        self.inner.wait_for_pressure(interrupt)
    }

    fn wants_cut(&self) -> bool {
        self.inner.backend.wants_cut()
    }

    fn cut_table(&self, late: &mut dyn FnMut() -> Vec<Range<Bytes>>) -> Result<()> {
        self.inner.check_writable()?;
        self.inner.backend.cut(late)
    }

    fn end_late(&self) {
        self.inner.backend.end_late();
    }

    fn lock(&self, owner: LockOwner, base: Version, keys: &[Check]) -> Result<()> {
        self.inner.keys.lock().lock(owner, base.as_u64(), keys)
    }

    fn unlock(&self, owner: LockOwner) {
        self.inner.release(Some(owner), None);
    }

    fn join_line(&self, hash: KeyHash, interrupt: &Arc<Interrupt>) -> LinePlace {
        self.inner.keys.lock().lines.join(hash, interrupt)
    }

    fn wait_in_line(&self, place: LinePlace, interrupt: &Arc<Interrupt>) -> Result<()> {
        interrupt.wait(None, || self.inner.keys.lock().is_turn_of(place))?;
        Ok(())
    }

    fn reserve(&self, place: LinePlace) {
        self.inner.keys.lock().lines.reserve(place);
    }

    fn leave_line(&self, place: LinePlace) {
        self.inner.release(None, Some(place));
    }

    fn barrier(&self, version: Version) -> Result<()> {
        self.inner.sync_for_commit(version.as_u64())
    }

    fn barrier_within(&self, version: Version, limit: Duration) -> Result<bool> {
        self.inner.synced_within(version.as_u64(), limit)
    }

    fn durable_version(&self) -> Version {
        Version::from_u64(self.inner.durable.load(Ordering::Acquire))
    }

    fn watch(&self, watched: Watched, reach: Reach, interrupt: &Arc<Interrupt>) -> Watch {
        self.inner.watches.add(watched, reach, interrupt)
    }

    fn wake(&self, collection: u32) {
        self.inner.watches.wake(collection);
    }

    fn truncate_log(&self, before: Version) -> Result<()> {
        let mut begin = self.inner.log_begin.lock();
        let base = self.version();
        let before = before.as_u64().min(base.as_u64() + 1);
        if before <= *begin {
            return Ok(());
        }
        let (start, end) = (records::log_key(*begin, 0), records::log_key(before, 0));
        self.commit(CommitBatch {
            base,
            ops: vec![records::log_begin(before)],
            drops: vec![DropRange { space: Space::Log, start, end }],
            ..CommitBatch::default()
        })?;
        *begin = before;
        Ok(())
    }

    fn log_begins_at(&self) -> Version {
        Version::from_u64(*self.inner.log_begin.lock())
    }

    fn drop_range(&self, space: Space, start: &[u8], end: &[u8]) -> Result<()> {
        let start = Bytes::copy_from_slice(start);
        let end = Bytes::copy_from_slice(end);
        let snapshot = self.snapshot()?;
        let batch = CommitBatch {
            base: snapshot.version(),
            drops: vec![DropRange { space, start, end }],
            durability: Durability::Synced,
            ..CommitBatch::default()
        };
        self.commit(batch).map(|_| ())
    }

    fn dropped_ranges(&self) -> Vec<DropRange> {
        self.inner.unfreed()
    }

    fn traces(&self) -> Traces {
        let mut counted: Vec<u32> = self.inner.counts.lock().keys().copied().collect();
        counted.sort_unstable();
        let drops = self.inner.drops.lock();
        Traces { counted, dropped: drops.iter().map(|drop| drop.range.clone()).collect() }
    }

    fn upper_bound(&self, space: Space) -> Result<Option<Bytes>> {
        self.inner.check_open()?;
        self.inner.backend.upper_bound(space)
    }

    fn approximate_size(&self, space: Space, start: &[u8], end: &[u8]) -> Result<Size> {
        self.inner.check_open()?;
        self.inner.backend.approximate_size(space, start, end)
    }

    fn reclaimable_bytes(
        &self,
        space: Space,
        start: &[u8],
        end: &[u8],
        live: Option<u64>,
    ) -> Result<u64> {
        self.inner.check_open()?;
        self.inner.backend.reclaimable_bytes(space, start, end, live)
    }

    fn counts(&self, collection: u32) -> Counts {
        self.inner.counts.lock().get(&collection).copied().unwrap_or_default()
    }

    fn backup(&self, directory: &Path, interrupt: &Interrupt) -> Result<Committed> {
        self.inner.check_open()?;
        let view = Arc::clone(&self.inner.current.read());
        // The view stays in use until the backend has begun to read, because otherwise housekeeping
        // discards the versions that the snapshot needs. A long copy may outlive the view: the caps
        // on snapshots then revoke it and free its memory.
        self.inner.backend.backup(&*view.raw()?, directory, interrupt)?;
        Ok(Committed { version: view.version, cluster_time: view.cluster_time })
    }

    fn maintenance(&self, task: Maintenance) -> Result<()> {
        self.inner.check_open()?;
        match task {
            Maintenance::Tick => self.inner.tick(true),
            Maintenance::Reclaim => {
                self.inner.history.lock().clear();
                self.inner.reclaim()
            }
            Maintenance::Flush => self.inner.backend.maintenance(task),
            Maintenance::Compact => {
                self.inner.history.lock().clear();
                self.inner.reclaim()?;
                self.inner.tick(true)?;
                self.inner.backend.maintenance(task)?;
                self.inner.reclaim()
            }
        }
    }

    fn version(&self) -> Version {
        self.inner.latest().0
    }

    fn cluster_time(&self) -> ClusterTime {
        self.inner.latest().1
    }

    fn advance_clock(&self, to: ClusterTime) {
        self.inner.clock_floor.fetch_max(to.0, Ordering::AcqRel);
    }

    fn stats(&self) -> EngineStats {
        let inner = &self.inner;
        let meters = &inner.meters;
        let (conflict_keys, locks) = inner.keys.lock().sizes();
        let drops = inner.drops.lock();
        let freed = drops.iter().filter(|drop| drop.freed).count() as u64;
        let ranges_dropped = drops.len() as u64 - freed;
        drop(drops);
        let (in_use, held) = inner.active.sizes();
        let (watches, wakes) = inner.watches.counts();
        let mut stats = EngineStats {
            commits: meters.commits.load(Ordering::Relaxed),
            conflicts: meters.conflicts.load(Ordering::Relaxed),
            groups: meters.groups.load(Ordering::Relaxed),
            fsyncs: meters.fsyncs.load(Ordering::Relaxed),
            written_bytes: meters.written_bytes.load(Ordering::Relaxed),
            pressure_us: meters.pressure_us.load(Ordering::Relaxed),
            snapshots: in_use as u64,
            snapshots_held: held as u64,
            snapshots_revoked: meters.revoked.load(Ordering::Relaxed),
            conflict_keys,
            locks,
            ranges_dropped,
            ranges_freed: freed,
            is_short_of_space: inner.backend.room() != Room::Enough,
            watches,
            wakes,
            ..EngineStats::default()
        };
        inner.backend.stats(&mut stats);
        stats
    }

    fn health(&self) -> Result<()> {
        self.inner.check_writable()
    }

    fn close(&self) -> Result<()> {
        let inner = &self.inner;
        if inner.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        inner.stop.stop();
        inner.watches.end(StorageError::Closed);
        let threads = [self.ticker.lock().take(), inner.reclaimer.lock().take()];
        for thread in threads.into_iter().flatten() {
            let _ = thread.join();
        }
        // Waits for the last group, if one is being written, before it closes the files.
        let _numbers = inner.applying.lock();
        let latest = inner.latest().0.as_u64();
        let synced =
            if inner.broken.load(Ordering::Acquire) { Ok(()) } else { inner.sync_up_to(latest) };
        inner.history.lock().clear();
        inner.active.revoke_all();
        inner.backend.close()?;
        synced
    }
}
