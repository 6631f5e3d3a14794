//! Published snapshots. The leader publishes one view after each group; opening a snapshot is
//! cloning an `Arc` of the latest. So its version is exact, its cost does not depend on the
//! backend, and the oldest version in use is the first key of one small map.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};

use crate::backend::RawSnapshot;
use crate::committer::history::Past;
use crate::contract::{ClusterTime, Page, ScanRequest, Snapshot, Space, Version};
use crate::error::{Result, StorageError};

/// The views that somebody still holds, by version.
pub(crate) struct Active<S>(Mutex<BTreeMap<u64, Weak<View<S>>>>);

impl<S> Default for Active<S> {
    fn default() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
}

/// A backend's snapshot with its place in history.
pub(crate) struct View<S> {
    pub version: Version,
    pub cluster_time: ClusterTime,
    /// `None` once it was taken from its owners.
    snap: RwLock<Option<Arc<S>>>,
    /// Bytes committed before this view.
    pub written_before: u64,
    /// When a newer view was published.
    superseded: OnceLock<Instant>,
    active: Arc<Active<S>>,
}

impl<S> View<S> {
    pub fn new(
        active: &Arc<Active<S>>,
        version: u64,
        cluster_time: ClusterTime,
        snap: S,
        written_before: u64,
    ) -> Arc<Self> {
        let view = Arc::new(Self {
            version: Version::from_u64(version),
            cluster_time,
            snap: RwLock::new(Some(Arc::new(snap))),
            written_before,
            superseded: OnceLock::new(),
            active: Arc::clone(active),
        });
        active.0.lock().insert(version, Arc::downgrade(&view));
        view
    }

    /// A view of the past: the one that is still in use, or another of the same content, whose
    /// age counts from now.
    pub fn of_the_past(active: &Arc<Active<S>>, past: &Past<S>) -> Arc<Self> {
        let mut in_use = active.0.lock();
        let version = past.version.as_u64();
        if let Some(view) = in_use.get(&version).and_then(Weak::upgrade) {
            return view;
        }
        let view = Arc::new(Self {
            version: past.version,
            cluster_time: past.cluster_time,
            snap: RwLock::new(Some(Arc::clone(&past.snap))),
            written_before: past.written_before,
            superseded: OnceLock::from(Instant::now()),
            active: Arc::clone(active),
        });
        in_use.insert(version, Arc::downgrade(&view));
        view
    }

    /// Says that a newer view exists: from now on this one costs.
    pub fn supersede(&self) {
        let _ = self.superseded.set(Instant::now());
    }

    /// Replaces the backend's snapshot by one of the same content that retains less.
    pub fn refresh(&self, snap: S) {
        let mut slot = self.snap.write();
        if slot.is_some() {
            *slot = Some(Arc::new(snap));
        }
    }

    /// The backend's snapshot, for long work.
    pub fn raw(&self) -> Result<Arc<S>> {
        self.snap.read().clone().ok_or(StorageError::SnapshotTooOld)
    }

    fn revoke(&self) {
        self.active.0.lock().remove(&self.version.as_u64());
        let snap = self.snap.write().take();
        drop(snap);
    }

    fn with<T>(&self, read: impl FnOnce(&S) -> Result<T>) -> Result<T> {
        match &*self.snap.read() {
            Some(snap) => read(snap),
            None => Err(StorageError::SnapshotTooOld),
        }
    }
}

impl<S> Drop for View<S> {
    fn drop(&mut self) {
        let mut active = self.active.0.lock();
        let key = self.version.as_u64();
        if active.get(&key).is_some_and(|weak| weak.strong_count() == 0) {
            active.remove(&key);
        }
    }
}

impl<S> Active<S> {
    /// The oldest version that a snapshot in use stands on.
    pub fn oldest(&self) -> Option<u64> {
        self.0.lock().first_key_value().map(|(version, _)| *version)
    }

    /// Whether the snapshot of this version is in use and has not been taken.
    pub fn contains(&self, version: u64) -> bool {
        self.0.lock().contains_key(&version)
    }

    /// How many distinct versions are in use.
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// All views in use, oldest first.
    pub fn all(&self) -> Vec<Arc<View<S>>> {
        self.0.lock().values().filter_map(Weak::upgrade).collect()
    }

    /// The oldest view in use.
    pub fn first(&self) -> Option<Arc<View<S>>> {
        self.0.lock().values().find_map(Weak::upgrade)
    }

    /// Takes every view that is `too_old`, by its age since the first newer commit and by the
    /// bytes that had been written before it, from its owners; how many those were.
    pub fn enforce(&self, too_old: impl Fn(Duration, u64) -> bool) -> u64 {
        let mut revoked = 0;
        for view in self.all() {
            let Some(since) = view.superseded.get() else { continue };
            if too_old(since.elapsed(), view.written_before) {
                view.revoke();
                revoked += 1;
            }
        }
        revoked
    }

    /// Whether the oldest view retains more than this.
    pub fn over(&self, retained_max: u64, written: u64) -> bool {
        let first = self.first();
        first.is_some_and(|view| written.saturating_sub(view.written_before) > retained_max)
    }

    /// Takes all views from their owners: the engine closes.
    pub fn revoke_all(&self) {
        for view in self.all() {
            view.revoke();
        }
    }
}

/// What the engine hands out.
pub(crate) struct Handle<S>(pub Arc<View<S>>);

/// `Meta` keys that begin with 0 are the engine's own.
fn is_own(space: Space, key: &[u8]) -> bool {
    space == Space::Meta && key.first() == Some(&0)
}

impl<S: RawSnapshot> Snapshot for Handle<S> {
    fn version(&self) -> Version {
        self.0.version
    }

    fn cluster_time(&self) -> ClusterTime {
        self.0.cluster_time
    }

    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        if is_own(space, key) {
            return Ok(None);
        }
        self.0.with(|snap| snap.get(space, key))
    }

    fn get_many(&self, space: Space, keys: &[&[u8]], out: &mut Vec<Option<Bytes>>) -> Result<()> {
        if keys.iter().any(|key| is_own(space, key)) {
            for key in keys {
                out.push(self.get(space, key)?);
            }
            return Ok(());
        }
        self.0.with(|snap| snap.get_many(space, keys, out))
    }

    fn scan(&self, request: &ScanRequest<'_>, page: &mut Page) -> Result<()> {
        page.clear();
        let mut request = *request;
        if request.space == Space::Meta && request.start < [1].as_slice() {
            request.start = &[1];
        }
        if request.is_empty() {
            return Ok(());
        }
        self.0.with(|snap| snap.scan(&request, page))
    }
}
