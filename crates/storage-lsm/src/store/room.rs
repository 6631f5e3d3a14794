//! What the store does on a nearly full disk: it gives the zeros of the log back, flushes what keeps
//! large log files, and lets flushes without room wait.

use std::sync::atomic::Ordering;

use quire_storage::{Result, Space};

use super::Store;

/// The bytes of the log that are kept on a nearly full disk.
const SPARED_LOG_BYTES: u64 = 8 << 20;

impl Store {
    /// Says whether commits are written from now on.
    pub fn take_commits(&self, takes: bool) {
        self.takes_commits.store(takes, Ordering::Relaxed);
        self.announce(|work| work.no_room_for = None);
    }

    /// Measures the free space, after zeros of the log were given back if it is not enough. Commits
    /// that would wait for a flush for which there is no room are refused. Flushes go on if there is
    /// room again.
    pub fn look_for_room(&self) {
        let view = self.view();
        self.space.look(view.memtable_bytes(), || self.log.give_back_zeros());
        let no_room_for = self.work.lock().no_room_for;
        let Some(bytes) = no_room_for else { return };
        if self.fits(bytes) {
            self.announce(|work| work.no_room_for = None);
        } else if view.is_behind() {
            self.space.close();
        }
    }

    /// Returns true if a table of `bytes` bytes leaves the space that is kept for commits.
    pub(super) fn fits(&self, bytes: u64) -> bool {
        self.with_zeros(|| self.space.fits(bytes))
    }

    /// Returns true if `bytes` are free in addition to the reserve.
    pub fn has_room_for(&self, bytes: u64) -> bool {
        self.with_zeros(|| self.space.has_room_for(bytes))
    }

    /// Asks again after zeros of the log were given back, if there is no room.
    fn with_zeros(&self, has_room: impl Fn() -> bool) -> bool {
        has_room() || {
            self.log.give_back_zeros();
            has_room()
        }
    }

    /// Lets the background threads flush what keeps files of the log, if these are large and there
    /// is room for the tables. Without new writes nothing else would flush it.
    pub fn free_log_soon(&self) -> Result<()> {
        let view = self.view();
        let first = view.memtables().map(|memtable| memtable.first_log()).min();
        let is_small = self.log.current_bytes() < SPARED_LOG_BYTES;
        let is_needed = first.is_some_and(|first| first < self.log.current());
        if (is_small && !is_needed) || !self.fits(view.memtable_bytes()) {
            return Ok(());
        }
        {
            let _writing = self.writing.lock();
            self.log.end_file()?;
        }
        for space in Space::ALL {
            self.seal(space, |_| true);
        }
        Ok(())
    }
}
