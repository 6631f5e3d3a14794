//! The index builds that are running, and how far they are.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use quire_catalog::{Collection, IndexId, Uuid};
use quire_storage::Interrupt;

use crate::side_writes::SideWrites;
use crate::{RecordId, Store};

/// Memory for the entries of a build where nothing else is said: MongoDB's default of
/// `maxIndexBuildMemoryUsageMegabytes`.
const MEMORY_BYTES: usize = 200 << 20;

/// A running index build.
#[derive(Debug)]
pub struct IndexBuild {
    /// Tells it from others, in errors and listings.
    pub uuid: Uuid,
    pub(super) ids: Vec<IndexId>,
    pub(super) interrupt: Arc<Interrupt>,
    /// Documents there were when it began.
    documents: u64,
    scanned: AtomicU64,
}

/// How many builds there have been in this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexBuildCounts {
    /// They have begun.
    pub begun: u64,
    /// They have read all documents and come to keys that two of them had.
    pub scanned: u64,
    /// Their indexes were published.
    pub committed: u64,
}

/// The builds of a store.
pub(crate) struct IndexBuilds {
    directory: Arc<Path>,
    memory_bytes: AtomicUsize,
    /// What writers change in indexes whose entries are being loaded.
    side: RwLock<HashMap<IndexId, Arc<SideWrites>>>,
    running: Mutex<Vec<Arc<IndexBuild>>>,
    begun: AtomicU64,
    scanned: AtomicU64,
    committed: AtomicU64,
}

/// Takes a build off the list when it ends, however it ends.
pub(super) struct RunningBuild<'s> {
    builds: &'s IndexBuilds,
    pub build: Arc<IndexBuild>,
    _side: OpenSide<'s>,
}

/// Ends the notes of writers about the indexes of a build when the build ends.
pub(super) struct OpenSide<'s> {
    builds: &'s IndexBuilds,
    ids: Vec<IndexId>,
}

impl IndexBuild {
    /// Documents that it has read, and how many there are to read: never fewer.
    pub fn progress(&self) -> (u64, u64) {
        let scanned = self.scanned.load(Ordering::Relaxed);
        (scanned, self.documents.max(scanned))
    }

    /// Returns true if it fills this index.
    pub fn fills(&self, index: IndexId) -> bool {
        self.ids.contains(&index)
    }

    /// Returns true if it is part of the operation that `interrupt` stops.
    pub fn is_stopped_by(&self, interrupt: &Arc<Interrupt>) -> bool {
        Arc::ptr_eq(&self.interrupt, interrupt)
    }

    pub(super) fn advance(&self, documents: usize) {
        self.scanned.fetch_add(documents as u64, Ordering::Relaxed);
    }
}

impl IndexBuilds {
    /// No builds. What their memory does not hold goes to `directory`.
    pub fn new(directory: &Arc<Path>) -> Self {
        IndexBuilds {
            directory: Arc::clone(directory),
            memory_bytes: AtomicUsize::new(MEMORY_BYTES),
            side: RwLock::default(),
            running: Mutex::default(),
            begun: AtomicU64::new(0),
            scanned: AtomicU64::new(0),
            committed: AtomicU64::new(0),
        }
    }

    /// Notes that a writer changes an entry of an index whose entries are being loaded. A build that
    /// has ended needs no notes.
    pub fn note(&self, index: IndexId, record: RecordId, key: &[u8]) {
        if let Some(side) = self.side.read().get(&index) {
            side.note(record, key);
        }
    }

    /// Begins to take notes about indexes, before anybody else can know of them.
    pub(super) fn open(&self, ids: &[IndexId]) -> OpenSide<'_> {
        let mut side = self.side.write();
        side.extend(ids.iter().map(|id| (*id, Arc::new(SideWrites::new(&self.directory)))));
        OpenSide { builds: self, ids: ids.to_vec() }
    }

    /// Ends taking notes about indexes. Returns those that there are.
    pub(super) fn close(&self, ids: &[IndexId]) -> Vec<(IndexId, Arc<SideWrites>)> {
        let mut side = self.side.write();
        ids.iter().filter_map(|id| side.remove_entry(id)).collect()
    }

    /// Where a build writes what its memory does not hold.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Memory for the entries of one build.
    pub(super) fn memory_bytes(&self) -> usize {
        self.memory_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn note_scanned(&self) {
        self.scanned.fetch_add(1, Ordering::Relaxed);
    }
}

impl Store {
    /// Returns the index builds that are running now.
    pub fn index_builds(&self) -> Vec<Arc<IndexBuild>> {
        self.builds.running.lock().clone()
    }

    /// How many there have been.
    pub fn index_build_counts(&self) -> IndexBuildCounts {
        IndexBuildCounts {
            begun: self.builds.begun.load(Ordering::Relaxed),
            scanned: self.builds.scanned.load(Ordering::Relaxed),
            committed: self.builds.committed.load(Ordering::Relaxed),
        }
    }

    /// Bounds the memory for the entries of each index build from now on.
    pub fn set_build_memory(&self, bytes: usize) {
        self.builds.memory_bytes.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn begin_build<'s>(
        &'s self,
        collection: &Collection,
        side: OpenSide<'s>,
        interrupt: &Arc<Interrupt>,
    ) -> RunningBuild<'s> {
        let build = Arc::new(IndexBuild {
            uuid: self.new_uuid(),
            ids: side.ids.clone(),
            interrupt: Arc::clone(interrupt),
            documents: self.counts(collection).documents,
            scanned: AtomicU64::new(0),
        });
        self.builds.running.lock().push(Arc::clone(&build));
        self.builds.begun.fetch_add(1, Ordering::Relaxed);
        RunningBuild { builds: &self.builds, build, _side: side }
    }
}

impl RunningBuild<'_> {
    /// The indexes are published.
    pub fn committed(self) {
        self.builds.committed.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for OpenSide<'_> {
    fn drop(&mut self) {
        self.builds.close(&self.ids);
    }
}

impl Drop for RunningBuild<'_> {
    fn drop(&mut self) {
        self.builds.running.lock().retain(|other| !Arc::ptr_eq(other, &self.build));
    }
}
