//! fjall as raw ordered bytes: four keyspaces, batches that are always written to the operating
//! system at once, and backpressure that applies before a commit is queued.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fjall::{AbstractTree, Keyspace, PersistMode};
use parking_lot::RwLock;
use quire_storage::backend::{Backend, Reclaimed, Room, last_key};
use quire_storage::{
    Caps, DropRange, EngineStats, Interrupt, Maintenance, Op, Result, Size, Space, StorageError,
};
use smallvec::SmallVec;

use crate::FjallOptions;
use crate::dead::dead_bytes;
use crate::directory::Directory;
use crate::disk_space::SpaceGauge;
use crate::dropped::DroppedRanges;
use crate::durable_mark::DurableMark;
use crate::error::storage;
use crate::heads::Heads;
use crate::held::HeldMemtables;
use crate::keyspaces::Parts;
use crate::log_sync::LogSync;
use crate::recent_keys::KeyHash;
use crate::reclaim::Reclaim;
use crate::retired::Retired;
use crate::sizes::estimate;
use crate::skeleton::Creation;
use crate::snapshot::FjallSnapshot;
use crate::tombstones::Around;
use crate::tuning::TABLE_BYTES;
use crate::{cut, journal, log_guard};

const CAPS: Caps = Caps {
    key_bytes_max: 8 << 10,
    value_bytes_max: 64 << 20,
    txn_bytes_max: 256 << 20,
    snapshot_age_max: Some(Duration::from_secs(90)),
    persistent: true,
    backup: true,
};

/// The pressure is checked each time this many bytes were written.
const LOOK_EVERY_BYTES: u64 = 256 << 10;
/// The backend that keeps its data in fjall's keyspaces.
pub struct FjallBackend {
    creation: Creation,
    log_sync: LogSync,
    durable: DurableMark,
    space: SpaceGauge,
    parts: RwLock<Option<Arc<Parts>>>,
    directory: RwLock<Option<Directory>>,
    dropped: Arc<DroppedRanges>,
    heads: Arc<Heads>,
    behind: AtomicBool,
    wants_cut: AtomicBool,
    written: AtomicU64,
    /// The sequence number of fjall's oldest open snapshot.
    oldest: AtomicU64,
    held: Arc<HeldMemtables>,
    retired: Retired,
}

impl FjallBackend {
    /// Returns the backend of an open directory. `data` holds its log.
    pub(crate) fn new(
        parts: Parts,
        directory: Directory,
        creation: Creation,
        dropped: Arc<DroppedRanges>,
        options: &FjallOptions,
    ) -> Result<Self> {
        Ok(Self {
            creation,
            durable: directory.durable_mark()?,
            space: SpaceGauge::new(
                directory.data(),
                options.space_probe.clone(),
                options.reserve_bytes,
            ),
            log_sync: LogSync::new(directory.data()),
            parts: RwLock::new(Some(Arc::new(parts))),
            directory: RwLock::new(Some(directory)),
            dropped,
            heads: Arc::new(Heads::new(options.slow_head)),
            behind: AtomicBool::new(false),
            wants_cut: AtomicBool::new(false),
            written: AtomicU64::new(0),
            oldest: AtomicU64::new(0),
            held: Arc::default(),
            retired: Retired::default(),
        })
    }

    fn parts(&self) -> Result<Arc<Parts>> {
        self.parts.read().clone().ok_or(StorageError::Closed)
    }

    /// Returns the other conditions of a compaction.
    fn around(&self) -> Around<'_> {
        Around { written: self.written.load(Ordering::Relaxed), space: &self.space }
    }

    /// Returns the directory of fjall's files.
    fn data(&self) -> Result<PathBuf> {
        self.directory.read().as_ref().map(Directory::data).ok_or(StorageError::Closed)
    }
}

impl Backend for FjallBackend {
    type Snap = FjallSnapshot;

    fn caps(&self) -> &Caps {
        &CAPS
    }

    fn snapshot(&self) -> Result<FjallSnapshot> {
        let parts = self.parts()?;
        let heads = Arc::clone(&self.heads);
        // No batch is under way, so all spaces have the same epoch.
        let epoch = heads.gaps(Space::Idx).epoch();
        Ok(FjallSnapshot::new(parts, heads, epoch))
    }

    fn hold(&self, snap: &FjallSnapshot) -> Result<Option<FjallSnapshot>> {
        snap.hold(&self.held)
    }

    fn held_bytes(&self) -> u64 {
        self.held.bytes()
    }

    fn apply(&self, ops: Vec<Op>, sync: bool) -> Result<()> {
        self.creation.wait()?;
        let parts = self.parts.read();
        let parts = parts.as_deref().ok_or(StorageError::Closed)?;
        let mode = if sync { PersistMode::SyncData } else { PersistMode::Buffer };
        let mut batch = fjall::OwnedWriteBatch::with_capacity(parts.db.clone(), ops.len())
            .durability(Some(mode));
        let epoch = self.heads.gaps(Space::Idx).epoch();
        let entries = ops.iter().filter(|op| op.space == Space::Idx);
        let entries: SmallVec<[KeyHash; 4]> = entries.map(|op| KeyHash::of(&op.key)).collect();
        let index = parts.tree(Space::Idx).filter(|_| !entries.is_empty());
        let noted = index.map(|tree| self.heads.entries.note(tree, epoch, &entries));
        for space in Space::ALL {
            let puts = ops.iter().filter(|op| op.space == space && op.value.is_some());
            self.heads.gaps(space).write(puts.map(|op| &op.key));
        }
        let (mut bytes, mut deletes) = (0, [0; 4]);
        for op in ops {
            bytes += (op.key.len() + op.value.as_ref().map_or(0, Bytes::len)) as u64;
            let keyspace = parts.space(op.space);
            match op.value {
                Some(value) => batch.insert(keyspace, op.key, value),
                None => {
                    batch.remove(keyspace, op.key);
                    deletes[op.space.index()] += 1;
                }
            }
        }
        for (space, deletes) in Space::ALL.into_iter().zip(deletes) {
            if deletes > 0 {
                self.heads.tombstones.deleted(space, deletes);
            }
        }
        batch.commit().map_err(|error| storage(error, "writing a batch"))?;
        if let (Some(tree), Some(noted)) = (index, noted) {
            self.heads.entries.note_written(tree, epoch, &entries, noted);
        }
        let written = self.written.fetch_add(bytes, Ordering::Relaxed);
        if written / LOOK_EVERY_BYTES != (written + bytes) / LOOK_EVERY_BYTES {
            self.behind.store(parts.is_behind(), Ordering::Relaxed);
            self.wants_cut.store(cut::is_due(parts.space(Space::Doc)), Ordering::Relaxed);
            self.space.look(parts.db.write_buffer_size());
            self.retired.remember(&parts.spaces);
        }
        Ok(())
    }

    /// fjall reports the failure of one of its background threads only at the next write.
    fn look(&self) -> Result<()> {
        let Ok(parts) = self.parts() else { return Ok(()) };
        self.space.look(parts.db.write_buffer_size());
        if let Ok(logs) = self.data().and_then(|data| journal::files(&data)) {
            self.retired.free(&parts.spaces, logs);
        }
        parts.db.persist(PersistMode::Buffer).map_err(|error| storage(error, "background work"))
    }

    fn room(&self) -> Room {
        self.space.room()
    }

    fn sync(&self) -> Result<()> {
        let parts = self.parts()?;
        // Fails if fjall has failed before, and writes out fjall's own buffer.
        let persist = |mode| parts.db.persist(mode).map_err(|error| storage(error, "fsync"));
        persist(PersistMode::Buffer)?;
        // If fjall itself failed to sync a file meanwhile, the last call reports it.
        let synced = self.log_sync.sync()?;
        persist(if synced { PersistMode::Buffer } else { PersistMode::SyncData })
    }

    fn note_durable(&self, version: u64) {
        self.durable.note(version);
    }

    fn under_pressure(&self) -> bool {
        if !self.behind.load(Ordering::Relaxed) {
            return false;
        }
        let behind = self.parts().is_ok_and(|parts| parts.is_behind());
        self.behind.store(behind, Ordering::Relaxed);
        behind
    }

    fn wants_cut(&self) -> bool {
        self.wants_cut.load(Ordering::Relaxed)
    }

    fn cut(&self) -> Result<()> {
        let parts = self.parts()?;
        let documents = parts.space(Space::Doc);
        let ended = match cut::is_due(documents) {
            true => cut::begin_table(documents, Arc::clone(&parts)),
            false => Ok(()),
        };
        self.wants_cut.store(false, Ordering::Relaxed);
        ended
    }

    fn reclaim(
        &self,
        ranges: &[DropRange],
        apply: &dyn Fn(Vec<Op>) -> Result<()>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<Reclaimed>> {
        let (parts, logs) = (self.parts()?, journal::numbers(&self.data()?)?);
        let watermark = self.oldest.load(Ordering::Relaxed).saturating_sub(1);
        let reclaim =
            Reclaim { backend: self, parts: &parts, dropped: &self.dropped, logs, watermark };
        reclaim.ranges(ranges, apply, stop)
    }

    fn wants_work(&self) -> bool {
        self.parts().is_ok_and(|parts| self.heads.tombstones.any_due(&parts, &self.around()))
    }

    fn work(&self, stop: &dyn Fn() -> bool) -> Result<()> {
        let watermark = self.oldest.load(Ordering::Relaxed).saturating_sub(1);
        self.heads.tombstones.compact(&*self.parts()?, &self.around(), watermark, stop)
    }

    /// If the last key cannot be read, the key ranges in the metadata of the tables are used.
    fn upper_bound(&self, space: Space) -> Result<Option<Bytes>> {
        match last_key(self, space) {
            Err(StorageError::Corruption { .. }) => {}
            read => return read,
        }
        let parts = self.parts()?;
        let tree = &parts.space(space).tree;
        // A memtable that waits for its flush is not yet a table.
        while tree.sealed_memtable_count() > 0 {
            parts.flush_space(space)?;
        }
        let version = tree.current_version();
        let tables = version.iter_tables().map(|table| table.metadata.key_range.max().clone());
        let memtable = tree.active_memtable();
        let last = memtable.iter().next_back().map(|item| item.key.user_key);
        Ok(tables.chain(last).max().map(Bytes::from))
    }

    fn approximate_size(&self, space: Space, start: &[u8], end: &[u8]) -> Result<Size> {
        estimate(self, &*self.parts()?, space, start, end)
    }

    fn reclaimable_bytes(
        &self,
        space: Space,
        start: &[u8],
        end: &[u8],
        live: Option<u64>,
    ) -> Result<u64> {
        dead_bytes(self.parts()?.space(space), (start, end), live)
    }

    fn maintenance(&self, task: Maintenance) -> Result<()> {
        let parts = self.parts()?;
        match task {
            Maintenance::Flush => parts.flush(),
            Maintenance::Compact => {
                parts.flush()?;
                let watermark = self.oldest.load(Ordering::Relaxed).saturating_sub(1);
                for space in &parts.spaces {
                    space
                        .tree
                        .major_compact(TABLE_BYTES, watermark)
                        .map_err(|error| storage(error.into(), "compacting"))?;
                }
                Ok(())
            }
            Maintenance::Reclaim | Maintenance::Tick => Ok(()),
        }
    }

    /// fjall frees old lists of tables, and the memtables that they keep alive, only when something
    /// else happens in the keyspace; an idle server would keep its last ones forever.
    fn housekeeping(&self, oldest: &FjallSnapshot) {
        let Some(seqno) = oldest.seqno() else { return };
        self.oldest.store(seqno, Ordering::Relaxed);
        Space::ALL.into_iter().for_each(|space| self.heads.gaps(space).tick());
        for space in &oldest.parts.spaces {
            if space.tree.version_free_list_len() > 0 {
                // What cannot be removed now is tried again with the next snapshot.
                let _ = space.tree.get_version_history_lock().maintenance(space.path(), seqno);
            }
        }
        if self.behind.load(Ordering::Relaxed) {
            self.behind.store(oldest.parts.is_behind(), Ordering::Relaxed);
        }
    }

    fn backup(&self, snap: &FjallSnapshot, directory: &Path, interrupt: &Interrupt) -> Result<()> {
        crate::backup::write(snap, directory, interrupt)
    }

    fn stats(&self, stats: &mut EngineStats) {
        let Ok(parts) = self.parts() else { return };
        let trees = parts.spaces.iter().map(|space| &space.tree);
        stats.memtable_bytes = trees.map(|tree| tree.version_memtable_size_sum()).sum();
        stats.snapshots_held_bytes = self.held.bytes();
        stats.cache_bytes = parts.db.cache_size();
        stats.cache_capacity_bytes = parts.db.cache_capacity();
        let journals = self.data().and_then(|data| journal::files(&data)).unwrap_or_default();
        stats.journal_bytes = journals.iter().map(|path| allocated(path)).sum();
        let tables: u64 = parts.spaces.iter().map(Keyspace::disk_space).sum();
        stats.disk_bytes = tables + stats.journal_bytes;
    }

    fn close(&self) -> Result<()> {
        let Some(parts) = self.parts.write().take() else { return Ok(()) };
        self.retired.clear();
        let created = self.creation.wait();
        let mut directory = self.directory.write();
        if directory.as_ref().is_some_and(Directory::is_image) {
            // Nothing reads it afterwards.
            wait_until_sole(parts);
            *directory = None;
            return Ok(());
        }
        let flushed = parts.flush();
        let whole = flushed.is_ok() && parts.all_flushed();
        let sole = wait_until_sole(parts);
        if let Some(directory) = directory.take()
            && whole
            && sole
        {
            self.durable.note_in_tables();
            log_guard::clear(&directory.data())?;
        }
        created.and(flushed)
    }
}

/// Drops the last handle on fjall, which stops its threads and releases its files. Waits some
/// seconds for running readers. Returns false if they had not ended by then.
fn wait_until_sole(mut parts: Arc<Parts>) -> bool {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        match Arc::try_unwrap(parts) {
            Ok(parts) => {
                drop(parts);
                return true;
            }
            Err(shared) if Instant::now() < until => {
                parts = shared;
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(_) => return false,
        }
    }
}

/// Returns the bytes that a file occupies on disk: logs are allocated ahead, with holes.
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
