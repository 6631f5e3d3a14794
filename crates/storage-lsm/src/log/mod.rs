//! Appends batches to the log and syncs it. A batch is one write to the operating system. The file
//! in use is replaced by the next one when it is full, without a sync: threads of the store make the
//! next file ready (`next_file`), sync full files, and remove the files that no memtable needs.

pub mod journal;
mod next_file;

use std::collections::VecDeque;
use std::fs::File;
use std::hash::Hasher;
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use quire_storage::{Op, Result, StorageError};
use twox_hash::XxHash3_64;

use crate::LsmOptions;
use crate::directory::durable_files::sync_directory;
use crate::directory::private::file_options;

/// A file gets longer by this many bytes at a time. A sync that need not store a new length takes a
/// fifth less time.
const AHEAD_BYTES: u64 = 2 << 20;
/// A longer record is written in pieces of this many bytes.
const PIECE_BYTES: usize = 4 << 20;

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
    /// The claim of the thread that makes the next file ready; `None` if no thread does. As long as it
    /// is set, only that thread opens the file and writes to it. It holds this lock meanwhile, and
    /// stops when its claim is no longer set. Locked after `writing`.
    making: Mutex<Option<Claim>>,
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
    /// The claims on next files so far.
    claims: u64,
    /// The next file, if it was made ahead.
    next: Option<Ready>,
    /// The full files that may not be synced yet, oldest first.
    full: VecDeque<Arc<File>>,
    record: Vec<u8>,
}

/// A file without records, whose name survives a power cut.
struct Ready {
    file: File,
    is_filled: bool,
}

impl Ready {
    /// Returns the length of the file. `file_bytes` is the size of a full one.
    fn length(&self, file_bytes: u64) -> u64 {
        if self.is_filled { file_bytes } else { AHEAD_BYTES }
    }
}

/// The right to make the next file ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Claim {
    /// The number of the file.
    file: u64,
    /// True if the file will be filled.
    fills: bool,
    /// Tells apart the claims on one file.
    number: u64,
}

/// Returns the length of a file that has `bytes` bytes of records and is not filled.
fn ahead_of(bytes: u64) -> u64 {
    (bytes / AHEAD_BYTES + 1) * AHEAD_BYTES
}

impl Writing {
    /// Writes the record of a batch, and returns its length.
    fn write(&mut self, ops: &[Op], seqno: u64) -> std::io::Result<u64> {
        let (mut file, record) = (&*self.file, &mut self.record);
        record.clear();
        journal::begin(ops.len(), seqno, record);
        let mut written = 0;
        let mut hash: Option<XxHash3_64> = None;
        for op in ops {
            journal::item(op, record);
            if record.len() >= PIECE_BYTES {
                hash.get_or_insert_default().write(record);
                file.write_all(record)?;
                written += record.len();
                record.clear();
                record.shrink_to(PIECE_BYTES);
            }
        }
        let checksum = match &mut hash {
            None => XxHash3_64::oneshot(record),
            Some(hash) => {
                hash.write(record);
                hash.finish()
            }
        };
        journal::end(checksum, record);
        file.write_all(record)?;
        Ok((written + record.len()) as u64)
    }

    /// Removes what follows the whole records.
    fn cut(&mut self) -> std::io::Result<()> {
        let mut file = &*self.file;
        file.set_len(self.bytes)?;
        file.seek(SeekFrom::Start(self.bytes))?;
        (self.length, self.is_filled) = (self.bytes, false);
        Ok(())
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
        let first = create(data, number)?;
        let writing = Writing {
            length: first.length(options.log_file_bytes),
            is_filled: first.is_filled,
            file: Arc::new(first.file),
            number,
            bytes: 0,
            // The first file may be filled at once.
            since_filled: options.log_file_bytes,
            claims: 0,
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

    /// Writes a batch. Fails with `Full` if the disk is full: then nothing of it is in the log.
    pub fn append(&self, ops: &[Op], seqno: u64) -> Result<Appended> {
        self.check()?;
        let mut writing = self.writing.lock();
        let bytes = match writing.write(ops, seqno) {
            Err(error) if is_full(&error) && writing.cut().is_ok() => {
                return Err(StorageError::Full);
            }
            written => self.noted(written)?,
        };
        let file = writing.number;
        let before = writing.bytes;
        writing.bytes += bytes;
        writing.since_filled += bytes;
        if writing.bytes >= writing.length {
            // Otherwise the next write makes the file longer.
            let length = ahead_of(writing.bytes);
            if writing.file.set_len(length).is_ok() {
                writing.length = length;
            }
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
        if writing.bytes == 0 {
            return Ok(());
        }
        if writing.is_filled {
            // Its zeros would stay as long as its records. If it cannot be cut, they do.
            let _ = writing.cut();
        }
        self.turn(&mut writing)
    }

    /// Begins the next file. If the disk is too full for another one, the one in use stays.
    fn turn(&self, writing: &mut Writing) -> Result<()> {
        let number = writing.number + 1;
        let next = match writing.next.take() {
            Some(next) => next,
            None => {
                *self.making.lock() = None;
                match create(&self.data, number) {
                    Ok(next) => next,
                    Err(StorageError::Full) => return Ok(()),
                    Err(error) => {
                        self.fail();
                        return Err(error);
                    }
                }
            }
        };
        (writing.number, writing.bytes) = (number, 0);
        (writing.length, writing.is_filled) = (next.length(self.file_bytes), next.is_filled);
        let full = std::mem::replace(&mut writing.file, Arc::new(next.file));
        writing.full.push_back(full);
        self.current.store(number, Ordering::Release);
        self.syncs.store(0, Ordering::Relaxed);
        Ok(())
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

    /// Notes a failure after which it is unknown what is on disk. `Full` would say that it is known.
    fn noted<T>(&self, result: std::io::Result<T>) -> Result<T> {
        result.map_err(|error| {
            self.fail();
            StorageError::Io(error.to_string())
        })
    }
}

fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// Creates a log file without records.
fn create(data: &Path, number: u64) -> Result<Ready> {
    let file = open(data, number)?;
    file.set_len(AHEAD_BYTES)?;
    Ok(Ready { file, is_filled: false })
}

/// Opens a log file, whose name survives a power cut, and creates it if it is missing.
fn open(data: &Path, number: u64) -> Result<File> {
    let file = file_options().open(journal::path(data, number))?;
    // A sync that has failed is not tried again, also on a full disk.
    sync_directory(data).map_err(|error| StorageError::Io(error.to_string()))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use quire_storage::Space;

    pub(super) fn options(log_file_bytes: u64) -> LsmOptions {
        LsmOptions { log_file_bytes, log_fill_syncs: 8, ..LsmOptions::default() }
    }

    pub(super) fn op(bytes: usize) -> Vec<Op> {
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
