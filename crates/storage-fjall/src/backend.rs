//! fjall as raw ordered bytes: four shared keyspaces, batches that always reach at least the
//! operating system, and backpressure that is felt before a commit is queued.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fjall::compaction::Leveled;
use fjall::config::{BlockSizePolicy, CompressionPolicy, RestartIntervalPolicy};
use fjall::{
    AbstractTree, AnyTree, CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode,
};
use lsm_tree::Tree;
use parking_lot::RwLock;
use quire_storage::backend::{Backend, Reclaimed, Room, last_key};
use quire_storage::{
    Caps, DropRange, EngineStats, Interrupt, Maintenance, Op, Result, Size, Space, StorageError,
};
use smallvec::SmallVec;

use crate::FjallOptions;
use crate::damage::Damage;
use crate::dead::dead_bytes;
use crate::directory::Directory;
use crate::disk_space::SpaceGauge;
use crate::durable_mark::DurableMark;
use crate::error::storage;
use crate::gaps::Gaps;
use crate::held::HeldMemtables;
use crate::log_sync::LogSync;
use crate::recent_keys::{KeyHash, RecentKeys};
use crate::reclaim::{DroppedRanges, Factory};
use crate::retired::Retired;
use crate::skeleton::Creation;
use crate::snapshot::FjallSnapshot;
use crate::tombstones::Tombstones;
use crate::{cut, inventory, journal, log_guard, manifest};

const CAPS: Caps = Caps {
    key_bytes_max: 8 << 10,
    value_bytes_max: 64 << 20,
    txn_bytes_max: 256 << 20,
    snapshot_age_max: Some(Duration::from_secs(90)),
    persistent: true,
    backup: true,
};

/// Unflushed bytes of all keyspaces together from which commits wait.
const MEMTABLES_BYTES_MAX: u64 = 160 << 20;
/// Memtables of one keyspace that wait to be flushed; fjall itself sleeps from 4.
const SEALED_MAX: usize = 3;
/// Runs in level 0; fjall itself slows down from 20.
const RUNS_MAX: usize = 16;
/// How often, in bytes written, the pressure is looked at.
const LOOK_EVERY_BYTES: u64 = 256 << 10;
/// The log is given up piece by piece; more than this is never replayed.
const JOURNALS_BYTES_MAX: u64 = 512 << 20;

/// The memtable size of a space: what is written most gets most.
pub(crate) const fn memtable_bytes(space: Space) -> u64 {
    match space {
        Space::Meta => 8 << 20,
        Space::Doc => 32 << 20,
        Space::Idx | Space::Log => 16 << 20,
    }
}

/// The block size of a space. Index entries are small and looked up one by one. Documents are also
/// scanned, and every block that a scan comes to costs it two searches; 32 KiB is what WiredTiger
/// reads at a time, too.
pub(crate) const fn block_bytes(space: Space) -> u32 {
    match space {
        Space::Doc => 32 << 10,
        Space::Meta | Space::Idx | Space::Log => 4 << 10,
    }
}

/// After how many keys of a block one is written in full. A document's key is nothing beside the
/// document: written in full it is read where it stands, a shortened one is put together in memory
/// of its own for each document of a scan.
pub(crate) const fn restart_interval(space: Space) -> u8 {
    match space {
        Space::Doc => 1,
        Space::Meta | Space::Idx | Space::Log => 16,
    }
}

fn keyspace_options(space: Space) -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(memtable_bytes(space))
        // fjall's default leaves the upper levels uncompressed, and rising keys move to the lower
        // ones without being rewritten.
        .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
        .data_block_size_policy(BlockSizePolicy::all(block_bytes(space)))
        .data_block_restart_interval_policy(RestartIntervalPolicy::all(restart_interval(space)))
        .expect_point_read_hits(matches!(space, Space::Doc))
        .compaction_strategy(Arc::new(Leveled::default().with_table_target_size(TABLE_BYTES)))
}

/// Tables are cut at this size: small enough that a dropped collection frees most of its own.
pub(crate) const TABLE_BYTES: u64 = 32 << 20;

/// fjall's handles. Each snapshot and each background task has a reference, and closing waits until
/// the last one is dropped.
pub(crate) struct Parts {
    pub db: Database,
    pub spaces: [Keyspace; 4],
}

impl Parts {
    pub fn space(&self, space: Space) -> &Keyspace {
        let [meta, doc, idx, log] = &self.spaces;
        match space {
            Space::Meta => meta,
            Space::Doc => doc,
            Space::Idx => idx,
            Space::Log => log,
        }
    }

    /// Opens the database in `data`, or makes one where there is none. In one that exists nothing is
    /// made that is missing.
    pub fn open(
        data: &Path,
        cache_bytes: u64,
        workers: usize,
        dropped: &Arc<DroppedRanges>,
    ) -> Result<Self> {
        let exists = data.join("version").try_exists()?;
        let (dropped, place) = (Arc::clone(dropped), data.to_owned());
        let factories = Arc::new(move |name: &str| {
            let space = Space::ALL.into_iter().find(|space| space.name() == name)?;
            let keyspace = inventory::keyspace_path(&place, inventory::number_of(space));
            Some(Factory::shared(space, &dropped, keyspace.join(manifest::TABLES)))
        });
        let db = Database::builder(data)
            .cache_size(cache_bytes)
            .max_journaling_size(JOURNALS_BYTES_MAX)
            .worker_threads(workers)
            .with_compaction_filter_factories(factories)
            .open()
            .map_err(|error| storage(error, "opening"))?;
        let open = |space: Space| {
            if exists && !db.keyspace_exists(space.name()) {
                let path = inventory::keyspace_path(data, inventory::number_of(space));
                return Err(Damage::new(&path, "is not known to the database").into());
            }
            db.keyspace(space.name(), || keyspace_options(space))
                .map_err(|error| storage(error, space.name()))
        };
        let spaces = [open(Space::Meta)?, open(Space::Doc)?, open(Space::Idx)?, open(Space::Log)?];
        let parts = Self { db, spaces };
        parts.leave_zero()?;
        Ok(parts)
    }

    /// Sees to it that no snapshot has the sequence number 0, which that of an empty database gets.
    /// fjall takes it for none when it looks for the oldest open snapshot, and then forgets the lists
    /// of tables that the others read: they would panic.
    fn leave_zero(&self) -> Result<()> {
        let is_empty = |space: &Keyspace| space.tree.get_highest_seqno().is_none();
        if self.db.visible_seqno() > 0 || !self.spaces.iter().all(is_empty) {
            return Ok(());
        }
        let cleared = self.space(Space::Meta).tree.clear();
        cleared.map_err(|error| storage(error.into(), "making the database"))
    }

    /// Moves everything in memory to tables.
    pub fn flush(&self) -> Result<()> {
        Space::ALL.into_iter().try_for_each(|space| self.flush_space(space))
    }

    /// Moves what a keyspace has in memory to tables.
    pub fn flush_space(&self, space: Space) -> Result<()> {
        let keyspace = self.space(space);
        keyspace.rotate_memtable().map_err(|error| storage(error, "flushing"))?;
        while keyspace.tree.sealed_memtable_count() > 0 {
            // Fails once a background thread of fjall has died: nothing would end this loop.
            self.db.persist(PersistMode::Buffer).map_err(|error| storage(error, "flushing"))?;
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn all_flushed(&self) -> bool {
        self.spaces.iter().all(|space| {
            space.tree.sealed_memtable_count() == 0 && space.tree.active_memtable().is_empty()
        })
    }

    /// The tree of a space; `None` if it keeps values apart from keys, which none of ours does.
    pub fn tree(&self, space: Space) -> Option<&Tree> {
        match &self.space(space).tree {
            AnyTree::Standard(tree) => Some(tree),
            AnyTree::Blob(_) => None,
        }
    }

    fn is_behind(&self) -> bool {
        let sealed = |space: &Keyspace| space.tree.sealed_memtable_count();
        let most = self.spaces.iter().map(sealed).max().unwrap_or(0);
        most >= SEALED_MAX
            || (most > 0 && self.db.write_buffer_size() > MEMTABLES_BYTES_MAX)
            || self.spaces.iter().any(|space| space.tree.l0_run_count() >= RUNS_MAX)
    }
}

/// What is known about keys: gaps to skip, tombstones to compact away, entries that are in no memtable.
pub(crate) struct Heads {
    gaps: [Gaps; 4],
    pub tombstones: Tombstones,
    /// The index entries in memtables.
    pub entries: RecentKeys,
}

impl Heads {
    fn new(slow: Duration) -> Self {
        Self {
            gaps: Space::ALL.map(|_| Gaps::new(slow)),
            tombstones: Tombstones::default(),
            entries: RecentKeys::default(),
        }
    }

    pub fn gaps(&self, space: Space) -> &Gaps {
        let [meta, doc, idx, log] = &self.gaps;
        match space {
            Space::Meta => meta,
            Space::Doc => doc,
            Space::Idx => idx,
            Space::Log => log,
        }
    }
}

/// The backend that keeps its data in fjall's keyspaces.
pub struct FjallBackend {
    creation: Creation,
    log_sync: LogSync,
    durable: DurableMark,
    space: SpaceGauge,
    parts: RwLock<Option<Arc<Parts>>>,
    directory: RwLock<Option<Directory>>,
    pub(crate) dropped: Arc<DroppedRanges>,
    heads: Arc<Heads>,
    behind: AtomicBool,
    wants_cut: AtomicBool,
    written: AtomicU64,
    /// The sequence number of the oldest snapshot in use that fjall knows.
    pub(crate) oldest: AtomicU64,
    held: Arc<HeldMemtables>,
    retired: Retired,
}

impl FjallBackend {
    /// An open directory. `data` is where its log lies.
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

    pub(crate) fn parts(&self) -> Result<Arc<Parts>> {
        self.parts.read().clone().ok_or(StorageError::Closed)
    }

    /// Where fjall lives.
    pub(crate) fn data(&self) -> Result<PathBuf> {
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
        // No batch is being written now, so the epoch of one space is that of all.
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

    /// fjall does not tell that a background thread of its own has failed until something is
    /// written.
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
        // Fails if fjall has failed before, and leaves nothing in its own buffer.
        let persist = |mode| parts.db.persist(mode).map_err(|error| storage(error, "fsync"));
        persist(PersistMode::Buffer)?;
        // A file that fjall itself failed to force out meanwhile is told by the last look.
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
        self.reclaim_ranges(ranges, apply, stop)
    }

    fn wants_work(&self) -> bool {
        self.parts().is_ok_and(|parts| self.heads.tombstones.any_due(&parts))
    }

    fn work(&self, stop: &dyn Fn() -> bool) -> Result<()> {
        let watermark = self.oldest.load(Ordering::Relaxed).saturating_sub(1);
        self.heads.tombstones.compact(&*self.parts()?, watermark, stop)
    }

    /// Where the last key cannot be read, the key ranges count that tables keep with their metadata.
    fn upper_bound(&self, space: Space) -> Result<Option<Bytes>> {
        match last_key(self, space) {
            Err(StorageError::Corruption { .. }) => {}
            read => return read,
        }
        let parts = self.parts()?;
        let tree = &parts.space(space).tree;
        // What waits for its flush is no table yet.
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
        self.estimate(space, start, end)
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

    /// fjall forgets old table lists, and the memtables that they keep alive, only when something
    /// else happens in a keyspace; an idle server would keep its last ones for ever.
    fn housekeeping(&self, oldest: &FjallSnapshot) {
        let Some(seqno) = oldest.seqno() else { return };
        self.oldest.store(seqno, Ordering::Relaxed);
        Space::ALL.into_iter().for_each(|space| self.heads.gaps(space).tick());
        for space in &oldest.parts.spaces {
            if space.tree.version_free_list_len() > 0 {
                // What cannot be removed now is tried again with the next.
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
            // It is not read again.
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

/// Drops the last handle on fjall, which stops its threads and releases its files; waits some
/// seconds for readers that are still at work. False if they were not done by then.
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

/// Bytes that a file really occupies: logs are allocated ahead as holes.
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
