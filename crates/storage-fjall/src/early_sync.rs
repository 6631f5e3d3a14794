//! Forces the tables of a compaction to stable storage piece by piece, before fjall does it at once.
//! fjall ends the last table of a compaction under the lock that every read and write of the keyspace
//! needs, and syncs up to 32 MB there. Until these are written, the file system also delays every small
//! sync, such as those of the log and of the lists of tables, which fjall does under its locks as well.
//! The filter of a compaction sees each row and is told of the end, and runs without a lock.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The bytes of rows between two syncs. A sync costs some milliseconds of the compaction's thread.
const PIECE_BYTES: usize = 4 << 20;
/// Numbers without a table that may lie between the numbers of two tables: other compactions and flushes
/// take numbers before they make the file.
const GAP: u64 = 64;

/// The tables that are written since one compaction has begun.
pub(crate) struct EarlySync {
    tables: PathBuf,
    /// The number of its first table, or a smaller one.
    first: u64,
    /// The length that each table had when it was forced out.
    lengths: HashMap<u64, u64>,
    unsynced_bytes: usize,
}

impl EarlySync {
    /// A compaction begins that will write to the directory `tables`.
    pub fn begin(tables: &Path) -> Self {
        let entries = std::fs::read_dir(tables).into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
        let first = numbers.max().map_or(0, |newest| newest + 1);
        Self { tables: tables.to_owned(), first, lengths: HashMap::new(), unsynced_bytes: 0 }
    }

    /// The compaction has passed on a row of this many bytes.
    pub fn wrote(&mut self, bytes: usize) {
        self.unsynced_bytes += bytes;
        if self.unsynced_bytes >= PIECE_BYTES {
            self.sync();
        }
    }

    /// Forces out what the new tables have grown by. Nothing depends on it: fjall does the same again,
    /// and hears of what fails here.
    pub fn sync(&mut self) {
        self.unsynced_bytes = 0;
        let (mut number, mut end) = (self.first, self.first + GAP);
        while number < end {
            let path = self.tables.join(number.to_string());
            if let Ok(length) = path.metadata().map(|file| file.len()) {
                end = number + GAP;
                if self.lengths.insert(number, length) != Some(length) {
                    let _ = File::open(&path).and_then(|file| file.sync_data());
                }
            }
            number += 1;
        }
    }
}
