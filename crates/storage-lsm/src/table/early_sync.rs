//! Syncs the tables of a merge piece by piece, before lsm-tree syncs them as a whole. The filter of a
//! merge sees each row and the end.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use crate::table::tuning::SYNC_BYTES;

/// The largest gap in table numbers that is searched. Other compactions and flushes take numbers
/// before they create their files.
const GAP: u64 = 64;

/// The tables that have been written since one compaction began.
pub(crate) struct EarlySync {
    tables: PathBuf,
    /// A number that is not greater than that of its first table.
    first: u64,
    /// The length of each table at its last sync.
    lengths: HashMap<u64, u64>,
    unsynced_bytes: usize,
}

impl EarlySync {
    /// Starts with a compaction that writes to the directory `tables`.
    pub fn begin(tables: &Path) -> Self {
        let entries = std::fs::read_dir(tables).into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
        let first = numbers.max().map_or(0, |newest| newest + 1);
        Self { tables: tables.to_owned(), first, lengths: HashMap::new(), unsynced_bytes: 0 }
    }

    /// Counts a row of `bytes` bytes that the compaction has written.
    pub fn wrote(&mut self, bytes: usize) {
        self.unsynced_bytes += bytes;
        if self.unsynced_bytes >= SYNC_BYTES {
            self.sync();
        }
    }

    /// Syncs the new bytes of the tables. Errors are ignored, because lsm-tree syncs the tables
    /// again and gets the same error.
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
