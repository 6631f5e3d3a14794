//! The index builds that are running, and how far they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use quire_catalog::{Collection, IndexId, Uuid};
use quire_storage::Interrupt;

use crate::Store;

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
#[derive(Debug, Default)]
pub(crate) struct IndexBuilds {
    running: Mutex<Vec<Arc<IndexBuild>>>,
    begun: AtomicU64,
    scanned: AtomicU64,
    committed: AtomicU64,
}

/// Takes a build off the list when it ends, however it ends.
pub(super) struct RunningBuild<'s> {
    builds: &'s IndexBuilds,
    pub build: Arc<IndexBuild>,
}

impl IndexBuild {
    /// Documents that it has read, and how many there are to read: never fewer.
    pub fn progress(&self) -> (u64, u64) {
        let scanned = self.scanned.load(Ordering::Relaxed);
        (scanned, self.documents.max(scanned))
    }

    /// Whether it fills this index.
    pub fn fills(&self, index: IndexId) -> bool {
        self.ids.contains(&index)
    }

    /// Whether it is part of the operation that `interrupt` stops.
    pub fn is_stopped_by(&self, interrupt: &Arc<Interrupt>) -> bool {
        Arc::ptr_eq(&self.interrupt, interrupt)
    }

    pub(super) fn advance(&self, documents: usize) {
        self.scanned.fetch_add(documents as u64, Ordering::Relaxed);
    }
}

impl IndexBuilds {
    pub(super) fn note_scanned(&self) {
        self.scanned.fetch_add(1, Ordering::Relaxed);
    }
}

impl Store {
    /// The index builds that are running now.
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

    pub(super) fn begin_build(
        &self,
        collection: &Collection,
        ids: &[IndexId],
        interrupt: &Arc<Interrupt>,
    ) -> RunningBuild<'_> {
        let build = Arc::new(IndexBuild {
            uuid: self.new_uuid(),
            ids: ids.to_vec(),
            interrupt: Arc::clone(interrupt),
            documents: self.counts(collection).documents,
            scanned: AtomicU64::new(0),
        });
        self.builds.running.lock().push(Arc::clone(&build));
        self.builds.begun.fetch_add(1, Ordering::Relaxed);
        RunningBuild { builds: &self.builds, build }
    }
}

impl RunningBuild<'_> {
    /// The indexes are published.
    pub fn committed(self) {
        self.builds.committed.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for RunningBuild<'_> {
    fn drop(&mut self) {
        self.builds.running.lock().retain(|other| !Arc::ptr_eq(other, &self.build));
    }
}
