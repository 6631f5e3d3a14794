//! The gate of a collection between closing and the writes that need points as records, and the mark by which
//! readers know that points have moved between records and buckets.
//!
//! A reader that takes a newer view in the middle of its scan would miss a point that went from the records, which it
//! still has to read, to the buckets, which it has read. It asks `Store::moved_since` after it took the newer view, and
//! stays at the older state if points may have moved between the two.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use quire_catalog::CollectionId;
use quire_storage::Version;

/// The gates of all collections in which points have moved or were about to, since the store was opened.
#[derive(Default)]
pub(crate) struct SeriesGates(Mutex<HashMap<CollectionId, Arc<SeriesGate>>>);

/// The gate of one collection.
#[derive(Default)]
pub(crate) struct SeriesGate {
    /// Held for writing while points are closed, and for reading while a statement needs them as records.
    turn: RwLock<()>,
    moves: Mutex<Moves>,
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
    /// Runs `work` while no statement needs points as records; `None` if one does now.
    pub fn closing<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let _turn = self.turn.try_write()?;
        Some(work())
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
            assert!(gate.closing(|| ()).is_none());
            writes.run(|| assert!(gate.closing(|| ()).is_none()));
        });
        assert!(gate.closing(|| ()).is_some());
    }
}
