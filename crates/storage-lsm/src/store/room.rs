//! What the store does on a nearly full disk: it gives the zeros of the log back, flushes what keeps
//! large log files, and lets flushes and merges without room wait.

use std::time::Instant;

use quire_storage::backend::Room;
use quire_storage::{Result, Space, StorageError};

use super::Store;
use super::background::Need;

/// The bytes of the log that are kept on a nearly full disk.
const SPARED_LOG_BYTES: u64 = 8 << 20;

impl Store {
    /// Measures the free space, after zeros of the log were given back if it is not enough. Flushes
    /// and merges that had no room go on if there is room again. Until then, commits that would wait
    /// for them are refused.
    pub fn look_for_room(&self) {
        let view = self.view();
        self.space.look(view.memtable_bytes(), || self.log.give_back_zeros());
        let (to_flush, to_merge) = {
            let work = self.work.lock();
            (work.no_room_to_flush, work.no_room_to_merge)
        };
        if to_flush.is_none() && to_merge.is_none() {
            return;
        }
        let is_waiting = |need: Need| need.not_before > Instant::now() || !self.is_free(need.bytes);
        let to_flush = to_flush.filter(|need| is_waiting(*need));
        let has_reserve = self.space.room() == Room::Enough;
        let to_merge = to_merge.filter(|bytes| !has_reserve && !self.space.spares_last(*bytes));
        self.announce(|work| {
            work.no_room_to_flush = to_flush;
            work.no_room_to_merge = to_merge;
        });
        if (to_flush.is_some() || to_merge.is_some()) && view.is_behind() {
            self.space.close();
        }
    }

    pub(super) fn wait_for_room(&self, need: Need) {
        self.announce(|work| work.no_room_to_flush = Some(need));
    }

    /// Calls `write`, and again after each time that it meets a full disk, when there is room. Returns
    /// false if the store stops before.
    pub(super) fn write_with_room(&self, write: impl Fn() -> Result<()>) -> Result<bool> {
        loop {
            match write() {
                Err(StorageError::Full) => self.wait_for_room(Need::after_failure(0)),
                written => return written.map(|()| true),
            }
            let mut work = self.work.lock();
            while work.no_room_to_flush.is_some() && !work.stop {
                self.changed.wait(&mut work);
            }
            if work.stop {
                return Ok(false);
            }
        }
    }

    /// Returns true if `bytes` are free.
    pub(super) fn is_free(&self, bytes: u64) -> bool {
        self.with_zeros(|| self.space.is_free(bytes))
    }

    /// Returns true if `bytes` are free in addition to the space that is kept for deletes.
    pub(super) fn spares_last(&self, bytes: u64) -> bool {
        self.with_zeros(|| self.space.spares_last(bytes))
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
        let has_room = self.work.lock().no_room_to_flush.is_none();
        if (is_small && !is_needed) || !has_room || !self.is_free(view.memtable_bytes()) {
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
