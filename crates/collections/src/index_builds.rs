//! The running index builds and their progress.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use quire_catalog::{Collection, Index, IndexId, Uuid};
use quire_mql::context::InterruptCheck;
use quire_storage::Interrupt;

use crate::side_writes::SideWrites;
use crate::{RecordId, from_interruption};

/// The default memory for the entries of a build, in bytes: MongoDB's default of
/// `maxIndexBuildMemoryUsageMegabytes`.
const MEMORY_BYTES: usize = 200 << 20;

/// A running index build.
#[derive(Debug)]
pub struct IndexBuild {
    /// The identity of the build, in errors and listings.
    pub uuid: Uuid,
    pub(crate) ids: Vec<IndexId>,
    pub(crate) interrupt: Arc<Interrupt>,
    /// The number of documents when it began.
    documents: u64,
    scanned: AtomicU64,
}

/// The number of index builds in this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexBuildCounts {
    /// Builds that have begun.
    pub begun: u64,
    /// Builds that have read all documents and begun to check duplicate keys.
    pub scanned: u64,
    /// Builds whose indexes were published.
    pub committed: u64,
}

/// The builds of a store.
pub(crate) struct IndexBuilds {
    directory: Arc<Path>,
    memory_bytes: AtomicUsize,
    /// The notes of writers about indexes whose entries are being loaded.
    side: RwLock<HashMap<IndexId, Arc<SideWrites>>>,
    running: Mutex<Vec<Arc<IndexBuild>>>,
    begun: AtomicU64,
    scanned: AtomicU64,
    committed: AtomicU64,
}

/// Removes a build from the list when it is dropped.
pub(crate) struct RunningBuild<'s> {
    builds: &'s IndexBuilds,
    pub build: Arc<IndexBuild>,
    _side: OpenSide<'s>,
}

/// Ends the notes about the indexes of a build when it is dropped.
pub(crate) struct OpenSide<'s> {
    builds: &'s IndexBuilds,
    ids: Vec<IndexId>,
}

impl IndexBuild {
    /// Returns how many documents it has read, and how many there are: never fewer.
    pub fn progress(&self) -> (u64, u64) {
        let scanned = self.scanned.load(Ordering::Relaxed);
        (scanned, self.documents.max(scanned))
    }

    /// Returns true if it fills this index.
    pub fn fills(&self, index: IndexId) -> bool {
        self.ids.contains(&index)
    }

    /// Returns true if the build belongs to the operation that `interrupt` stops.
    pub fn is_stopped_by(&self, interrupt: &Arc<Interrupt>) -> bool {
        Arc::ptr_eq(&self.interrupt, interrupt)
    }

    /// Returns the build's interrupt in the form that its expressions and comparisons check.
    pub(crate) fn interrupt_check(&self) -> Arc<dyn InterruptCheck> {
        let interrupt = Arc::clone(&self.interrupt);
        Arc::new(move || interrupt.check().map_err(from_interruption))
    }

    /// Returns the indexes that it fills, as `collection` has them.
    pub(crate) fn indexes_of(&self, collection: &Collection) -> Vec<Arc<Index>> {
        let filled = |index: &&Arc<Index>| self.fills(index.id);
        collection.indexes.iter().filter(filled).cloned().collect()
    }

    pub(crate) fn advance(&self, documents: usize) {
        self.scanned.fetch_add(documents as u64, Ordering::Relaxed);
    }
}

impl IndexBuilds {
    /// Returns an empty list. Builds write to `directory` what does not fit into their memory.
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

    /// Notes that a writer changes an entry of an index whose entries are being loaded. After the
    /// end of the build it does nothing.
    pub fn note(&self, index: IndexId, record: RecordId, key: &[u8]) {
        if let Some(side) = self.side.read().get(&index) {
            side.note(record, key);
        }
    }

    /// Begins to take notes about indexes, before another thread can see them.
    pub(crate) fn open(&self, ids: &[IndexId]) -> OpenSide<'_> {
        let mut side = self.side.write();
        side.extend(ids.iter().map(|id| (*id, Arc::new(SideWrites::new(&self.directory)))));
        OpenSide { builds: self, ids: ids.to_vec() }
    }

    /// Ends the notes about indexes, and returns them.
    pub(crate) fn close(&self, ids: &[IndexId]) -> Vec<(IndexId, Arc<SideWrites>)> {
        let mut side = self.side.write();
        ids.iter().filter_map(|id| side.remove_entry(id)).collect()
    }

    /// Returns the directory for what does not fit into the memory of a build.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the memory for the entries of one build, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes.load(Ordering::Relaxed)
    }

    /// Sets the memory for the entries of each later build, in bytes.
    pub fn set_memory(&self, bytes: usize) {
        self.memory_bytes.store(bytes, Ordering::Relaxed);
    }

    pub fn note_scanned(&self) {
        self.scanned.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the builds that are running now.
    pub fn running(&self) -> Vec<Arc<IndexBuild>> {
        self.running.lock().clone()
    }

    pub fn counts(&self) -> IndexBuildCounts {
        IndexBuildCounts {
            begun: self.begun.load(Ordering::Relaxed),
            scanned: self.scanned.load(Ordering::Relaxed),
            committed: self.committed.load(Ordering::Relaxed),
        }
    }

    /// Begins a build of the indexes of `side` over `documents` documents, which `interrupt` stops.
    pub fn begin<'s>(
        &'s self,
        uuid: Uuid,
        documents: u64,
        side: OpenSide<'s>,
        interrupt: &Arc<Interrupt>,
    ) -> RunningBuild<'s> {
        let build = Arc::new(IndexBuild {
            uuid,
            ids: side.ids.clone(),
            interrupt: Arc::clone(interrupt),
            documents,
            scanned: AtomicU64::new(0),
        });
        self.running.lock().push(Arc::clone(&build));
        self.begun.fetch_add(1, Ordering::Relaxed);
        RunningBuild { builds: self, build, _side: side }
    }
}

impl RunningBuild<'_> {
    /// Counts the build as committed.
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
