//! The gate of a collection between closing, the writes that need points as records, and readers; and the mark by which
//! readers know that points have moved between records and buckets.
//!
//! A reader that takes a newer view in the middle of its scan would miss a point that went from the records, which it
//! still has to read, to the buckets, which it has read. So closing waits until no execution is open that reads the
//! collection (docs/adr/0048-closing-waits-for-readers.md). Other moves do not wait: a reader asks `Store::moved_since`
//! after it took a newer view, and stays at the older state if points may have moved between the two.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, RwLock};
use quire_catalog::CollectionId;
use quire_storage::Version;

/// The longest time for which closing waits for the executions that are open, and keeps new ones from beginning.
const READERS_WAIT: Duration = Duration::from_millis(50);
/// The longest time for which a new execution waits while points are closed: a commit can take long.
const CLOSING_WAIT: Duration = Duration::from_millis(200);

/// The longest time for which a pass that is forced waits for the step of another one.
const OTHER_PASS_WAIT: Duration = Duration::from_secs(10);

/// The gates of all collections in which points have moved or were read, since the store was opened.
#[derive(Default)]
pub(crate) struct SeriesGates(Mutex<HashMap<CollectionId, Arc<SeriesGate>>>);

/// The gate of one collection.
#[derive(Default)]
pub(crate) struct SeriesGate {
    /// Held while a pass makes a step.
    step: Mutex<()>,
    /// Held for writing while points are closed, and for reading while a statement needs them as records.
    turn: RwLock<()>,
    moves: Mutex<Moves>,
    readers: Mutex<Readers>,
    /// Notified when `readers` changes.
    readers_changed: Condvar,
}

/// The executions that read a collection.
#[derive(Default)]
struct Readers {
    /// The number of those that are open.
    open: usize,
    /// True while closing waits for them or moves points.
    is_closing: bool,
}

/// The commits that move points between records and buckets.
#[derive(Default)]
struct Moves {
    /// Those that may be visible and are not in `last`.
    running: usize,
    /// The version of the latest one.
    last: Version,
    /// True after a commit whose outcome is unknown.
    is_unknown: bool,
}

/// A commit that moves points.
pub(crate) struct Moving<'g>(&'g SeriesGate);

/// Marks an execution that reads a collection as open, until it is dropped. It may be dropped by another thread.
pub struct SeriesReading(Arc<SeriesGate>);

/// Keeps readers out while points are closed, until it is dropped.
pub(crate) struct ReadersOut<'g>(&'g SeriesGate);

/// Keeps the points of a collection that are records from being closed, until it is dropped.
pub struct SeriesWrites {
    gate: Arc<SeriesGate>,
}

impl SeriesGates {
    /// Returns the gate of a collection.
    pub fn of(&self, collection: CollectionId) -> Arc<SeriesGate> {
        Arc::clone(self.0.lock().entry(collection).or_default())
    }

    /// Returns true if points of a collection may have moved in a commit after `version`.
    pub fn moved_since(&self, collection: CollectionId, version: Version) -> bool {
        let gate = self.0.lock().get(&collection).cloned();
        gate.is_some_and(|gate| gate.moved_since(version))
    }
}

impl SeriesGate {
    /// Runs `work` while no statement needs points as records; `None` if one does now. Unless `is_forced`, also `None` if
    /// another pass makes a step, or if an execution that reads the collection is open and does not end soon. Others may
    /// begin during `work`, up to [`readers_out`](Self::readers_out).
    pub fn closing<T>(&self, is_forced: bool, work: impl FnOnce() -> T) -> Option<T> {
        let _step = match is_forced {
            true => self.step.try_lock_for(OTHER_PASS_WAIT)?,
            false => self.step.try_lock()?,
        };
        let _turn = self.turn.try_write()?;
        drop(self.readers_out(is_forced)?);
        Some(work())
    }

    /// Waits for a moment until no execution is open, and keeps new ones from beginning until the result is dropped: for
    /// the commit that closes points. Returns `None` if one does not end soon. If it `is_forced` no execution matters.
    pub fn readers_out(&self, is_forced: bool) -> Option<Option<ReadersOut<'_>>> {
        if is_forced { Some(None) } else { self.keep_readers_out().map(Some) }
    }

    /// Waits until no execution is open, for a moment at most. None begins until the result is dropped.
    fn keep_readers_out(&self) -> Option<ReadersOut<'_>> {
        let until = Instant::now() + READERS_WAIT;
        let mut readers = self.readers.lock();
        readers.is_closing = true;
        // It ends the mark also if this gives up.
        let readers_out = ReadersOut(self);
        while readers.open > 0 {
            if self.readers_changed.wait_until(&mut readers, until).timed_out() && readers.open > 0
            {
                drop(readers);
                return None;
            }
        }
        drop(readers);
        Some(readers_out)
    }

    /// Marks an execution as open. Waits while points are closed, for a moment at most.
    pub fn reading(self: &Arc<Self>) -> SeriesReading {
        let is_closing = |readers: &mut Readers| readers.is_closing;
        let mut readers = self.readers.lock();
        self.readers_changed.wait_while_for(&mut readers, is_closing, CLOSING_WAIT);
        readers.open += 1;
        drop(readers);
        SeriesReading(Arc::clone(self))
    }

    /// Returns the version of the latest commit that moved points.
    pub fn last_move(&self) -> Version {
        self.moves.lock().last
    }

    fn moved_since(&self, version: Version) -> bool {
        let moves = self.moves.lock();
        moves.running > 0 || moves.is_unknown || moves.last > version
    }

    /// Begins a commit that moves points. Readers of views that are taken from now on know of it.
    pub fn moving(&self) -> Moving<'_> {
        self.moves.lock().running += 1;
        Moving(self)
    }
}

impl Moving<'_> {
    /// Ends it; `version` is that of the commit, `None` if nothing was written.
    pub fn end(self, version: Option<Version>) {
        let mut moves = self.0.moves.lock();
        moves.last = moves.last.max(version.unwrap_or_default());
    }

    /// Ends it without knowing whether it was written.
    pub fn end_unknown(self) {
        self.0.moves.lock().is_unknown = true;
    }
}

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        self.0.moves.lock().running -= 1;
    }
}

impl Drop for ReadersOut<'_> {
    fn drop(&mut self) {
        self.0.readers.lock().is_closing = false;
        self.0.readers_changed.notify_all();
    }
}

impl Drop for SeriesReading {
    fn drop(&mut self) {
        self.0.readers.lock().open -= 1;
        self.0.readers_changed.notify_all();
    }
}

impl SeriesWrites {
    pub(crate) fn new(gate: Arc<SeriesGate>) -> Self {
        SeriesWrites { gate }
    }

    /// Runs `work` while no points of the collection are closed.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let _turn = self.gate.turn.read_recursive();
        work()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_knows_of_every_commit_that_moved_points_since_its_view() {
        let (gates, id) = (SeriesGates::default(), CollectionId(7));
        let gate = gates.of(id);
        let moved = |version| gates.moved_since(id, Version::from_u64(version));
        assert!(!moved(0));
        let moving = gate.moving();
        assert!(moved(9), "it may be visible already");
        moving.end(Some(Version::from_u64(5)));
        assert!(moved(4) && !moved(5) && !moved(6));
        gate.moving().end(None);
        assert!(moved(4) && !moved(5));
        gate.moving().end_unknown();
        assert!(moved(9));
    }

    #[test]
    fn nothing_is_closed_while_a_statement_needs_records() {
        let gate = SeriesGates::default().of(CollectionId(7));
        let writes = SeriesWrites { gate: Arc::clone(&gate) };
        writes.run(|| {
            assert!(gate.closing(true, || ()).is_none());
            writes.run(|| assert!(gate.closing(true, || ()).is_none()));
        });
        assert!(gate.closing(true, || ()).is_some());
    }

    #[test]
    fn a_forced_pass_waits_for_the_step_of_another() {
        let gate = SeriesGates::default().of(CollectionId(7));
        let forced = gate.closing(false, || {
            assert!(gate.closing(false, || ()).is_none());
            let gate = Arc::clone(&gate);
            std::thread::spawn(move || gate.closing(true, || ()))
        });
        assert!(forced.unwrap().join().unwrap().is_some());
    }

    #[test]
    fn closing_gives_way_to_open_readers_unless_it_is_forced() {
        let gate = SeriesGates::default().of(CollectionId(7));
        let (one, other) = (gate.reading(), gate.reading());
        assert!(gate.closing(false, || ()).is_none());
        assert!(gate.closing(true, || ()).is_some());
        drop(one);
        assert!(gate.closing(false, || ()).is_none());
        std::thread::spawn(move || drop(other)).join().unwrap();
        assert!(gate.closing(false, || ()).is_some());
    }
}
