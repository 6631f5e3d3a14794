//! Gives the space of overwritten and deleted rows back where they are a large part of what a merge would read
//! (docs/storage.md, "Deleted keys and space"). lsm-tree merges by the sizes of levels: a keyspace that fits into one
//! level keeps every version of its rows that was flushed, until four flushes have come together.
//!
//! The merges go in steps: each takes a few tables one level down, others can run beside it, and it stops between two of
//! them. Tables that overlap with no other one, as those of new documents, are moved and not written again.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quire_storage::{Result, Space};

use crate::space::hidden::{Hidden, estimate};
use crate::store::Store;
use crate::table::trees::of_space;

/// Fewer hidden bytes are left alone.
const HIDDEN_BYTES_MIN: u64 = 1 << 20;
/// Tables are merged when one part in `HIDDEN_PART` of the bytes that the merge reads is hidden.
const HIDDEN_PART: u64 = 4;
/// A memtable counts as changed when it has grown by this many bytes.
const GROWTH_BYTES: u64 = 1 << 20;
/// The pause between two estimates of a space.
const PAUSE: Duration = Duration::from_secs(10);
/// The merges of a space take at most one part in `REST` of the time.
const REST: u32 = 10;
/// The most steps for each table that there was.
const STEPS_PER_TABLE: usize = 8;
/// A keyspace of at most this size, in bytes, is merged as a whole when the steps leave much hidden.
const WHOLE_BYTES_MAX: u64 = 1 << 30;

/// What is known of one space.
#[derive(Default)]
struct Looks {
    /// The content at the last estimate: the newest table, the number of tables, the memtables in units of `GROWTH_BYTES`.
    content: (u64, usize, u64),
    not_before: Option<Instant>,
}

/// The looks at all spaces.
pub(crate) struct Settling {
    spaces: [Mutex<Looks>; 4],
    pause: Duration,
}

impl Default for Settling {
    fn default() -> Self {
        Self { spaces: Default::default(), pause: PAUSE }
    }
}

impl Settling {
    fn of(&self, space: Space) -> &Mutex<Looks> {
        of_space(&self.spaces, space)
    }

    /// Returns true if a space has changed since the last estimate and the pause after that is over.
    pub fn any_due(&self, store: &Store) -> bool {
        Space::ALL.into_iter().any(|space| self.is_due(space, store))
    }

    fn is_due(&self, space: Space, store: &Store) -> bool {
        let looks = self.of(space).lock();
        looks.not_before.is_none_or(|at| at <= Instant::now())
            && looks.content != content(store, space)
    }

    /// Estimates what is hidden in the spaces that are due, and merges where it is much. Stops between two steps if `stop`
    /// returns true.
    pub fn settle(&self, store: &Store, stop: &dyn Fn() -> bool) -> Result<()> {
        for space in Space::ALL {
            if stop() || !self.is_due(space, store) {
                continue;
            }
            let since = Instant::now();
            let settled = settle(store, space, stop);
            let mut looks = self.of(space).lock();
            looks.content = content(store, space);
            let rest = since.elapsed() * REST;
            looks.not_before = Some(Instant::now() + self.pause.max(rest));
            settled?;
        }
        Ok(())
    }
}

fn content(store: &Store, space: Space) -> (u64, usize, u64) {
    let view = store.view();
    let of_space = view.of(space);
    let newest = of_space.tables.tables().map(|table| table.id()).max();
    let memtables: u64 = of_space.memtables.iter().map(|memtable| memtable.bytes()).sum();
    (newest.unwrap_or(0), of_space.tables.tables().count(), memtables / GROWTH_BYTES)
}

/// Merges the tables of a space downwards if much is hidden.
fn settle(store: &Store, space: Space, stop: &dyn Fn() -> bool) -> Result<()> {
    let hidden = estimate(store.view().of(space))?;
    if !is_much(&hidden) {
        return Ok(());
    }
    if hidden.by_memtables > hidden.bytes / 2 {
        if !store.has_room_for(hidden.overlapping) {
            return Ok(());
        }
        store.flush(space)?;
    }
    let mut steps = STEPS_PER_TABLE * (1 + store.view().of(space).tables.tables().count());
    while steps > 0 && !stop() && store.settle_step(space)? {
        steps -= 1;
    }
    // lsm-tree does not merge a table downwards whose keys go beyond those of all tables below.
    let bytes = store.view().of(space).tables.bytes();
    let may_merge = !stop() && bytes <= WHOLE_BYTES_MAX && store.has_room_for(bytes);
    if may_merge && is_much(&estimate(store.view().of(space))?) {
        store.merge_all(space)?;
    }
    Ok(())
}

fn is_much(hidden: &Hidden) -> bool {
    hidden.bytes >= HIDDEN_BYTES_MIN
        && hidden.bytes.saturating_mul(HIDDEN_PART) >= hidden.overlapping
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LsmOptions;
    use crate::directory::disk_space::{DiskSpace, SpaceProbe};
    use crate::store::Running;
    use bytes::Bytes;
    use quire_storage::Op;
    use quire_storage::rng::Rng;
    use std::ops::Range;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    const KEYS: u64 = 12_000;

    struct Filled {
        running: Running,
        settling: Settling,
        random: Rng,
        available: Arc<AtomicU64>,
        _directory: tempfile::TempDir,
    }

    impl Filled {
        /// Returns a keyspace of 12 MB.
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let available = Arc::new(AtomicU64::new(1 << 40));
            let free = Arc::clone(&available);
            let probe = move |_: &Path| {
                let available_bytes = free.load(Ordering::Relaxed);
                Some(DiskSpace { available_bytes, total_bytes: 1 << 40 })
            };
            let space_probe: SpaceProbe = Arc::new(probe);
            let options = LsmOptions { space_probe, reserve_bytes: 0, ..LsmOptions::default() };
            let store = Store::open(directory.path(), &options, &Arc::default(), 0).unwrap();
            let running = Running::start(store, 1).unwrap();
            let settling = Settling { pause: Duration::ZERO, ..Settling::default() };
            let random = Rng::new(1);
            let mut filled = Filled { running, settling, random, available, _directory: directory };
            filled.put(0..KEYS);
            filled.flush();
            filled
        }

        fn put(&mut self, keys: impl Iterator<Item = u64>) {
            let random = &mut self.random;
            let op = |number| {
                let value: Vec<u8> =
                    (0..128).flat_map(|_| random.next_u64().to_be_bytes()).collect();
                op(number, Some(value.into()))
            };
            self.running.store().write(keys.map(op).collect(), false).unwrap();
        }

        fn flush(&self) {
            self.running.store().flush(Space::Doc).unwrap();
        }

        /// Settles, and returns the size of the tables in parts of a hundred of what it was at first.
        fn settled(&self, first: u64) -> u64 {
            self.end_pauses();
            self.settling.settle(self.running.store(), &|| false).unwrap();
            self.bytes() * 100 / first
        }

        fn end_pauses(&self) {
            for space in Space::ALL {
                self.settling.of(space).lock().not_before = None;
            }
        }

        fn bytes(&self) -> u64 {
            self.running.store().view().of(Space::Doc).tables.bytes()
        }

        fn tables(&self) -> Vec<u64> {
            let view = self.running.store().view();
            view.of(Space::Doc).tables.tables().map(|table| table.id()).collect()
        }
    }

    fn op(number: u64, value: Option<Bytes>) -> Op {
        Op { space: Space::Doc, key: Bytes::copy_from_slice(&number.to_be_bytes()), value }
    }

    fn every(step: usize) -> impl Iterator<Item = u64> {
        Range { start: 0, end: KEYS }.step_by(step)
    }

    #[test]
    fn tables_with_many_overwritten_rows_are_merged() {
        let mut filled = Filled::new();
        let first = filled.bytes();
        assert!(first > 10 << 20);
        filled.put(every(8));
        filled.flush();
        assert!(filled.settled(first) > 110, "a ninth is hidden");
        filled.end_pauses();
        assert!(!filled.settling.any_due(filled.running.store()), "nothing has changed");
        filled.put(every(2));
        filled.flush();
        assert!(filled.settling.any_due(filled.running.store()));
        let settled = filled.settled(first);
        assert!((99..=101).contains(&settled), "{settled}");
    }

    #[test]
    fn rows_that_a_memtable_overwrites_count() {
        let mut filled = Filled::new();
        let first = filled.bytes();
        for _ in 0..4 {
            filled.put(every(2));
        }
        assert!((99..=101).contains(&filled.settled(first)));
        assert!(filled.running.store().is_flushed(), "the memtable was written to a table");
    }

    /// Tombstones are short, so that new rows beside them would cover them up.
    #[test]
    fn tombstones_beside_many_new_rows_count() {
        let mut filled = Filled::new();
        let first = filled.bytes();
        let deletes = every(2).map(|number| op(number, None)).collect();
        filled.running.store().write(deletes, false).unwrap();
        filled.put(KEYS..KEYS + KEYS / 2);
        filled.flush();
        assert!(filled.bytes() * 100 / first > 140);
        assert!((99..=101).contains(&filled.settled(first)));
    }

    #[test]
    fn new_rows_are_not_merged() {
        let mut filled = Filled::new();
        for number in 1..4 {
            filled.put(KEYS * number..KEYS * (number + 1));
            filled.flush();
        }
        let before = filled.tables();
        filled.settled(1);
        assert_eq!(filled.tables(), before);
        // Also where they lie between others.
        let even = |number: u64| number << 32;
        filled.put((0..KEYS).map(even));
        filled.flush();
        let before = filled.tables();
        filled.put((1..KEYS).map(|number| even(number) - 1));
        filled.settled(1);
        assert_eq!(filled.tables(), before);
    }

    #[test]
    fn nothing_is_merged_without_room_or_after_a_stop() {
        let mut filled = Filled::new();
        let first = filled.bytes();
        filled.put(every(2));
        filled.flush();
        filled.available.store(first / 4, Ordering::Relaxed);
        assert!(filled.settled(first) > 140);
        filled.available.store(1 << 40, Ordering::Relaxed);
        filled.running.store().look_for_room();
        filled.settling.of(Space::Doc).lock().content = Default::default();
        filled.settling.settle(filled.running.store(), &|| true).unwrap();
        assert!(filled.bytes() * 100 / first > 140);
        filled.settling.of(Space::Doc).lock().not_before = None;
        assert!((99..=101).contains(&filled.settled(first)));
    }
}
