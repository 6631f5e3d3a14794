//! The background threads: one flushes and cares for the log, the others merge and fill log files.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use quire_storage::{Result, Space, StorageError};

use super::Store;
use crate::table::trees::of_space;

/// The time after which a write that has met a full disk is tried again.
pub(super) const PAUSE: Duration = Duration::from_secs(1);
/// How often in a row the pause of merges doubles, up to about a minute.
const DOUBLINGS_MAX: u32 = 6;

/// What the background threads have to do.
pub(super) struct Work {
    /// The spaces whose tables may need a merge.
    pub unmerged: [bool; 4],
    /// The next log file must be made ready, or a full one synced.
    pub log_wants_care: bool,
    /// The next log file must be filled.
    pub log_wants_filled: bool,
    /// What the oldest memtable needs, if the disk has no room for its table. No other is flushed
    /// meanwhile.
    pub no_room_to_flush: Option<Need>,
    /// What a merge needs for which the disk has no room. No other merge begins meanwhile.
    pub no_room_to_merge: Option<Need>,
    /// The number of merges in a row that have met a full disk.
    pub failed_merges: u32,
    pub stop: bool,
}

impl Work {
    pub fn new() -> Self {
        Self {
            unmerged: [true; 4],
            log_wants_care: false,
            log_wants_filled: false,
            no_room_to_flush: None,
            no_room_to_merge: None,
            failed_merges: 0,
            stop: false,
        }
    }
}

/// The space that a flush or a merge waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Need {
    pub bytes: u64,
    pub not_before: Instant,
}

impl Need {
    pub fn of(bytes: u64) -> Self {
        Self { bytes, not_before: Instant::now() }
    }

    /// The need of a write that has met a full disk. The disk may have less room than it says, for
    /// example by a quota, so the next attempt is made after a pause.
    pub fn after(bytes: u64, pause: Duration) -> Self {
        Self { bytes, not_before: Instant::now() + pause }
    }
}

/// A task of a background thread.
#[derive(Debug)]
enum Task {
    CareForLog,
    FillLog,
    Flush(Space),
    Merge(Space),
}

impl Store {
    /// Waits for a task that a thread of this kind does; `None` when the store stops.
    fn next_task(&self, flushes: bool) -> Option<Task> {
        let mut work = self.work.lock();
        loop {
            if work.stop {
                return None;
            }
            if flushes && std::mem::take(&mut work.log_wants_care) {
                return Some(Task::CareForLog);
            }
            if !flushes && std::mem::take(&mut work.log_wants_filled) {
                return Some(Task::FillLog);
            }
            let found = match flushes {
                true if work.no_room_to_flush.is_some() => None,
                true => self.next_flush(),
                false if work.no_room_to_merge.is_some() => None,
                false => self.next_merge(&mut work),
            };
            if found.is_some() {
                return found;
            }
            self.changed.wait(&mut work);
        }
    }

    /// Returns the space with the memtable that was sealed first.
    fn next_flush(&self) -> Option<Task> {
        let view = self.view();
        let sealed = Space::ALL.into_iter().filter_map(|space| {
            let oldest = view.of(space).sealed().last()?;
            Some((oldest.number(), space))
        });
        sealed.min_by_key(|(number, _)| *number).map(|(_, space)| Task::Flush(space))
    }

    /// Returns the space, among those whose tables may need a merge, with the most flushed tables.
    fn next_merge(&self, work: &mut Work) -> Option<Task> {
        let view = self.view();
        let spaces = Space::ALL.into_iter().filter(|space| *of_space(&work.unmerged, *space));
        let space = spaces.max_by_key(|space| view.of(*space).tables.fresh_runs)?;
        if let Some(unmerged) = work.unmerged.get_mut(space.index()) {
            *unmerged = false;
        }
        Some(Task::Merge(space))
    }

    /// Does the work of one background thread until the store stops: one thread flushes and cares
    /// for the log, the others merge and fill log files.
    pub(super) fn work(&self, flushes: bool) {
        while let Some(task) = self.next_task(flushes) {
            // lsm-tree asserts some properties of the data that it reads.
            let done = catch_unwind(AssertUnwindSafe(|| self.run(&task)));
            let panicked = || StorageError::Io(format!("a background task failed: {task:?}"));
            if let Err(error) = done.unwrap_or_else(|_| Err(panicked())) {
                let _ = self.failed.set(error);
                self.announce(|_| {});
                return;
            }
        }
    }

    fn run(&self, task: &Task) -> Result<()> {
        match *task {
            Task::CareForLog => {
                self.log.prepare();
                self.log.sync()
            }
            Task::FillLog => {
                self.log.fill_next(|| self.work.lock().stop || !self.space.has_room_for(0));
                Ok(())
            }
            Task::Flush(space) => self.flush_oldest(space),
            Task::Merge(space) => self.merge(space),
        }
    }

    /// Merges tables of a space. If the disk has no room for it, merges wait until it has. What a merge
    /// has written that met a full disk is removed by the next open.
    fn merge(&self, space: Space) -> Result<()> {
        // The bytes that it needs, and whether they were there at its beginning.
        let needed = Cell::new((0, true));
        let has_room = |bytes| {
            let has_room = self.spares_last(bytes);
            needed.set((bytes, has_room));
            has_room
        };
        match self.trees.compact(space, &has_room) {
            Ok(is_changed) => {
                self.work.lock().failed_merges = 0;
                if is_changed { self.publish_tables(space, None) } else { Ok(()) }
            }
            Err(StorageError::Full) => {
                let (bytes, has_begun) = needed.get();
                self.announce(|work| {
                    work.no_room_to_merge = Some(if has_begun {
                        // Each leaves its files until the next open.
                        let pause = PAUSE * (1 << work.failed_merges.min(DOUBLINGS_MAX));
                        work.failed_merges += 1;
                        Need::after(bytes, pause)
                    } else {
                        Need::of(bytes)
                    });
                    if let Some(unmerged) = work.unmerged.get_mut(space.index()) {
                        *unmerged = true;
                    }
                });
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}
