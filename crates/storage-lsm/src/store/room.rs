//! What the store does on a nearly full disk: it gives the zeros of the log back, flushes what keeps
//! large log files, and lets flushes and merges without room wait.

use std::time::Instant;

use quire_storage::{Result, Space, StorageError};

use super::Store;
use super::background::{Need, PAUSE};

/// The bytes of the log that are kept on a nearly full disk.
const SPARED_LOG_BYTES: u64 = 8 << 20;

impl Store {
    /// Measures the free space, after zeros of the log were given back if it is not enough. Flushes
    /// and merges that had no room go on if there is room again.
    pub fn look_for_room(&self) {
        let view = self.view();
        self.space.look(view.memtable_bytes(), || self.log.give_back_zeros());
        let (to_flush, to_merge) = {
            let work = self.work.lock();
            (work.no_room_to_flush, work.no_room_to_merge)
        };
        let is_over = |need: &Need| need.not_before <= Instant::now();
        let to_flush = to_flush.filter(|need| is_over(need) && self.is_free(need.bytes));
        let to_merge = to_merge.filter(|need| is_over(need) && self.spares_last(need.bytes));
        if to_flush.is_none() && to_merge.is_none() {
            return;
        }
        self.announce(|work| {
            // A worker may have met a full disk again meanwhile.
            work.no_room_to_flush.take_if(|need| Some(*need) == to_flush);
            work.no_room_to_merge.take_if(|need| Some(*need) == to_merge);
        });
    }

    /// Lets a waiting flush go on at once, without the rest of its pause, if the disk has room for it
    /// now. Returns false if it has none.
    pub(super) fn resume_flush(&self) -> bool {
        let waiting = self.work.lock().no_room_to_flush;
        let Some(waiting) = waiting else { return true };
        if !self.is_free(waiting.bytes) {
            return false;
        }
        self.announce(|work| {
            work.no_room_to_flush.take_if(|need| *need == waiting);
        });
        true
    }

    /// Returns true if the background threads are behind until the disk has more room.
    pub fn is_stuck(&self) -> bool {
        let work = self.work.lock();
        let merges_wait = work.no_room_to_merge.is_some() && !self.trees.is_merging();
        work.no_room_to_flush.is_some() || merges_wait
    }

    /// Waits until flushes and merges are no longer behind, or have no room: then memory has at most
    /// what the log has.
    pub(super) fn wait_for_background(&self) -> Result<()> {
        let mut work = self.work.lock();
        while self.view().is_behind()
            && work.no_room_to_flush.is_none()
            && work.no_room_to_merge.is_none()
        {
            self.check()?;
            if work.stop {
                return Err(StorageError::Closed);
            }
            self.changed.wait(&mut work);
        }
        self.check()
    }

    pub(super) fn wait_for_room(&self, need: Need) {
        self.announce(|work| work.no_room_to_flush = Some(need));
    }

    /// Calls `write`, and again after each time that it meets a full disk, when there is room. Returns
    /// false if the store stops before.
    pub(super) fn write_with_room(&self, write: impl Fn() -> Result<()>) -> Result<bool> {
        loop {
            match write() {
                Err(StorageError::Full) => self.wait_for_room(Need::after(0, PAUSE)),
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

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use bytes::Bytes;
    use quire_storage::Op;

    use super::*;
    use crate::LsmOptions;
    use crate::directory::disk_space::{DiskSpace, SpaceProbe};
    use crate::store::Running;
    use crate::table::dropped::DroppedRanges;

    /// Returns a store on a disk with `available` bytes, of which it keeps 16 MB.
    fn open(directory: &Path, available: &Arc<AtomicU64>) -> Running {
        let available = Arc::clone(available);
        let space_probe: SpaceProbe = Arc::new(move |_: &Path| {
            let available_bytes = available.load(Ordering::Relaxed);
            Some(DiskSpace { available_bytes, total_bytes: 1 << 40 })
        });
        let options = LsmOptions { space_probe, reserve_bytes: 100 << 20, ..LsmOptions::default() };
        let store = Store::open(directory, &options, &Arc::new(DroppedRanges::default()), 1);
        Running::start(store.unwrap(), 1).unwrap()
    }

    fn op(space: Space, number: u64, bytes: usize) -> Op {
        let mut rng = quire_storage::rng::Rng::new(number);
        let value: Vec<u8> = (0..bytes / 8).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
        let key = Bytes::copy_from_slice(&(number % 4).to_be_bytes());
        Op { space, key, value: Some(value.into()) }
    }

    fn eventually(is_so: impl Fn() -> bool) {
        let until = Instant::now() + Duration::from_secs(20);
        while !is_so() {
            assert!(Instant::now() < until, "it does not happen");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn a_replay_on_a_full_disk_ends_and_is_flushed_later() {
        let directory = tempfile::tempdir().unwrap();
        let available = Arc::new(AtomicU64::new(1 << 20));
        let running = open(directory.path(), &available);
        let store = running.store();
        for seqno in 1..=5 {
            store.restore(vec![op(Space::Idx, seqno, 18 << 20)], seqno, 0).unwrap();
        }
        assert!(store.view().is_behind());
        assert_eq!(store.flush(Space::Idx), Err(StorageError::Full));
        available.store(1 << 40, Ordering::Relaxed);
        store.flush(Space::Idx).unwrap();
        assert!(store.is_flushed() && !store.is_stuck());
    }

    #[test]
    fn a_merge_waits_for_room() {
        let directory = tempfile::tempdir().unwrap();
        let available = Arc::new(AtomicU64::new(20 << 20));
        let running = open(directory.path(), &available);
        let store = running.store();
        for number in 0..24 {
            store.write(vec![op(Space::Doc, number, 1 << 20)], false).unwrap();
            if number % 4 == 3 {
                store.flush(Space::Doc).unwrap();
            }
        }
        eventually(|| store.is_stuck());
        let fresh_runs = || store.view().fresh_runs();
        assert!(fresh_runs() >= 4, "{}", fresh_runs());
        store.look_for_room();
        assert!(store.is_stuck());
        available.store(60 << 20, Ordering::Relaxed);
        eventually(|| {
            store.look_for_room();
            fresh_runs() < 4 && !store.is_stuck()
        });
    }
}
