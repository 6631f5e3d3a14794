//! The store as raw ordered bytes: batches that are always written to the operating system at once,
//! and backpressure that applies before a commit is queued.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use lsm_tree::Table;
use parking_lot::RwLock;
use quire_storage::backend::{Backend, Reclaimed, Room, last_key};
use quire_storage::{
    Caps, Direction, DropRange, EngineStats, Interrupt, Maintenance, Op, Result, Size, Space,
    StorageError,
};

use crate::LsmOptions;
use crate::creation::Creation;
use crate::directory::Directory;
use crate::directory::disk_space::SpaceGauge;
use crate::directory::durable_mark::DurableMark;
use crate::log::journal;
use crate::memory::memtable::{Memtable, MemtableRows};
use crate::read::held::HeldViews;
use crate::read::snapshot::LsmSnapshot;
use crate::recovery::log_guard;
use crate::space::dead::dead_bytes;
use crate::space::heads::Heads;
use crate::space::reclaim::Reclaim;
use crate::space::sizes::estimate;
use crate::store::view::View;
use crate::store::{Running, Store};
use crate::table::dropped::DroppedRanges;
use crate::table::tuning::CUT_DUE_BYTES;

const CAPS: Caps = Caps {
    key_bytes_max: 8 << 10,
    value_bytes_max: 64 << 20,
    txn_bytes_max: 256 << 20,
    snapshot_age_max: Some(Duration::from_secs(90)),
    persistent: true,
    backup: true,
};

/// The free space is measured each time this many bytes were written.
const LOOK_EVERY_BYTES: u64 = 256 << 10;
/// The time for which a close waits for readers.
const CLOSE_WAIT: Duration = Duration::from_secs(10);

/// The backend that keeps its data in a log, memtables and the trees of lsm-tree.
pub struct LsmBackend {
    creation: Creation,
    durable: DurableMark,
    space: Arc<SpaceGauge>,
    running: RwLock<Option<Running>>,
    directory: RwLock<Option<Directory>>,
    dropped: Arc<DroppedRanges>,
    heads: Arc<Heads>,
    /// The number of batches that are applied; `heads` counts those that have begun.
    applied: AtomicU64,
    written: AtomicU64,
    held: Arc<HeldViews>,
}

impl LsmBackend {
    /// Returns the backend of an open directory.
    pub(crate) fn new(
        running: Running,
        directory: Directory,
        creation: Creation,
        dropped: Arc<DroppedRanges>,
        options: &LsmOptions,
    ) -> Result<Self> {
        running.store().look_for_room();
        Ok(Self {
            creation,
            durable: directory.durable_mark()?,
            space: Arc::clone(&running.store().space),
            running: RwLock::new(Some(running)),
            directory: RwLock::new(Some(directory)),
            dropped,
            heads: Arc::new(Heads::new(options.slow_head)),
            applied: AtomicU64::new(0),
            written: AtomicU64::new(0),
            held: Arc::default(),
        })
    }

    fn store(&self) -> Result<Arc<Store>> {
        self.running.read().as_ref().map(|it| Arc::clone(it.store())).ok_or(StorageError::Closed)
    }

    /// Returns the directory of the log and the trees.
    fn data(&self) -> Result<PathBuf> {
        self.directory.read().as_ref().map(Directory::data).ok_or(StorageError::Closed)
    }
}

/// Returns true if the memtable of documents is nearly full. A merge of two tables whose keys
/// overlap writes both again, and moves a table that begins after the last key of the one before.
/// So the documents of unfinished writers, whose record ids are smaller than those of others, still
/// belong to this memtable when the next one begins.
fn is_cut_due(view: &View) -> bool {
    view.of(Space::Doc).active().bytes() >= CUT_DUE_BYTES
}

impl Backend for LsmBackend {
    type Snap = LsmSnapshot;

    fn caps(&self) -> &Caps {
        &CAPS
    }

    fn snapshot(&self) -> Result<LsmSnapshot> {
        // Estimates of sizes read while a batch is applied. Their snapshot may have rows of it, but
        // must not count as one that has them all: what it finds empty may not be empty afterwards.
        let epoch = self.applied.load(Ordering::Acquire);
        let snapshot = self.store()?.snapshot();
        Ok(LsmSnapshot::new(snapshot, Arc::clone(&self.heads), epoch))
    }

    fn hold(&self, snap: &LsmSnapshot) -> Result<Option<LsmSnapshot>> {
        Ok(Some(snap.hold(&self.held)))
    }

    fn held_bytes(&self) -> u64 {
        self.held.bytes()
    }

    fn apply(&self, ops: Vec<Op>, sync: bool) -> Result<()> {
        // Not a full disk that a later call can find emptier.
        let never_again = |error: StorageError| StorageError::Io(error.to_string());
        self.creation.wait().map_err(never_again)?;
        let running = self.running.read();
        let store = running.as_ref().ok_or(StorageError::Closed)?.store();
        let (mut bytes, mut deletes) = (0, [0; 4]);
        for op in &ops {
            bytes += (op.key.len() + op.value.as_ref().map_or(0, Bytes::len)) as u64;
            deletes[op.space.index()] += u64::from(op.value.is_none());
        }
        for (space, deletes) in Space::ALL.into_iter().zip(deletes) {
            let puts = ops.iter().filter(|op| op.space == space && op.value.is_some());
            self.heads.gaps(space).write(puts.map(|op| &op.key));
            if deletes > 0 {
                self.heads.tombstones.deleted(space, deletes);
            }
        }
        store.write(ops, sync).inspect_err(|_| self.space.close())?;
        // All spaces have the same epoch between two batches.
        self.applied.store(self.heads.gaps(Space::Idx).epoch(), Ordering::Release);
        let written = self.written.fetch_add(bytes, Ordering::Relaxed);
        if written / LOOK_EVERY_BYTES != (written + bytes) / LOOK_EVERY_BYTES {
            store.look_for_room();
        }
        Ok(())
    }

    /// A background thread reports its failure here.
    fn look(&self) -> Result<()> {
        let Ok(store) = self.store() else { return Ok(()) };
        store.look_for_room();
        if self.space.room() == Room::Reserve {
            store.free_log_soon()?;
        }
        let filled = store.log.file_bytes() + store.view().memtable_bytes();
        if store.log.wants_filled() && self.space.has_room_for(filled) {
            store.fill_log();
        }
        store.free_retired();
        store.check()
    }

    fn room(&self) -> Room {
        self.space.room()
    }

    fn sync(&self) -> Result<()> {
        let store = self.store()?;
        store.check()?;
        store.log.sync()
    }

    fn note_awaited_sync(&self) {
        if let Ok(store) = self.store() {
            store.log.count_sync();
        }
    }

    fn note_durable(&self, version: u64) {
        self.durable.note(version);
    }

    fn under_pressure(&self) -> bool {
        self.store().is_ok_and(|store| store.view().is_behind())
    }

    fn pause(&self) -> Option<Duration> {
        self.running.read().as_ref()?.store().pause()
    }

    fn is_stuck(&self) -> bool {
        self.store().is_ok_and(|store| store.is_stuck())
    }

    fn wants_cut(&self) -> bool {
        self.store().is_ok_and(|store| is_cut_due(&store.view()))
    }

    fn cut(&self, late: &mut dyn FnMut() -> Vec<Range<Bytes>>) -> Result<()> {
        let is_due = |active: &Arc<Memtable>| active.bytes() >= CUT_DUE_BYTES;
        self.store()?.cut(Space::Doc, is_due, late);
        Ok(())
    }

    fn end_late(&self) {
        if let Ok(store) = self.store() {
            store.end_late(Space::Doc, |_| true);
        }
    }

    fn reclaim(
        &self,
        ranges: &[DropRange],
        apply: &dyn Fn(Vec<Op>) -> Result<()>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<Reclaimed>> {
        let (store, logs) = (self.store()?, journal::numbers(&self.data()?)?);
        let reclaim = Reclaim { backend: self, store: &store, dropped: &self.dropped, logs };
        reclaim.ranges(ranges, apply, stop)
    }

    fn wants_work(&self) -> bool {
        self.store().is_ok_and(|store| {
            self.heads.settling.any_due(&store)
                || self.heads.tombstones.any_due(&store, self.written.load(Ordering::Relaxed))
        })
    }

    fn work(&self, stop: &dyn Fn() -> bool) -> Result<()> {
        let written = self.written.load(Ordering::Relaxed);
        let store = self.store()?;
        self.heads.tombstones.compact(&store, written, stop)?;
        self.heads.settling.settle(&store, stop)
    }

    /// If the last key cannot be read, the key ranges in the metadata of the tables are used.
    fn upper_bound(&self, space: Space) -> Result<Option<Bytes>> {
        match last_key(self, space) {
            Err(StorageError::Corruption { .. }) => {}
            read => return read,
        }
        let (view, seqno) = self.store()?.snapshot();
        let of_space = view.of(space);
        let greatest = |table: &Table| Bytes::from(table.metadata.key_range.max().clone());
        let tables = of_space.tables.tables().map(greatest);
        let memtables = of_space.memtables.iter().filter_map(|memtable| {
            MemtableRows::new(memtable, seqno, Direction::Reverse, &[]).next().map(|row| row.key)
        });
        Ok(tables.chain(memtables).max())
    }

    fn approximate_size(&self, space: Space, start: &[u8], end: &[u8]) -> Result<Size> {
        estimate(self, &self.store()?.view().of(space).tables, space, start, end)
    }

    fn reclaimable_bytes(
        &self,
        space: Space,
        start: &[u8],
        end: &[u8],
        live: Option<u64>,
    ) -> Result<u64> {
        dead_bytes(&self.store()?.view().of(space).tables, (start, end), live)
    }

    fn maintenance(&self, task: Maintenance) -> Result<()> {
        let store = self.store()?;
        match task {
            Maintenance::Flush => Space::ALL.into_iter().try_for_each(|space| store.flush(space)),
            Maintenance::Compact => Space::ALL.into_iter().try_for_each(|space| {
                store.flush(space)?;
                let bytes = store.view().of(space).tables.bytes();
                // A disk that is full during a merge would end all writes.
                if bytes > 0 && !store.has_room_for(bytes) {
                    return Err(StorageError::Full);
                }
                store.merge_all(space)
            }),
            Maintenance::Reclaim | Maintenance::Tick => Ok(()),
        }
    }

    fn housekeeping(&self, _: &LsmSnapshot) {
        Space::ALL.into_iter().for_each(|space| self.heads.gaps(space).tick());
    }

    fn backup(&self, snap: &LsmSnapshot, directory: &Path, interrupt: &Interrupt) -> Result<()> {
        crate::backup::write(snap, directory, interrupt)
    }

    fn stats(&self, stats: &mut EngineStats) {
        let Ok(store) = self.store() else { return };
        stats.memtable_bytes = store.memtable_bytes();
        stats.snapshots_held_bytes = self.held.bytes();
        stats.cache_bytes = store.trees.cache.size();
        stats.cache_capacity_bytes = store.trees.cache.capacity();
        let journals = self.data().and_then(|data| journal::files(&data)).unwrap_or_default();
        stats.journal_bytes = journals.iter().map(|path| allocated(path)).sum();
        let view = store.view();
        let tables: u64 = view.tables().map(|table| table.metadata.file_size).sum();
        stats.disk_bytes = tables + stats.journal_bytes;
    }

    fn close(&self) -> Result<()> {
        let Some(running) = self.running.write().take() else { return Ok(()) };
        let created = self.creation.wait();
        let mut directory = self.directory.write();
        if directory.as_ref().is_some_and(Directory::is_image) {
            // Nothing reads it afterwards.
            running.stop(CLOSE_WAIT);
            *directory = None;
            return Ok(());
        }
        let store = running.store();
        let flushed = Space::ALL.into_iter().try_for_each(|space| store.flush(space));
        let whole = flushed.is_ok() && store.is_flushed();
        let unused = running.stop(CLOSE_WAIT);
        let Some(directory) = directory.take() else { return created.and(flushed) };
        if !unused {
            // Nobody else may open the directory while this process still changes its files.
            std::mem::forget(directory);
        } else if whole {
            self.durable.note_in_tables();
            log_guard::clear(&directory.data())?;
        }
        created.and(flushed)
    }
}

/// Returns the bytes that a file occupies on disk. The unused part of a log is a hole.
fn allocated(path: &Path) -> u64 {
    let Ok(metadata) = path.metadata() else { return 0 };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        metadata.blocks() * 512
    }
    #[cfg(not(unix))]
    metadata.len()
}
