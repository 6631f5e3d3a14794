//! The record ids of a collection in memory: the next id, and the low-water mark, below which no
//! snapshot from some version on has a record. A queue that is popped from its head leaves
//! tombstones; scans that start at the mark do not read them. Also the greatest key of the `_id`
//! index: a greater key is new without a look-up.

use std::sync::atomic::{AtomicU64, Ordering};

use std::sync::Arc;

use parking_lot::Mutex;
use quire_catalog::CollectionId;
use quire_storage::{Engine, Version};
use smallvec::SmallVec;

use crate::RecordId;

/// The record ids of one collection.
pub(crate) struct RecordIds {
    collection: CollectionId,
    /// Wakes the readers of the collection.
    engine: Arc<dyn Engine>,
    next: AtomicU64,
    state: Mutex<State>,
    /// The value of the mark when it was last stored.
    stored: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// The smallest id that each unfinished writer can have taken.
    unfinished: Vec<u64>,
    /// True if a reader has asked for [`RecordIds::settled`] while a writer was unfinished.
    is_awaited: bool,
    /// The version of the latest commit that inserted.
    last_insert: Version,
    mark: u64,
    /// The version from which on the mark holds.
    holds_from: Version,
    /// A key that is not below any key of the `_id` index that this process committed.
    greatest_id: Vec<u8>,
    /// True if `greatest_id` also covers the keys from before this process.
    knows_greatest_id: bool,
}

/// How far the mark must move before it is stored again.
const STORE_STEP: u64 = 4096;

impl RecordIds {
    /// `highest` is the largest id in use, `mark` the stored low-water mark.
    pub(crate) fn new(
        engine: &Arc<dyn Engine>,
        collection: CollectionId,
        highest: u64,
        mark: u64,
    ) -> Self {
        RecordIds {
            collection,
            engine: Arc::clone(engine),
            next: AtomicU64::new(highest.max(mark) + 1),
            state: Mutex::new(State { mark, ..State::default() }),
            stored: AtomicU64::new(mark),
        }
    }

    /// Returns an id that is larger than every id taken so far.
    pub(crate) fn bound(&self) -> RecordId {
        RecordId(self.next.load(Ordering::SeqCst))
    }

    /// Registers a writer. Every id that it takes is at least the returned number.
    pub(crate) fn enter(&self) -> u64 {
        let mut state = self.state.lock();
        let floor = self.next.load(Ordering::SeqCst);
        state.unfinished.push(floor);
        floor
    }

    /// Returns the bound of the ids taken so far if a writer is unfinished.
    pub(crate) fn late_below(&self) -> Option<RecordId> {
        let state = self.state.lock();
        (!state.unfinished.is_empty()).then(|| self.bound())
    }

    /// Returns true if an unfinished writer can have an id below `bound`.
    pub(crate) fn is_unfinished_below(&self, bound: RecordId) -> bool {
        self.state.lock().unfinished.iter().any(|floor| *floor < bound.0)
    }

    /// Returns the bound below which every id is settled: a snapshot that is taken after this call
    /// has all documents with such ids that will ever be inserted. If a writer is unfinished, wakes
    /// the readers of the collection when the bound can have risen.
    pub(crate) fn settled(&self) -> RecordId {
        let mut state = self.state.lock();
        let unfinished = state.unfinished.iter().min().copied();
        state.is_awaited |= unfinished.is_some();
        unfinished.map_or_else(|| self.bound(), RecordId)
    }

    /// Returns a new id for a registered writer.
    pub(crate) fn take(&self) -> RecordId {
        RecordId(self.next.fetch_add(1, Ordering::SeqCst))
    }

    /// Ends the registration of a writer.
    pub(crate) fn leave(&self, floor: u64, committed: Option<Version>) {
        let mut state = self.state.lock();
        if let Some(at) = state.unfinished.iter().position(|other| *other == floor) {
            state.unfinished.swap_remove(at);
        }
        if let Some(version) = committed {
            state.last_insert = state.last_insert.max(version);
        }
        if state.is_awaited && state.unfinished.iter().all(|other| *other > floor) {
            state.is_awaited = false;
            drop(state);
            self.engine.wake(self.collection.0);
        }
    }

    /// Returns a key that is not below any key of the `_id` index in any snapshot taken before this
    /// call; `None` if [`found_greatest_id`](Self::found_greatest_id) has not been called yet.
    pub(crate) fn greatest_id(&self) -> Option<SmallVec<[u8; 32]>> {
        let state = self.state.lock();
        state.knows_greatest_id.then(|| SmallVec::from_slice(&state.greatest_id))
    }

    /// Raises the greatest key to `key`. A writer calls this before it commits entries of `_id`.
    pub(crate) fn raise_greatest_id(&self, key: &[u8]) {
        let mut state = self.state.lock();
        if *key > state.greatest_id[..] {
            state.greatest_id.clear();
            state.greatest_id.extend_from_slice(key);
        }
    }

    /// Sets the greatest key of a snapshot that was taken after this value was created. `key` is
    /// the number of the index if the index is empty.
    pub(crate) fn found_greatest_id(&self, key: &[u8]) {
        self.raise_greatest_id(key);
        self.state.lock().knows_greatest_id = true;
    }

    /// Returns the smallest id that a snapshot of this version can hold.
    pub(crate) fn low_water(&self, snapshot: Version) -> u64 {
        let state = self.state.lock();
        if snapshot >= state.holds_from { state.mark } else { 0 }
    }

    /// Moves the mark to `first`, the first record that a scan of this snapshot found from the mark
    /// on (`None` if it found none), unless a record can have been added below `first` since.
    pub(crate) fn saw_first(&self, snapshot: Version, first: Option<RecordId>) {
        let mut state = self.state.lock();
        if snapshot < state.last_insert {
            return;
        }
        let bound = state.unfinished.iter().copied().min();
        let bound = bound.unwrap_or_else(|| self.next.load(Ordering::SeqCst));
        let mark = first.map_or(bound, |id| id.0.min(bound));
        if mark > state.mark {
            state.mark = mark;
            state.holds_from = snapshot;
        }
    }

    /// Resets the mark, because the stored one was wrong: scans begin at the first record id again.
    pub(crate) fn forget_mark(&self) {
        self.state.lock().mark = 0;
        self.stored.store(0, Ordering::Relaxed);
    }

    /// Returns the mark if it has moved far enough to be stored again.
    pub(crate) fn worth_storing(&self) -> Option<u64> {
        let mark = self.state.lock().mark;
        let stored = self.stored.load(Ordering::Relaxed);
        (mark >= stored + STORE_STEP).then(|| {
            self.stored.store(mark, Ordering::Relaxed);
            mark
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use quire_storage::{Interrupt, Reach, Watched};

    use super::*;

    fn new_ids() -> RecordIds {
        let engine = quire_storage::open_memory().unwrap();
        RecordIds::new(&engine, CollectionId(1), 10, 0)
    }

    #[test]
    fn the_greatest_id_includes_earlier_writes() {
        let ids = new_ids();
        ids.raise_greatest_id(b"k");
        assert_eq!(ids.greatest_id(), None);
        ids.found_greatest_id(b"g");
        assert_eq!(ids.greatest_id().as_deref(), Some(&b"k"[..]));
        ids.raise_greatest_id(b"h");
        assert_eq!(ids.greatest_id().as_deref(), Some(&b"k"[..]));
        ids.raise_greatest_id(b"ka");
        assert_eq!(ids.greatest_id().as_deref(), Some(&b"ka"[..]));
    }

    fn version(number: u64) -> Version {
        Version::from_u64(number)
    }

    #[test]
    fn the_mark_never_passes_an_unfinished_writer() {
        let ids = new_ids();
        let slow = ids.enter();
        assert_eq!(ids.take(), RecordId(11));
        let fast = ids.enter();
        assert_eq!(ids.take(), RecordId(12));
        ids.leave(fast, Some(version(5)));
        ids.saw_first(version(4), Some(RecordId(12)));
        assert_eq!(
            ids.low_water(version(9)),
            0,
            "an older snapshot than the last insert says nothing"
        );
        ids.saw_first(version(5), Some(RecordId(12)));
        assert_eq!(ids.low_water(version(5)), 11);
        assert_eq!(ids.low_water(version(4)), 0);
        ids.leave(slow, None);
        ids.saw_first(version(6), None);
        assert_eq!(ids.low_water(version(6)), 13);
        assert_eq!(ids.enter(), 13);
    }

    #[test]
    fn an_id_is_settled_after_all_writers_that_can_have_taken_it() {
        let ids = new_ids();
        let wakes = || ids.engine.stats().wakes;
        let interrupt = Interrupt::new();
        let _watch = ids.engine.watch(Watched::Collection(1), Reach::Visible, &interrupt);
        assert_eq!(ids.settled(), RecordId(11));
        let (slow, slower) = (ids.enter(), ids.enter());
        ids.take();
        let fast = ids.enter();
        ids.take();
        ids.leave(fast, Some(version(5)));
        assert_eq!(wakes(), 0, "no reader has asked");
        assert_eq!(ids.settled(), RecordId(11));
        ids.leave(slow, Some(version(6)));
        assert_eq!((ids.settled(), wakes()), (RecordId(11), 0));
        ids.leave(slower, None);
        assert_eq!((ids.settled(), wakes()), (RecordId(13), 1));
    }
}
