//! Makes the next file of the log ready before the writer needs it.
//!
//! While commits wait for many small syncs, the next file is *filled*: zeros are written and synced
//! over its whole length before it is used. A sync of records in it writes only these. In new blocks
//! the file system has to write its own record of them too (docs/adr/0023-filled-log-files.md).

use std::fs::File;
use std::io::{Seek, Write};
use std::sync::atomic::Ordering;

use quire_storage::Result;

use super::{AHEAD_BYTES, Claim, Log, Ready, Writing, ahead_of, open};
use crate::log::journal;

/// The next file is filled only if a sync of the file in use was for at most this many bytes on
/// average. For larger syncs, filling costs more than it saves.
const BYTES_OF_SYNC_MAX: u64 = 64 << 10;
/// The bytes of zeros in one write. After larger writes the page cache keeps the file in larger
/// units, in which a small write and its sync take more time.
const ZEROS_BYTES: usize = 16 << 10;
/// The bytes of zeros between two syncs. With more, the syncs of commits would wait longer.
const UNSYNCED_BYTES_MAX: u64 = 1 << 20;

impl Log {
    /// Creates the next file once the file in use is half full. A file that should be filled is left
    /// to [`fill_next`](Self::fill_next); it is created here, without zeros, only when the file in use
    /// is seven eighths full. An error is ignored: the write that needs the file meets it again and
    /// reports it.
    pub fn prepare(&self) {
        let Some(claim) = self.claim(false) else { return };
        match self.open_claimed(claim) {
            Ok(Some(file)) => self.offer(claim, file),
            _ => self.release(claim),
        }
    }

    /// Returns true if the next file should be filled and no thread is preparing it.
    pub fn wants_filled(&self) -> bool {
        let writing = self.writing.lock();
        let is_wanted = writing.next.is_none() && self.is_filling_due(&writing);
        is_wanted && self.making.try_lock().is_some_and(|making| making.is_none())
    }

    /// Creates the next file and fills it with zeros, if that is due. Gives up when `stop` returns
    /// true.
    pub fn fill_next(&self, stop: impl Fn() -> bool) {
        let Some(claim) = self.claim(true) else { return };
        match self.open_filled(claim, stop) {
            Ok(Some(file)) => self.offer(claim, file),
            // The write that needs the file creates it.
            _ => self.release(claim),
        }
    }

    /// Claims the preparation of the next file, with zeros if `fills`. `None` if it is not due, or if
    /// another thread is preparing the file.
    fn claim(&self, fills: bool) -> Option<Claim> {
        let mut writing = self.writing.lock();
        let is_due = match fills {
            true => self.is_filling_due(&writing),
            false => self.is_next_due(&writing),
        };
        if writing.next.is_some() || !is_due {
            return None;
        }
        // The lock is held only while a thread prepares the file.
        let mut making = self.making.try_lock().filter(|making| making.is_none())?;
        if fills {
            // Counted from the start of a filling: one that is cut short has written zeros too.
            writing.since_filled = 0;
        }
        writing.claims += 1;
        *making = Some(Claim { file: writing.number + 1, fills, number: writing.claims });
        *making
    }

    /// Opens the file of a claim; `None` if the claim was revoked.
    fn open_claimed(&self, claim: Claim) -> Result<Option<File>> {
        let making = self.making.lock();
        if *making == Some(claim) { open(&self.data, claim.file).map(Some) } else { Ok(None) }
    }

    /// Ends a claim without a file, and truncates what was written to it.
    fn release(&self, claim: Claim) {
        let mut making = self.making.lock();
        if making.take_if(|making| *making == claim).is_some() {
            self.cut(claim);
        }
    }

    /// Truncates the file of a claim, which has no records yet. If that fails, the zeros stay.
    fn cut(&self, claim: Claim) {
        let path = journal::path(&self.data, claim.file);
        if let Ok(file) = File::options().write(true).open(path) {
            let _ = file.set_len(0);
        }
    }

    /// Opens the file of a claim, writes zeros over its whole length and syncs them. `None` if `stop`
    /// returned true or the claim was revoked.
    fn open_filled(&self, claim: Claim, stop: impl Fn() -> bool) -> Result<Option<File>> {
        let Some(mut file) = self.open_claimed(claim)? else { return Ok(None) };
        let (zeros, mut written) = ([0; ZEROS_BYTES], 0);
        while written < self.file_bytes {
            {
                let making = self.making.lock();
                if *making != Some(claim) || stop() {
                    return Ok(None);
                }
                file.write_all(&zeros)?;
            }
            written += ZEROS_BYTES as u64;
            if written % UNSYNCED_BYTES_MAX == 0 || written >= self.file_bytes {
                file.sync_data()?;
            }
        }
        file.rewind()?;
        Ok(Some(file))
    }

    /// Returns true if the next file must be created without zeros now: at half of the file in use if
    /// the next one will not be filled, otherwise when it is too late to fill it.
    fn is_next_due(&self, writing: &Writing) -> bool {
        let is_half = writing.bytes >= self.file_bytes / 2;
        is_half && (writing.bytes >= self.late_bytes() || !self.is_synced_often(writing))
    }

    /// Returns true if the next file should be filled now. That pays if commits wait for many small
    /// syncs. It is due at once if the file in use is not filled, otherwise when that one is half full.
    /// At least a quarter of a file of records must have been written since the last filling began, so
    /// that files that end early do not make the log write far more zeros than records.
    fn is_filling_due(&self, writing: &Writing) -> bool {
        let is_time = !writing.is_filled || writing.bytes >= self.file_bytes / 2;
        is_time && writing.since_filled >= self.file_bytes / 4 && self.is_synced_often(writing)
    }

    /// Returns true if the file in use was synced often, for few bytes at a time.
    fn is_synced_often(&self, writing: &Writing) -> bool {
        let syncs = self.syncs.load(Ordering::Relaxed);
        syncs >= self.fill_syncs.max(writing.bytes / BYTES_OF_SYNC_MAX)
    }

    /// Returns the length of the file in use from which on the next file must be created without
    /// waiting for zeros.
    pub(super) fn late_bytes(&self) -> u64 {
        self.file_bytes / 8 * 7
    }

    /// Keeps the file of a claim until it is needed, unless the claim has been ended: then the file
    /// may have records, and its length must stay. A filled file is used at once if the one in use
    /// is not filled.
    fn offer(&self, claim: Claim, file: File) {
        let mut writing = self.writing.lock();
        if self.making.lock().take_if(|making| *making == claim).is_none() {
            return;
        }
        let next = Ready { file, is_filled: claim.fills };
        if next.file.set_len(next.length(self.file_bytes)).is_err() {
            self.cut(claim);
            return;
        }
        writing.next = Some(next);
        if claim.fills && !writing.is_filled {
            // It cannot fail: the next file is there.
            let _ = self.turn(&mut writing);
        }
    }

    /// Gives the space of zeros back to a nearly full disk. A file that cannot be cut keeps them.
    pub fn give_back_zeros(&self) {
        let mut writing = self.writing.lock();
        {
            let mut making = self.making.lock();
            if let Some(filling) = making.take_if(|claim| claim.fills) {
                self.cut(filling);
            }
        }
        if let Some(next) = writing.next.as_mut().filter(|next| next.is_filled)
            && next.file.set_len(AHEAD_BYTES).is_ok()
        {
            next.is_filled = false;
        }
        let length = ahead_of(writing.bytes);
        if writing.is_filled && writing.file.set_len(length).is_ok() {
            (writing.length, writing.is_filled) = (length, false);
        }
    }

    /// Counts a sync that a commit waited for.
    pub fn count_sync(&self) {
        self.syncs.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::path::Path;
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant};

    use quire_storage::rng::Rng;

    use super::*;
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
        let claim = log.claim(false).unwrap();
        let file = log.open_claimed(claim).unwrap().unwrap();
        for seqno in 2..=4 {
            log.append(&op(3 << 20), seqno).unwrap();
        }
        assert_eq!(log.current(), claim.file);
        log.offer(claim, file);
        log.release(claim);
        let found = journal::inspect(&journal::path(directory.path(), claim.file)).unwrap();
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
        log.give_back_zeros();
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

    #[test]
    fn a_filling_that_ends_early_leaves_no_zeros_and_is_not_tried_again_at_once() {
        let is_stopped = |_: &Log| {};
        let gives_back = |log: &Log| log.give_back_zeros();
        let ends_file = |log: &Log| log.end_file().unwrap();
        let ends: [&(dyn Fn(&Log) + Sync); 3] = [&is_stopped, &gives_back, &ends_file];
        for (number, end) in ends.into_iter().enumerate() {
            let directory = tempfile::tempdir().unwrap();
            let log = Log::begin(directory.path(), 1, &options(16 << 20)).unwrap();
            for seqno in 1..=8 {
                commit(&log, 1000, seqno);
            }
            let (begun, begins) = std::sync::mpsc::channel();
            let log = &log;
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    let pieces = Cell::new(0);
                    log.fill_next(|| {
                        let _ = begun.send(());
                        std::thread::sleep(Duration::from_millis(1));
                        pieces.set(pieces.get() + 1);
                        number == 0 && pieces.get() == 200
                    });
                });
                // So many pieces are longer than a file that is not filled.
                begins.iter().take(150).for_each(drop);
                end(log);
            });
            let length = journal::path(directory.path(), 2).metadata().unwrap().len();
            assert_eq!(length, if number == 2 { AHEAD_BYTES } else { 0 });
            assert!(!log.wants_filled());
            for seqno in 9..=80 {
                commit(log, 60_000, seqno);
            }
            assert!(log.wants_filled());
        }
    }

    #[test]
    fn a_filling_that_ends_after_its_last_piece_counts_too() {
        let directory = tempfile::tempdir().unwrap();
        let log = Log::begin(directory.path(), 1, &options(4 << 20)).unwrap();
        (0..1000).for_each(|_| log.count_sync());
        let claim = log.claim(true).unwrap();
        let file = log.open_filled(claim, || false).unwrap().unwrap();
        log.give_back_zeros();
        log.offer(claim, file);
        let length = journal::path(directory.path(), 2).metadata().unwrap().len();
        assert_eq!((length, log.current()), (0, 1));
        assert!(log.writing.lock().next.is_none() && !log.wants_filled());
    }

    #[test]
    fn a_filled_file_that_ends_early_is_cut_to_its_records() {
        let directory = tempfile::tempdir().unwrap();
        let log = Log::begin(directory.path(), 1, &options(4 << 20)).unwrap();
        (0..1000).for_each(|_| log.count_sync());
        log.fill_next(|| false);
        let appended = commit(&log, 1000, 1);
        log.end_file().unwrap();
        let length = journal::path(directory.path(), appended.file).metadata().unwrap().len();
        assert_eq!((appended.file, length), (2, appended.bytes));
    }

    /// Everything that touches the next file runs at once. Each record must be in its file, once.
    #[test]
    fn no_record_is_lost_while_files_are_made_ready_ended_and_cut() {
        for (round, file_bytes) in [64 << 10, 100_000, 256 << 10, 4 << 20].into_iter().enumerate() {
            let directory = tempfile::tempdir().unwrap();
            let log = Log::begin(directory.path(), 1, &options(file_bytes)).unwrap();
            let is_done = AtomicBool::new(false);
            let until_done = |seed: u64, pause_us: u64, act: &dyn Fn(&mut Rng)| {
                let mut rng = Rng::new(seed + round as u64 * 100);
                while !is_done.load(Ordering::Relaxed) {
                    act(&mut rng);
                    std::thread::sleep(Duration::from_micros(rng.below(pause_us)));
                }
            };
            let fills = |rng: &mut Rng| {
                let left = Cell::new(rng.below(600));
                log.fill_next(|| left.replace(left.get().saturating_sub(1)) == 0);
            };
            let mut written = Vec::new();
            std::thread::scope(|scope| {
                scope.spawn(|| until_done(1, 300, &fills));
                scope.spawn(|| until_done(2, 300, &fills));
                scope.spawn(|| until_done(3, 500, &|_| log.prepare()));
                scope.spawn(|| until_done(4, 8000, &|_| log.give_back_zeros()));
                scope.spawn(|| until_done(5, 20_000, &|_| log.end_file().unwrap()));
                scope.spawn(|| until_done(6, 2000, &|_| log.sync().unwrap()));
                let mut rng = Rng::new(round as u64);
                let end = Instant::now() + Duration::from_millis(200);
                for seqno in 1.. {
                    let bytes = if rng.below(30) == 0 { 300_000 } else { 3000 };
                    let file = commit(&log, rng.below(bytes) as usize, seqno).file;
                    written.push((file, seqno));
                    if Instant::now() > end {
                        break;
                    }
                }
                is_done.store(true, Ordering::Relaxed);
            });
            let numbers: Vec<u64> = (1..=log.current()).collect();
            let existing = journal::numbers(directory.path()).unwrap();
            assert!(existing.starts_with(&numbers), "{existing:?}");
            let found: Vec<(u64, u64)> = numbers
                .into_iter()
                .flat_map(|number| {
                    let path = journal::path(directory.path(), number);
                    let found = journal::inspect(&path).unwrap();
                    assert_eq!(found.damaged_from, None, "file {number}");
                    let (bytes, _) = journal::read(&path).unwrap();
                    let seqno = |at| journal::decode(&bytes, at).unwrap().seqno;
                    let records = found.intact.iter().map(|record| (number, seqno(record.start)));
                    records.collect::<Vec<_>>()
                })
                .collect();
            assert!(found == written, "of {} records {} were found", written.len(), found.len());
        }
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
                    std::thread::sleep(Duration::from_millis(2));
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
