//! The store: the engine, the published catalog, and caches for each collection.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use quire_catalog::{Catalog, Collection, CollectionId, IndexId, Uuid, WriteTime, low_water_key};
use quire_document::{ObjectId, Timestamp};
use quire_error::Result;
use quire_storage::rng::Rng;
use quire_storage::{
    Clock, ClusterTime, CommitOptions, Counts, Durability, Engine, Mode, Page, ScanRequest,
    Snapshot, Space, StorageError, SystemClock, Txn, Version, begin,
};

use crate::changes::{CatalogObserver, ChangeListener, Observers, ViolationObserver};
use crate::entry::index_range;
use crate::failure::from_storage;
use crate::id_cache::IdCache;
use crate::index_builds::{IndexBuild, IndexBuildCounts, IndexBuilds};
use crate::job_bell::JobBell;
use crate::late::LateWriters;
use crate::layout::{collection_end, low_water_of, record_id_of};
use crate::lines::Lines;
use crate::log_record::{saved_range, saved_record_id};
use crate::low_water::RecordIds;
use crate::past_catalogs::PastCatalogs;
use crate::series_gate::{SeriesGate, SeriesGates, SeriesReading, SeriesWrites};

/// The external resources of a store.
#[derive(Clone)]
pub struct StoreOptions {
    /// The wall clock, for object ids.
    pub clock: Arc<dyn Clock>,
    /// The seed of object ids and UUIDs: random in a server, fixed in a simulation.
    pub random_seed: u64,
    /// The directory for index builds that exceed their memory.
    pub temporary: Arc<Path>,
    /// Whether changes are logged for change streams.
    pub change_log: ChangeLogMode,
}

/// Whether a store logs changes for change streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChangeLogMode {
    /// Continues the log that the data have, and begins none.
    #[default]
    AsFound,
    /// Continues the log or begins one.
    On,
    /// Removes the log that the data have.
    Off,
}

impl Default for StoreOptions {
    /// Returns the system's clock and directory for temporary files, and a seed from the addresses
    /// and the time of this process.
    fn default() -> Self {
        use std::hash::{BuildHasher, Hasher};
        let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
        hasher.write_u64(SystemClock.now_ms());
        let temporary = std::env::temp_dir().into();
        StoreOptions {
            clock: Arc::new(SystemClock),
            random_seed: hasher.finish(),
            temporary,
            change_log: ChangeLogMode::default(),
        }
    }
}

/// The published catalog and earlier ones.
pub(crate) struct Catalogs {
    /// Replaced at the moment when the commit of the next catalog becomes visible: a snapshot that
    /// is taken under the read lock matches the catalog.
    pub published: RwLock<Arc<Catalog>>,
    /// The earlier catalogs, for views of the past; written under the lock of `published`.
    pub past: Mutex<PastCatalogs>,
}

/// Databases on an engine.
pub struct Store {
    engine: Arc<dyn Engine>,
    pub(crate) catalogs: Arc<Catalogs>,
    /// The listener and the observer of changes.
    pub(crate) observers: Observers,
    /// True while changes are logged.
    logs_changes: AtomicBool,
    /// The measured size of the change log that corresponds to the size after its last trim
    /// (`change_log/trim.rs`); `u64::MAX` before the first.
    pub(crate) log_size_trimmed: AtomicU64,
    /// Held by the running DDL statement; contains the next collection or index number.
    pub(crate) ddl: Mutex<u32>,
    record_ids: RwLock<HashMap<CollectionId, Arc<RecordIds>, foldhash::fast::RandomState>>,
    late: LateWriters,
    /// The statements that commit together (`write/line.rs`).
    pub(crate) lines: Lines,
    id_cache: IdCache,
    pub(crate) builds: IndexBuilds,
    job_bell: JobBell,
    clock: Arc<dyn Clock>,
    process: [u8; 5],
    next_object: AtomicU32,
    /// The last timestamp that was put into a document for an empty one.
    last_stamp: AtomicU64,
    random: Mutex<Rng>,
    /// The documents that rules wrote into each collection since somebody asked.
    pub(crate) derived: Mutex<HashMap<CollectionId, u64>>,
    /// The gates of time-series collections.
    pub(crate) series: SeriesGates,
}

impl Store {
    /// Returns a store of an engine: `catalog` was read from it, `next_id` is the next number to use.
    pub(crate) fn new(
        engine: Arc<dyn Engine>,
        options: StoreOptions,
        catalog: Catalog,
        next_id: u32,
    ) -> Self {
        let mut random = Rng::new(options.random_seed);
        let seed = random.next_u64().to_be_bytes();
        let next_object = random.next_u64() as u32 & 0xff_ffff;
        Store {
            engine,
            catalogs: Arc::new(Catalogs {
                published: RwLock::new(Arc::new(catalog)),
                past: Mutex::default(),
            }),
            observers: Observers::default(),
            logs_changes: AtomicBool::new(false),
            log_size_trimmed: AtomicU64::new(u64::MAX),
            derived: Mutex::default(),
            series: SeriesGates::default(),
            ddl: Mutex::new(next_id),
            record_ids: RwLock::default(),
            late: LateWriters::default(),
            lines: Lines::default(),
            id_cache: IdCache::new(),
            builds: IndexBuilds::new(&options.temporary),
            job_bell: JobBell::default(),
            clock: options.clock,
            process: [seed[0], seed[1], seed[2], seed[3], seed[4]],
            last_stamp: AtomicU64::new(0),
            next_object: AtomicU32::new(next_object),
            random: Mutex::new(random),
        }
    }

    /// Reports every later change of the catalog to `observer`.
    ///
    /// # Errors
    /// 1 InternalError if the store has an observer already.
    pub fn observe_catalog(&self, observer: CatalogObserver) -> Result<()> {
        self.observers.observe_catalog(observer)
    }

    /// Reports every later change of a writer to `listener`.
    ///
    /// # Errors
    /// 1 InternalError if the store has a listener already.
    pub fn listen(&self, listener: Arc<dyn ChangeListener>) -> Result<()> {
        self.observers.listen(listener)
    }

    /// Returns true if changes are logged for change streams.
    pub fn logs_changes(&self) -> bool {
        self.logs_changes.load(Ordering::Relaxed)
    }

    pub(crate) fn set_logs_changes(&self, logs: bool) {
        self.logs_changes.store(logs, Ordering::Relaxed);
    }

    /// Reports every later violation of a validator that is to be logged to `observer`.
    ///
    /// # Errors
    /// 1 InternalError if the store has an observer already.
    pub fn observe_violations(&self, observer: ViolationObserver) -> Result<()> {
        self.observers.observe_violations(observer)
    }

    /// Returns the storage engine.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Returns the wall clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Returns the published catalog, without a snapshot: for names and options only.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalogs.published.read())
    }

    pub(crate) fn snapshot_at(
        &self,
        time: ClusterTime,
    ) -> Result<(Box<dyn Snapshot>, Arc<Catalog>)> {
        let snapshot = self.engine.snapshot_at(time).map_err(from_storage)?;
        let published = self.catalogs.published.read();
        let catalog = self.catalogs.past.lock().at(snapshot.version(), &published);
        let catalog = catalog.ok_or_else(|| from_storage(StorageError::SnapshotTooOld))?;
        Ok((snapshot, catalog))
    }

    /// Begins a transaction, with the catalog of its snapshot.
    pub(crate) fn begin(&self, mode: Mode) -> Result<(Txn, Arc<Catalog>)> {
        let published = self.catalogs.published.read();
        let txn = begin(&self.engine, mode).map_err(from_storage)?;
        Ok((txn, Arc::clone(&published)))
    }

    /// Returns a new object id.
    pub fn new_object_id(&self) -> ObjectId {
        let seconds = (self.clock.now_ms() / 1000) as u32;
        let counter = self.next_object.fetch_add(1, Ordering::Relaxed) & 0xff_ffff;
        ObjectId::from_parts(seconds, self.process, counter)
    }

    /// Returns the exact size of a collection as of the last commit.
    pub fn counts(&self, collection: &Collection) -> Counts {
        self.engine.counts(collection.id.0)
    }

    /// Returns the time of a write that begins now.
    pub(crate) fn write_time_now(&self) -> WriteTime {
        self.write_time(self.clock.now_ms())
    }

    /// Returns the time of a write at `now_ms`, which follows all commits.
    pub(crate) fn write_time(&self, now_ms: u64) -> WriteTime {
        let cluster_time = Timestamp::from_u64(self.engine.cluster_time().next(now_ms).0);
        WriteTime { now_ms, cluster_time }
    }

    /// Returns a unique timestamp for an empty one in a document.
    pub(crate) fn new_stamp(&self) -> Timestamp {
        let next = self.engine.cluster_time().next(self.clock.now_ms()).0;
        let step = |last: u64| Some(next.max(last + 1));
        let last = self.last_stamp.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
        Timestamp::from_u64(next.max(last.unwrap_or_default() + 1))
    }

    /// Returns a random (version 4) UUID.
    pub fn new_uuid(&self) -> Uuid {
        Uuid(self.random.lock().uuid())
    }

    pub(crate) fn id_cache(&self) -> &IdCache {
        &self.id_cache
    }

    pub(crate) fn record_ids_if_known(&self, id: CollectionId) -> Option<Arc<RecordIds>> {
        self.record_ids.read().get(&id).cloned()
    }

    /// Returns the record ids of a collection; the first call in a process searches for the
    /// highest.
    pub(crate) fn record_ids(&self, id: CollectionId) -> Result<Arc<RecordIds>> {
        if let Some(known) = self.record_ids_if_known(id) {
            return Ok(known);
        }
        let mut all = self.record_ids.write();
        if let Some(known) = all.get(&id) {
            return Ok(Arc::clone(known));
        }
        let snapshot = self.engine.snapshot().map_err(from_storage)?;
        let mark = match snapshot.get(Space::Meta, &low_water_key(id)).map_err(from_storage)? {
            Some(bytes) => low_water_of(&bytes)?.0,
            None => 0,
        };
        let start = crate::layout::doc_key(id, crate::RecordId(mark));
        let end = collection_end(id);
        let request = ScanRequest::new(Space::Doc, &start, &end).reverse().keys_only().rows_max(1);
        let mut page = Page::default();
        snapshot.scan(&request, &mut page).map_err(from_storage)?;
        let highest = match page.rows.first() {
            Some((key, _)) => record_id_of(key)?.0,
            None => 0,
        };
        let highest = highest.max(highest_saved(&*snapshot, id)?);
        let ids = Arc::new(RecordIds::new(&self.engine, id, highest, mark));
        all.insert(id, Arc::clone(&ids));
        Ok(ids)
    }

    /// Registers a writer of a collection; [`RecordIds::leave`] ends that. Every id that it takes is
    /// at least the returned number. If a table of documents is about to begin, makes it begin now.
    pub(crate) fn enter(&self, id: CollectionId) -> Result<(Arc<RecordIds>, u64)> {
        if self.engine.wants_cut() {
            let known: Vec<_> =
                self.record_ids.read().iter().map(|(id, ids)| (*id, Arc::clone(ids))).collect();
            self.late.begin_table(&*self.engine, &known);
        }
        self.late.look(&*self.engine);
        let ids = self.record_ids(id)?;
        let floor = ids.enter();
        Ok((ids, floor))
    }

    /// Searches for the greatest key of the `_id` index to which `ids` belong.
    pub(crate) fn find_greatest_id(&self, ids: &RecordIds, index: IndexId) -> Result<()> {
        let (start, end) = index_range(index);
        let snapshot = self.engine.snapshot().map_err(from_storage)?;
        let request = ScanRequest::new(Space::Idx, &start, &end).reverse().keys_only().rows_max(1);
        let mut page = Page::default();
        snapshot.scan(&request, &mut page).map_err(from_storage)?;
        ids.found_greatest_id(page.rows.first().map_or(&start[..], |(key, _)| key));
        Ok(())
    }

    pub(crate) fn forget_record_ids(&self, id: CollectionId) {
        self.record_ids.write().remove(&id);
    }

    pub(crate) fn make_durable(
        &self,
        version: Version,
        options: &CommitOptions,
    ) -> Result<(), StorageError> {
        match options.durability {
            Durability::Synced => self.engine.barrier(version),
            Durability::Buffered => Ok(()),
        }
    }

    /// Publishes a catalog that was read from the engine.
    pub(crate) fn publish_loaded(&self, catalog: Catalog) {
        *self.catalogs.published.write() = Arc::new(catalog);
    }

    pub(crate) fn series_gate(&self, collection: CollectionId) -> Arc<SeriesGate> {
        self.series.of(collection)
    }

    /// Returns the gate for a statement that needs points of a collection as records.
    pub fn series_writes(&self, collection: &Collection) -> SeriesWrites {
        SeriesWrites::new(self.series_gate(collection.id))
    }

    /// Marks an execution that reads a time-series collection as open, so that closing waits for its end.
    pub fn reading_series(&self, collection: CollectionId) -> SeriesReading {
        self.series_gate(collection).reading()
    }

    /// Returns true if points of a collection may have moved between records and buckets in a commit after
    /// `version`. A view that was taken before this call contains no other such commit.
    pub fn moved_since(&self, collection: CollectionId, version: Version) -> bool {
        self.series.moved_since(collection, version)
    }

    /// Returns the bell that wakes the runner of jobs.
    pub fn job_bell(&self) -> &JobBell {
        &self.job_bell
    }

    /// Returns the index builds that are running now.
    pub fn index_builds(&self) -> Vec<Arc<IndexBuild>> {
        self.builds.running()
    }

    /// Returns the number of builds so far.
    pub fn index_build_counts(&self) -> IndexBuildCounts {
        self.builds.counts()
    }

    /// Sets the memory for the entries of each later index build, in bytes.
    pub fn set_build_memory(&self, bytes: usize) {
        self.builds.set_memory(bytes);
    }
}

/// Returns the highest record id of the documents of a collection that the change log saves; 0 if
/// there is none. The log still refers to these ids, so that no other document may get them.
fn highest_saved(snapshot: &dyn Snapshot, id: CollectionId) -> Result<u64> {
    let (start, end) = saved_range(id);
    let request = ScanRequest::new(Space::Log, &start, &end).reverse().keys_only().rows_max(1);
    let mut page = Page::default();
    snapshot.scan(&request, &mut page).map_err(from_storage)?;
    page.rows.first().map_or(Ok(0), |(key, _)| Ok(saved_record_id(key)?.0))
}
