//! Published snapshots. The leader publishes one view after each group, and opening a snapshot
//! clones an `Arc` of the latest view. So the version of a snapshot is exact, its cost does not
//! depend on the backend, and the oldest version in use is the first key of a small map.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};

use crate::backend::{Backend, RawSnapshot};
use crate::committer::Inner;
use crate::committer::history::Past;
use crate::contract::{
    ClusterTime, Page, ScanRequest, Snapshot, Space, Version, Visitor, visit_page,
};
use crate::error::{Result, StorageError};

/// The views in use.
pub(crate) struct Active<S>(Mutex<InUse<S>>);

/// Views by version. Each view is in one of the two maps.
struct InUse<S> {
    /// Views for which the backend keeps every later version of every key.
    live: BTreeMap<u64, Weak<View<S>>>,
    /// Views that the backend holds separately (`Backend::hold`).
    held: BTreeMap<u64, Weak<View<S>>>,
}

impl<S> InUse<S> {
    fn get(&self, version: u64) -> Option<Arc<View<S>>> {
        self.live.get(&version).or_else(|| self.held.get(&version))?.upgrade()
    }

    fn remove(&mut self, version: u64) {
        self.live.remove(&version);
        self.held.remove(&version);
    }
}

impl<S> Default for Active<S> {
    fn default() -> Self {
        Self(Mutex::new(InUse { live: BTreeMap::new(), held: BTreeMap::new() }))
    }
}

/// A backend's snapshot with its version and cluster time.
pub(crate) struct View<S> {
    pub version: Version,
    pub cluster_time: ClusterTime,
    /// `None` after the view was revoked.
    snap: RwLock<Option<Arc<S>>>,
    /// The number of bytes committed before this view.
    pub written_before: u64,
    /// The time at which a newer view was published.
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
        active.0.lock().live.insert(version, Arc::downgrade(&view));
        view
    }

    /// Returns a view of the history: the original one if it is still in use, or a new one with the
    /// same content, whose age counts from now.
    pub fn of_the_past(active: &Arc<Active<S>>, past: &Past<S>) -> Arc<Self> {
        let mut in_use = active.0.lock();
        let version = past.version.as_u64();
        if let Some(view) = in_use.get(version) {
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
        in_use.live.insert(version, Arc::downgrade(&view));
        view
    }

    /// Records that a newer view exists. From now on this view retains old versions.
    pub fn supersede(&self) {
        let _ = self.superseded.set(Instant::now());
    }

    /// Replaces the backend's snapshot by one with the same content that retains less.
    pub fn refresh(&self, snap: S) {
        let mut slot = self.snap.write();
        if slot.is_some() {
            *slot = Some(Arc::new(snap));
        }
    }

    /// Returns the backend's snapshot, for long work.
    pub fn raw(&self) -> Result<Arc<S>> {
        self.snap.read().clone().ok_or(StorageError::SnapshotTooOld)
    }

    /// Replaces the backend's snapshot by one that the backend holds separately, and moves the view
    /// to the held ones.
    fn hold(self: &Arc<Self>, snap: S) {
        let version = self.version.as_u64();
        let mut slot = self.snap.write();
        if slot.is_none() {
            return;
        }
        let before = slot.replace(Arc::new(snap));
        drop(slot);
        drop(before);
        let mut in_use = self.active.0.lock();
        if in_use.live.remove(&version).is_some() {
            in_use.held.insert(version, Arc::downgrade(self));
        }
    }

    fn revoke(&self) {
        self.active.0.lock().remove(self.version.as_u64());
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
        let mut in_use = self.active.0.lock();
        let version = self.version.as_u64();
        let InUse { live, held } = &mut *in_use;
        for views in [live, held] {
            if views.get(&version).is_some_and(|weak| weak.strong_count() == 0) {
                views.remove(&version);
            }
        }
    }
}

impl<S> Active<S> {
    /// Returns the oldest version in use.
    pub fn oldest(&self) -> Option<u64> {
        let in_use = self.0.lock();
        let (live, held) = (in_use.live.first_key_value(), in_use.held.first_key_value());
        live.into_iter().chain(held).map(|(version, _)| *version).min()
    }

    /// Returns true if the snapshot of this version is in use and not revoked.
    pub fn contains(&self, version: u64) -> bool {
        let in_use = self.0.lock();
        in_use.live.contains_key(&version) || in_use.held.contains_key(&version)
    }

    /// Returns the number of versions in use, and how many of them are held.
    pub fn sizes(&self) -> (usize, usize) {
        let in_use = self.0.lock();
        (in_use.live.len() + in_use.held.len(), in_use.held.len())
    }

    /// Returns the views for which the backend keeps later versions, oldest first.
    pub fn live(&self) -> Vec<Arc<View<S>>> {
        self.0.lock().live.values().filter_map(Weak::upgrade).collect()
    }

    /// Returns the held views, oldest first.
    pub fn held(&self) -> Vec<Arc<View<S>>> {
        self.0.lock().held.values().filter_map(Weak::upgrade).collect()
    }

    /// Returns the oldest view for which the backend keeps later versions.
    pub fn first_live(&self) -> Option<Arc<View<S>>> {
        self.0.lock().live.values().find_map(Weak::upgrade)
    }

    /// Returns true if more than `retained_max` bytes were committed since the oldest of these
    /// views.
    pub fn over(&self, retained_max: u64, written: u64) -> bool {
        let first = self.first_live();
        first.is_some_and(|view| written.saturating_sub(view.written_before) > retained_max)
    }

    /// Revokes all views, because the engine closes.
    pub fn revoke_all(&self) {
        for view in self.live().into_iter().chain(self.held()) {
            view.revoke();
        }
    }
}

impl<B: Backend> Inner<B> {
    /// Limits the cost of snapshots: holds views separately that retain many bytes, and revokes
    /// those that are too old or cannot be held. Does nothing while another thread does it: if two
    /// threads held the same view, the second would count the first one's memory against the view
    /// and revoke it.
    pub(crate) fn enforce_caps(&self) {
        let Some(_one_at_a_time) = self.capping.try_lock() else { return };
        let written = self.meters.written_bytes.load(Ordering::Relaxed);
        let options = &self.options;
        let mut revoked = 0;
        for view in self.active.live() {
            let Some(age) = view.superseded.get().map(Instant::elapsed) else { continue };
            let retained = written.saturating_sub(view.written_before);
            let is_over = retained > options.snapshot_retained_bytes_max;
            let is_old = age > options.snapshot_age_max;
            if is_old || is_over && !self.hold(&view) && age >= options.snapshot_grace {
                view.revoke();
                revoked += 1;
            }
        }
        for view in self.active.held() {
            let age = view.superseded.get().map(Instant::elapsed).unwrap_or_default();
            if age > options.snapshot_age_max {
                view.revoke();
                revoked += 1;
            }
        }
        self.meters.revoked.fetch_add(revoked, Ordering::Relaxed);
    }

    /// Lets the backend hold a view separately, unless the held views would exceed their memory.
    /// Returns false if the view is not held.
    fn hold(&self, view: &Arc<View<B::Snap>>) -> bool {
        let Ok(snap) = view.raw() else { return true };
        match self.backend.hold(&snap) {
            // `held_bytes` already includes this view. If it is too much, the new snapshot is
            // dropped and no longer counts.
            Ok(Some(held))
                if self.backend.held_bytes() <= self.options.snapshots_held_bytes_max =>
            {
                view.hold(held);
                true
            }
            Ok(_) | Err(_) => false,
        }
    }
}

/// A snapshot as the engine's callers get it.
pub(crate) struct Handle<S>(pub Arc<View<S>>);

/// Returns true for the engine's own keys: those of `Meta` that begin with 0.
fn is_own(space: Space, key: &[u8]) -> bool {
    space == Space::Meta && key.first() == Some(&0)
}

/// Returns the request without the engine's own keys.
fn without_own<'r>(request: &ScanRequest<'r>) -> ScanRequest<'r> {
    let mut request = *request;
    if request.space == Space::Meta && request.start < [1].as_slice() {
        request.start = &[1];
    }
    request
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
        let request = without_own(request);
        if request.is_empty() {
            return Ok(());
        }
        self.0.with(|snap| snap.scan(&request, page))
    }

    fn pass(&self, request: &ScanRequest<'_>, page: &mut Page) -> Result<usize> {
        page.clear();
        let request = without_own(request);
        if request.is_empty() {
            return Ok(0);
        }
        self.0.with(|snap| snap.pass(&request, page))
    }

    fn visit(&self, request: &ScanRequest<'_>, visitor: &mut Visitor<'_>) -> Result<Option<Bytes>> {
        let request = without_own(request);
        if request.is_empty() {
            return Ok(None);
        }
        match self.0.with(|snap| Ok(snap.reader()))? {
            Some(reader) => reader.visit(&request, visitor),
            None => visit_page(&request, visitor, |page| self.scan(&request, page)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::committer::{Committer, CommitterOptions};
    use crate::contract::{Caps, Op, Size};
    use crate::memory::{MemoryBackend, MemorySnapshot};
    use std::sync::atomic::AtomicU64;
    use std::sync::mpsc;
    use std::time::Duration;

    /// A backend in memory that takes long to hold its first snapshot; it has room for one.
    #[derive(Default)]
    struct SlowToHold {
        memory: MemoryBackend,
        held: AtomicU64,
        /// Sends when the first hold has begun, then waits until it may end.
        first: Mutex<Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>>,
    }

    impl Backend for SlowToHold {
        type Snap = MemorySnapshot;

        fn caps(&self) -> &Caps {
            self.memory.caps()
        }

        fn snapshot(&self) -> Result<MemorySnapshot> {
            self.memory.snapshot()
        }

        fn hold(&self, _: &MemorySnapshot) -> Result<Option<MemorySnapshot>> {
            self.held.fetch_add(1, Ordering::Relaxed);
            let first = self.first.lock().take();
            if let Some((begun, end)) = first {
                begun.send(()).unwrap();
                end.recv().unwrap();
            }
            self.memory.snapshot().map(Some)
        }

        fn held_bytes(&self) -> u64 {
            self.held.load(Ordering::Relaxed)
        }

        fn apply(&self, ops: Vec<Op>, sync: bool) -> Result<()> {
            self.memory.apply(ops, sync)
        }

        fn sync(&self) -> Result<()> {
            self.memory.sync()
        }

        fn approximate_size(&self, space: Space, start: &[u8], end: &[u8]) -> Result<Size> {
            self.memory.approximate_size(space, start, end)
        }
    }

    /// The ticker and a commit may enforce the caps at the same time. The second thread met the
    /// view that the first was holding, found no room for it a second time, and revoked it.
    #[test]
    fn a_view_that_is_being_held_is_not_revoked_by_another_thread() {
        let ((begun, has_begun), (end, may_end)) = (mpsc::channel(), mpsc::channel());
        let first = Mutex::new(Some((begun, may_end)));
        let options = CommitterOptions {
            tick: None,
            snapshot_retained_bytes_max: 0,
            snapshots_held_bytes_max: 1,
            snapshot_grace: Duration::ZERO,
            ..CommitterOptions::default()
        };
        let backend = SlowToHold { first, ..SlowToHold::default() };
        let committer = Committer::open(backend, options).unwrap();
        let inner = &*committer.inner;
        let view = Arc::clone(&inner.current.read());
        view.supersede();
        inner.meters.written_bytes.store(1, Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| inner.enforce_caps());
            has_begun.recv().unwrap();
            inner.enforce_caps();
            end.send(()).unwrap();
        });
        assert!(view.raw().is_ok());
        assert_eq!(inner.active.sizes(), (1, 1));
        assert_eq!(inner.meters.revoked.load(Ordering::Relaxed), 0);
    }
}
