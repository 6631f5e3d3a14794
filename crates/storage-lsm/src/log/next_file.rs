//! Makes the next file of the log ready before the writer needs it.
//!
//! While commits wait for many small syncs, the next file is *filled*: zeros are written and synced
//! over its whole length before it is used. A sync of records in it writes only these. In new blocks
//! the file system has to write its own record of them too (docs/adr/0023-filled-log-files.md).

use std::fs::File;
use std::io::{Seek, Write};
use std::sync::atomic::Ordering;

use quire_storage::Result;

use super::{AHEAD_BYTES, Log, Ready, Writing, open};

/// The next file is filled only if a sync of the file in use was for at most this many bytes on
/// average. For larger syncs, filling costs more than it saves.
const BYTES_OF_SYNC_MAX: u64 = 64 << 10;
/// The bytes of zeros in one write. After larger writes the page cache keeps the file in larger
/// units, in which a small write and its sync take more time.
const ZEROS_BYTES: usize = 16 << 10;
/// The bytes of zeros between two syncs. With more, the syncs of commits would wait longer.
const UNSYNCED_BYTES_MAX: u64 = 1 << 20;

impl Log {
    /// Makes the next file ready, if the one in use is half full. One that is to be filled is left to
    /// [`fill_next`](Self::fill_next) until it is late. A failure is met again, and reported, by the
    /// write that needs the file.
    pub fn prepare(&self) {
        let is_due = |writing: &Writing| {
            let is_half = writing.bytes >= self.file_bytes / 2;
            is_half && (writing.bytes >= self.late_bytes() || !self.is_synced_often(writing))
        };
        let Some(number) = self.begin_making(is_due) else { return };
        match self.open_made(number) {
            Ok(Some(file)) => self.offer(number, file, false),
            _ => self.end_making(number),
        }
    }

    /// Returns true if the next file must be filled.
    pub fn wants_filled(&self) -> bool {
        let writing = self.writing.lock();
        writing.next.is_none() && self.is_filling_due(&writing)
    }

    /// Makes the next file ready and fills it, if that is wanted, until `stop` returns true.
    pub fn fill_next(&self, stop: impl Fn() -> bool) {
        let is_due = |writing: &Writing| self.is_filling_due(writing);
        let Some(number) = self.begin_making(is_due) else { return };
        let made = self.open_made(number);
        let filled = made.and_then(|made| match made {
            Some(file) => Ok((self.write_zeros(number, &file, stop)?, Some(file))),
            None => Ok((false, None)),
        });
        match filled {
            Ok((true, Some(file))) => self.offer(number, file, true),
            // Whoever needs the file makes it as long as it should be.
            Ok(_) => self.end_making(number),
            Err(_) => {
                // The disk may be full. This is tried again after as many syncs as before.
                self.end_making(number);
                self.syncs.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Returns the number of the next file if it `is_due` and no other thread makes it ready.
    fn begin_making(&self, is_due: impl Fn(&Writing) -> bool) -> Option<u64> {
        let writing = self.writing.lock();
        let mut making = self.making.lock();
        if writing.next.is_some() || making.is_some() || !is_due(&writing) {
            return None;
        }
        *making = Some(writing.number + 1);
        *making
    }

    /// Opens the file that is made ready; `None` if the writer has begun it itself.
    fn open_made(&self, number: u64) -> Result<Option<File>> {
        let making = self.making.lock();
        if *making == Some(number) { open(&self.data, number).map(Some) } else { Ok(None) }
    }

    fn end_making(&self, number: u64) {
        self.making.lock().take_if(|making| *making == number);
    }

    /// Writes zeros to the file that is made ready and syncs them. Returns false if it was stopped, or
    /// if the writer has begun the file itself. After a failure the file has no zeros.
    fn write_zeros(&self, number: u64, mut file: &File, stop: impl Fn() -> bool) -> Result<bool> {
        let (zeros, mut written) = ([0; ZEROS_BYTES], 0);
        while written < self.file_bytes {
            {
                let making = self.making.lock();
                if *making != Some(number) || stop() {
                    return Ok(false);
                }
                if let Err(error) = file.write_all(&zeros) {
                    file.set_len(0)?;
                    return Err(error.into());
                }
            }
            written += ZEROS_BYTES as u64;
            if written % UNSYNCED_BYTES_MAX == 0 || written >= self.file_bytes {
                file.sync_data()?;
            }
        }
        file.rewind()?;
        Ok(true)
    }

    /// Returns true if the next file is worth the time to fill it, and it is time to do so: at once if
    /// the file in use is not filled, otherwise when that is half full. Files that end early do not
    /// lead to much more zeros than records.
    fn is_filling_due(&self, writing: &Writing) -> bool {
        let is_time = !writing.is_filled || writing.bytes >= self.file_bytes / 2;
        is_time && writing.since_filled >= self.file_bytes / 4 && self.is_synced_often(writing)
    }

    /// Returns true if commits waited for many small syncs of the file in use.
    fn is_synced_often(&self, writing: &Writing) -> bool {
        let syncs = self.syncs.load(Ordering::Relaxed);
        syncs >= self.fill_syncs.max(writing.bytes / BYTES_OF_SYNC_MAX)
    }

    /// Returns the bytes in a file from which on the next one must be ready soon.
    pub(super) fn late_bytes(&self) -> u64 {
        self.file_bytes / 8 * 7
    }

    /// Keeps the next file until it is needed, unless the writer has begun it itself meanwhile:
    /// then it may have records, and its length must stay. A filled file is used at once if the one
    /// in use is not filled.
    fn offer(&self, number: u64, file: File, is_filled: bool) {
        let mut writing = self.writing.lock();
        if self.making.lock().take_if(|making| *making == number).is_none() {
            return;
        }
        let length = if is_filled { self.file_bytes } else { AHEAD_BYTES };
        if file.set_len(length).is_err() {
            return;
        }
        writing.next = Some(Ready { file, length, is_filled });
        if is_filled {
            writing.since_filled = 0;
            if !writing.is_filled {
                // It cannot fail: the next file is there.
                let _ = self.turn(&mut writing);
            }
        }
    }

    /// Gives the space of zeros back to a nearly full disk.
    pub fn give_back_zeros(&self) -> Result<()> {
        let mut writing = self.writing.lock();
        *self.making.lock() = None;
        if let Some(next) = writing.next.as_mut().filter(|next| next.is_filled) {
            self.noted(next.file.set_len(AHEAD_BYTES))?;
            (next.length, next.is_filled) = (AHEAD_BYTES, false);
        }
        if writing.is_filled {
            writing.length = (writing.bytes / AHEAD_BYTES + 1) * AHEAD_BYTES;
            writing.is_filled = false;
            self.noted(writing.file.set_len(writing.length))?;
        }
        Ok(())
    }

    /// Counts a sync that a commit waited for.
    pub fn count_sync(&self) {
        self.syncs.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::journal;
    use crate::log::Appended;
    use crate::log::tests::{op, options};

    /// Writes and syncs a record, as a commit does that waits for the sync.
    fn commit(log: &Log, bytes: usize, seqno: u64) -> Appended {
        let appended = log.append(&op(bytes), seqno).unwrap();
        log.count_sync();
        log.sync().unwrap();
        appended
    }

    fn records(directory: &Path, number: u64) -> usize {
        let found = journal::inspect(&journal::path(directory, number)).unwrap();
        assert_eq!(found.damaged_from, None);
        found.intact.len()
    }

    /// The writer does not wait for the thread that makes the next file ready.
    #[test]
    fn a_file_that_is_made_ready_too_late_keeps_its_records() {
        let directory = tempfile::tempdir().unwrap();
        let log = Log::begin(directory.path(), 1, &options(8 << 20)).unwrap();
        log.append(&op(5 << 20), 1).unwrap();
        let number = log.current() + 1;
        for seqno in 2..=4 {
            log.append(&op(3 << 20), seqno).unwrap();
        }
        assert_eq!(log.current(), number);
        log.offer(number, open(directory.path(), number).unwrap(), false);
        let found = journal::inspect(&journal::path(directory.path(), number)).unwrap();
        assert_eq!((found.intact.len(), found.damaged_from), (2, None));
        assert!(log.writing.lock().next.is_none());
    }

    #[test]
    fn after_many_small_syncs_files_are_filled_before_they_are_used() {
        let directory = tempfile::tempdir().unwrap();
        let length = |number| journal::path(directory.path(), number).metadata().unwrap().len();
        let log = Log::begin(directory.path(), 1, &options(4 << 20)).unwrap();
        for seqno in 1..=8 {
            assert!(!log.wants_filled());
            commit(&log, 1000, seqno);
        }
        assert!(log.wants_filled());
        log.prepare();
        assert!(log.writing.lock().next.is_none(), "it is filled instead");
        log.fill_next(|| true);
        assert_eq!((log.current(), *log.making.lock()), (1, None), "it was stopped");
        log.fill_next(|| false);
        assert_eq!((log.current(), length(2)), (2, 4 << 20), "it is used at once");
        // The next one is filled when half of this one is used.
        for seqno in 9..=30 {
            assert!(!log.wants_filled());
            commit(&log, 60_000, seqno);
        }
        commit(&log, 1 << 20, 31);
        assert!(!log.wants_filled(), "the syncs are for too many bytes");
        (0..100).for_each(|_| log.count_sync());
        assert!(log.wants_filled());
        log.fill_next(|| false);
        assert!(!log.wants_filled());
        assert_eq!((log.current(), length(2), length(3)), (2, 4 << 20, 4 << 20));
        commit(&log, 3 << 20, 32);
        assert_eq!((log.current(), log.writing.lock().is_filled), (3, true));
        commit(&log, 1 << 20, 33);
        assert_eq!([1, 2, 3].map(|number| records(directory.path(), number)), [8, 24, 1]);
        assert_eq!(length(3), 4 << 20);
    }

    #[test]
    fn what_is_not_filled_in_time_is_made_as_usual() {
        let directory = tempfile::tempdir().unwrap();
        let log = Log::begin(directory.path(), 1, &options(4 << 20)).unwrap();
        (0..1000).for_each(|_| log.count_sync());
        log.append(&op(3 << 20), 1).unwrap();
        log.prepare();
        assert!(log.writing.lock().next.is_none() && log.wants_filled());
        assert!(log.append(&op(600 << 10), 2).unwrap().wants_care);
        log.prepare();
        assert!(log.writing.lock().next.is_some() && !log.wants_filled());
    }

    #[test]
    fn zeros_are_given_back_and_not_written_again_and_again() {
        let directory = tempfile::tempdir().unwrap();
        let length = |number| journal::path(directory.path(), number).metadata().unwrap().len();
        let log = Log::begin(directory.path(), 1, &options(16 << 20)).unwrap();
        (0..1000).for_each(|_| log.count_sync());
        log.fill_next(|| false);
        log.append(&op(9 << 20), 1).unwrap();
        (0..1000).for_each(|_| log.count_sync());
        log.fill_next(|| false);
        assert_eq!([2, 3].map(length), [16 << 20, 16 << 20]);
        log.give_back_zeros().unwrap();
        assert_eq!([2, 3].map(length), [10 << 20, AHEAD_BYTES]);
        log.end_file().unwrap();
        for seqno in 2..=5 {
            (0..1000).for_each(|_| log.count_sync());
            assert!(!log.wants_filled(), "few records were written since the last time");
            log.append(&op(1 << 20), seqno).unwrap();
        }
        assert!(log.wants_filled());
        assert_eq!([2, 3].map(|number| records(directory.path(), number)), [1, 4]);
    }

    /// Otherwise zeros would be written over records.
    #[test]
    fn a_file_that_the_writer_needs_is_not_filled_any_more() {
        let directory = tempfile::tempdir().unwrap();
        let log = Log::begin(directory.path(), 1, &options(1 << 20)).unwrap();
        (0..100).for_each(|_| log.count_sync());
        let (begun, begins) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                log.fill_next(|| {
                    let _ = begun.send(());
                    std::thread::sleep(std::time::Duration::from_millis(2));
                    false
                });
            });
            begins.recv().unwrap();
            for seqno in 1..=6 {
                log.append(&op(300 << 10), seqno).unwrap();
            }
        });
        assert_eq!((log.current(), *log.making.lock()), (2, None));
        assert_eq!([1, 2].map(|number| records(directory.path(), number)), [4, 2]);
    }

    #[test]
    fn a_file_that_cannot_be_filled_is_not_tried_again_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let log = Log::begin(directory.path(), 1, &options(1 << 20)).unwrap();
        std::fs::create_dir(journal::path(directory.path(), 2)).unwrap();
        for seqno in 1..=8 {
            commit(&log, 100, seqno);
        }
        assert!(log.wants_filled());
        log.fill_next(|| false);
        assert!(!log.wants_filled());
        assert_eq!((log.current(), *log.making.lock()), (1, None));
        log.check().unwrap();
    }
}
