//! Appends batches to the log and syncs it. A batch is one write to the operating system. The file
//! in use is replaced by the next one when it is full, without a sync: a thread of the store makes
//! the next file ready, syncs full files, and removes the files that no memtable needs.
//!
//! While commits wait for many syncs, the next file is *filled*: zeros are written and synced over
//! its whole length before it is used. A sync of records in it writes only these, and not the file
//! system's records of new blocks too, which takes half of the time (docs/benchmarks.md).

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use quire_storage::{Op, Result, StorageError};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::LsmOptions;
use crate::durable_files::sync_directory;
use crate::journal;
use crate::private::file_options;

/// A file gets longer by this many bytes at a time. A sync that need not store a new length takes a
/// fifth less time.
const AHEAD_BYTES: u64 = 2 << 20;
/// A longer record is written in pieces of this many bytes.
const PIECE_BYTES: usize = 4 << 20;
/// A file is filled only if the syncs of the file before it were for at most so many bytes each, on
/// average. For larger ones, filling costs more than it saves.
const BYTES_OF_SYNC_MAX: u64 = 64 << 10;
/// Zeros are written in pieces of this many bytes: larger ones make the page cache use larger units,
/// in which a small write and its sync take more time.
const ZEROS_BYTES: usize = 16 << 10;
/// Zeros are synced when there are so many, so that other syncs do not wait long.
const UNSYNCED_BYTES_MAX: u64 = 1 << 20;

/// The writer of the log.
pub(crate) struct Log {
    data: PathBuf,
    /// The size of a file from which on the next one is used. From half of it on the next one is
    /// made ready.
    file_bytes: u64,
    /// The syncs of a file, for which commits waited, after which the next one is filled.
    fill_syncs: u64,
    writing: Mutex<Writing>,
    /// The number of the file in use.
    current: AtomicU64,
    /// The syncs of the file in use that commits waited for.
    syncs: AtomicU64,
    /// The number of the next file, while a thread makes it ready. Held while that thread opens the
    /// file or writes zeros to it, so that the writer can end this before it uses the file.
    making: Mutex<Option<u64>>,
    /// The bytes that were handed to the operating system since the open, and those that are on
    /// stable storage. Files of before the open count as synced: the open syncs them.
    written: AtomicU64,
    synced: Mutex<u64>,
    /// True after a failed write or sync. What is on disk is unknown then.
    failed: AtomicBool,
}

struct Writing {
    file: Arc<File>,
    number: u64,
    bytes: u64,
    /// The length of the file.
    length: u64,
    /// True if zeros were written to all of it.
    is_filled: bool,
    /// The bytes of records that were written since a file was last filled.
    since_filled: u64,
    /// The next file, if it was made ahead.
    next: Option<Ready>,
    /// The full files that may not be synced yet, oldest first.
    full: VecDeque<Arc<File>>,
    record: Vec<u8>,
}

/// A file without records, whose name survives a power cut.
struct Ready {
    file: File,
    length: u64,
    is_filled: bool,
}

impl Writing {
    /// Writes the record of a batch, and returns its length.
    fn write(&mut self, ops: &[Op], seqno: u64) -> std::io::Result<u64> {
        let (mut file, record) = (&*self.file, &mut self.record);
        record.clear();
        journal::begin(ops.len(), seqno, record);
        let mut written = 0;
        let mut hash: Option<Xxh3> = None;
        for op in ops {
            journal::item(op, record);
            if record.len() >= PIECE_BYTES {
                hash.get_or_insert_default().update(record);
                file.write_all(record)?;
                written += record.len();
                record.clear();
                record.shrink_to(PIECE_BYTES);
            }
        }
        let checksum = match &mut hash {
            None => xxh3_64(record),
            Some(hash) => {
                hash.update(record);
                hash.digest()
            }
        };
        journal::end(checksum, record);
        file.write_all(record)?;
        Ok((written + record.len()) as u64)
    }
}

/// Where a batch was written.
pub(crate) struct Appended {
    /// The number of its file.
    pub file: u64,
    /// The length of its record.
    pub bytes: u64,
    /// True if the next file must be made ready, or if the file is full and must be synced.
    pub wants_care: bool,
}

impl Log {
    /// Begins to write to file `number`, which is empty or missing.
    pub fn begin(data: &Path, number: u64, options: &LsmOptions) -> Result<Self> {
        let Ready { file, length, is_filled } = create(data, number)?;
        let writing = Writing {
            file: Arc::new(file),
            number,
            bytes: 0,
            length,
            is_filled,
            since_filled: u64::MAX / 2,
            next: None,
            full: VecDeque::new(),
            record: Vec::new(),
        };
        Ok(Self {
            data: data.to_owned(),
            file_bytes: options.log_file_bytes,
            fill_syncs: options.log_fill_syncs,
            writing: Mutex::new(writing),
            current: AtomicU64::new(number),
            syncs: AtomicU64::new(0),
            making: Mutex::new(None),
            written: AtomicU64::new(0),
            synced: Mutex::new(0),
            failed: AtomicBool::new(false),
        })
    }

    /// Writes a batch.
    pub fn append(&self, ops: &[Op], seqno: u64) -> Result<Appended> {
        self.check()?;
        let mut writing = self.writing.lock();
        let bytes = self.noted(writing.write(ops, seqno))?;
        let file = writing.number;
        let before = writing.bytes;
        writing.bytes += bytes;
        writing.since_filled += bytes;
        if writing.bytes >= writing.length {
            writing.length = (writing.bytes / AHEAD_BYTES + 1) * AHEAD_BYTES;
            self.noted(writing.file.set_len(writing.length))?;
        }
        self.written.fetch_add(bytes, Ordering::Release);
        let is_full = writing.bytes >= self.file_bytes;
        let passes = |mark: u64| before < mark && writing.bytes >= mark;
        let wants_care = passes(self.file_bytes / 2) || passes(self.late_bytes());
        if is_full {
            self.turn(&mut writing)?;
        }
        Ok(Appended { file, bytes, wants_care: is_full || wants_care })
    }

    /// Returns the size of a full file, in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Returns the bytes of the records in the file in use.
    pub fn current_bytes(&self) -> u64 {
        self.writing.lock().bytes
    }

    /// Begins the next file if the one in use has records.
    pub fn end_file(&self) -> Result<()> {
        let mut writing = self.writing.lock();
        if writing.bytes > 0 { self.turn(&mut writing) } else { Ok(()) }
    }

    /// Begins the next file.
    fn turn(&self, writing: &mut Writing) -> Result<()> {
        let number = writing.number + 1;
        let Ready { file, length, is_filled } = match writing.next.take() {
            Some(next) => next,
            None => {
                // From now on no other thread opens this file or writes zeros to it.
                *self.making.lock() = None;
                create(&self.data, number).inspect_err(|_| self.fail())?
            }
        };
        let full = std::mem::replace(&mut writing.file, Arc::new(file));
        writing.full.push_back(full);
        (writing.number, writing.bytes) = (number, 0);
        (writing.length, writing.is_filled) = (length, is_filled);
        self.current.store(number, Ordering::Release);
        self.syncs.store(0, Ordering::Relaxed);
        Ok(())
    }

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
    fn late_bytes(&self) -> u64 {
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

    /// Forces everything written before the call to stable storage.
    pub fn sync(&self) -> Result<()> {
        let wanted = self.written.load(Ordering::Acquire);
        let mut synced = self.synced.lock();
        self.check()?;
        if *synced >= wanted {
            return Ok(());
        }
        let (files, covered) = {
            let writing = self.writing.lock();
            let files: Vec<Arc<File>> =
                writing.full.iter().chain([&writing.file]).map(Arc::clone).collect();
            (files, self.written.load(Ordering::Acquire))
        };
        for file in &files {
            self.noted(file.sync_data())?;
        }
        *synced = covered;
        // The last file is still in use, unless it became full meanwhile.
        self.writing.lock().full.drain(..files.len() - 1);
        Ok(())
    }

    /// Returns the number of the file in use.
    pub fn current(&self) -> u64 {
        self.current.load(Ordering::Acquire)
    }

    /// Removes the files before number `first`, oldest first, so that their numbers have no gap.
    /// Returns handles on them, through which their blocks can be freed piece by piece.
    pub fn remove_before(&self, first: u64) -> Result<Vec<File>> {
        let first = first.min(self.current());
        let mut removed = Vec::new();
        for (number, path) in journal::numbered(&self.data)? {
            if number < first {
                removed.extend(File::options().write(true).open(&path).ok());
                std::fs::remove_file(path)?;
            }
        }
        Ok(removed)
    }

    /// Returns an error if an earlier write or sync failed.
    pub fn check(&self) -> Result<()> {
        match self.failed.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(StorageError::Unavailable(
                "an earlier write or fsync of the log failed; restart to recover".into(),
            )),
        }
    }

    fn fail(&self) {
        self.failed.store(true, Ordering::Release);
    }

    fn noted<T>(&self, result: std::io::Result<T>) -> Result<T> {
        result.map_err(|error| {
            self.fail();
            error.into()
        })
    }
}

/// Creates a log file without records.
fn create(data: &Path, number: u64) -> Result<Ready> {
    let file = open(data, number)?;
    file.set_len(AHEAD_BYTES)?;
    Ok(Ready { file, length: AHEAD_BYTES, is_filled: false })
}

/// Opens a log file, whose name survives a power cut, and creates it if it is missing.
fn open(data: &Path, number: u64) -> Result<File> {
    let file = file_options().open(journal::path(data, number))?;
    sync_directory(data)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use quire_storage::Space;

    fn options(log_file_bytes: u64) -> LsmOptions {
        LsmOptions { log_file_bytes, log_fill_syncs: 8, ..LsmOptions::default() }
    }

    fn op(bytes: usize) -> Vec<Op> {
        let value = Some(Bytes::from(vec![7; bytes]));
        vec![Op { space: Space::Doc, key: Bytes::from_static(b"key"), value }]
    }

    #[test]
    fn files_follow_each_other_and_are_removed_from_the_oldest() {
        let directory = tempfile::tempdir().unwrap();
        let log = Log::begin(directory.path(), 4, &options(64 << 20)).unwrap();
        let half = op(40 << 20);
        let numbers: Vec<u64> = (1..=5)
            .map(|seqno| {
                log.prepare();
                log.append(&half, seqno).unwrap().file
            })
            .collect();
        assert_eq!(numbers, [4, 4, 5, 5, 6]);
        let found = journal::inspect(&journal::path(directory.path(), 4)).unwrap();
        assert_eq!((found.intact.len(), found.damaged_from), (2, None), "written in pieces");
        log.sync().unwrap();
        assert!(log.writing.lock().full.is_empty());
        log.append(&half, 6).unwrap();
        assert_eq!((log.writing.lock().full.len(), log.current()), (1, 7));
        assert_eq!(log.remove_before(6).unwrap().len(), 2);
        assert_eq!(journal::numbers(directory.path()).unwrap(), [6, 7]);
        assert_eq!(log.remove_before(u64::MAX).unwrap().len(), 1);
        assert_eq!(journal::numbers(directory.path()).unwrap(), [7]);
        log.end_file().unwrap();
        assert_eq!(log.current(), 7, "the file is empty");
        log.append(&half, 7).unwrap();
        log.prepare();
        log.end_file().unwrap();
        assert_eq!(log.current(), 8);
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

    #[test]
    fn a_failed_write_is_not_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let log = Log::begin(directory.path(), 1, &options(64 << 20)).unwrap();
        let readable = File::open(journal::path(directory.path(), 1)).unwrap();
        log.writing.lock().file = Arc::new(readable);
        assert!(log.append(&op(1), 1).is_err());
        assert!(log.check().is_err() && log.sync().is_err() && log.append(&op(1), 2).is_err());
    }
}
