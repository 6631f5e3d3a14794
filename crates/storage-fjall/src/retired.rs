//! Frees files and memtables outside of fjall's locks. The thread that drops the last reference to
//! a file or a memtable removes or frees it. In fjall that is mostly a thread that holds the lock
//! of the log or the lock that every read and write of a keyspace needs: a compaction that replaced
//! ten tables removed ten files under it, and no commit succeeded for 180 to 300 ms. So this list
//! keeps one more reference to each memtable and each table, and a handle on each log file, until
//! fjall has dropped its own; then a separate thread drops them.
//!
//! A removed file frees its blocks when its last handle is closed, all at once. If the file system
//! discards the blocks on the device, every fsync waits meanwhile, also the sync of a list of
//! tables under the lock of a keyspace. So the thread keeps handles on removed files and truncates
//! them piece by piece.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fjall::{AbstractTree, Keyspace};
use lsm_tree::{Memtable, Table};
use parking_lot::Mutex;

use crate::memtables::Memtables;

/// Memtables up to this size are freed by the calling thread.
const FREED_AT_ONCE_BYTES: u64 = 1 << 20;
/// The bytes of a removed file that are freed at a time.
const PIECE_BYTES: u64 = 4 << 20;
/// The shortest pause between two pieces. A pause is as long as the piece before it took.
const PAUSE: Duration = Duration::from_millis(1);

/// One list of the tables of a keyspace. fjall does not export the type of its lists.
struct TableList {
    number: u64,
    tables: Box<dyn FnOnce() -> Vec<Table> + Send>,
}

/// References to the memtables, tables and log files that fjall may drop.
#[derive(Default)]
pub(crate) struct Retired {
    memtables: Memtables,
    /// The lists of tables, by ascending number.
    lists: Mutex<[VecDeque<TableList>; 4]>,
    /// Handles on the log files, and on tables that are in no list any more.
    files: Arc<Mutex<HashMap<PathBuf, File>>>,
    freeing: Mutex<Option<JoinHandle<()>>>,
    /// Tells the thread to end soon.
    closing: Arc<AtomicBool>,
}

/// The objects to which no other reference exists.
struct Unused {
    memtables: Vec<Arc<Memtable>>,
    lists: Vec<TableList>,
    removed: Vec<File>,
    files: Arc<Mutex<HashMap<PathBuf, File>>>,
    closing: Arc<AtomicBool>,
}

impl Retired {
    /// Adds references to the memtables and tables in use now. It is called so often that fjall
    /// drops few of them before.
    pub fn remember(&self, spaces: &[Keyspace; 4]) {
        self.memtables.remember(spaces.each_ref().map(|space| space.tree.active_memtable()));
        for (space, lists) in spaces.iter().zip(self.lists.lock().iter_mut()) {
            let list = space.tree.current_version();
            if lists.back().is_none_or(|last| last.number < list.id()) {
                let number = list.id();
                let tables = Box::new(move || list.iter_tables().cloned().collect());
                lists.push_back(TableList { number, tables });
            }
        }
    }

    /// Starts to free what fjall has dropped, unless the last round is still running. `logs` are
    /// the existing log files.
    pub fn free(&self, spaces: &[Keyspace; 4], logs: Vec<PathBuf>) {
        let mut freeing = self.freeing.lock();
        if freeing.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        self.remember(spaces);
        let unused = Unused {
            memtables: self.memtables.take_unused(),
            lists: self.take_unused_lists(spaces),
            removed: self.take_removed_files(logs),
            files: Arc::clone(&self.files),
            closing: Arc::clone(&self.closing),
        };
        if !unused.is_small() {
            // If no thread can be started, the closure is dropped here, which frees everything in
            // it.
            let thread = std::thread::Builder::new().name("quire-free".into());
            *freeing = thread.spawn(move || unused.free()).ok();
        }
    }

    /// Takes the lists before the oldest that fjall keeps. fjall numbers lists without a gap.
    fn take_unused_lists(&self, spaces: &[Keyspace; 4]) -> Vec<TableList> {
        let mut unused = Vec::new();
        for (space, lists) in spaces.iter().zip(self.lists.lock().iter_mut()) {
            let tree = &space.tree;
            let newest = tree.current_version().id();
            let oldest = newest.saturating_sub(tree.version_free_list_len() as u64);
            unused.extend(lists.drain(..lists.partition_point(|list| list.number < oldest)));
        }
        unused
    }

    /// Opens the new log files, and returns the handles of all files that were removed.
    fn take_removed_files(&self, logs: Vec<PathBuf>) -> Vec<File> {
        let mut files = self.files.lock();
        let removed = files.extract_if(|path, _| !path.exists()).map(|(_, file)| file).collect();
        logs.into_iter().for_each(|log| keep_open(&mut files, log));
        removed
    }

    /// Drops all references, and returns after everything without another reference is freed.
    pub fn clear(&self) {
        self.closing.store(true, Ordering::Relaxed);
        if let Some(thread) = self.freeing.lock().take() {
            // The thread cannot panic, and there would be nothing to do about it.
            let _ = thread.join();
        }
        self.memtables.clear();
        drop(std::mem::take(&mut *self.lists.lock()));
        drop(std::mem::take(&mut *self.files.lock()));
        self.closing.store(false, Ordering::Relaxed);
    }
}

impl Drop for Retired {
    /// A running removal must end before a database is opened again.
    fn drop(&mut self) {
        self.clear();
    }
}

impl Unused {
    fn is_small(&self) -> bool {
        let memtables: u64 = self.memtables.iter().map(|memtable| memtable.size()).sum();
        memtables <= FREED_AT_ONCE_BYTES && self.lists.is_empty() && self.removed.is_empty()
    }

    fn free(self) {
        drop(self.memtables);
        for list in self.lists {
            let tables = (list.tables)();
            let replaced = tables.iter().filter(|table| table.is_deleted.load(Ordering::Acquire));
            let mut files = self.files.lock();
            replaced.for_each(|table| keep_open(&mut files, table.path.to_path_buf()));
            drop(files);
            drop(tables);
        }
        self.removed.into_iter().for_each(|file| give_back(file, &self.closing));
    }
}

/// Opens a file, unless it is already open. A file that cannot be opened frees its blocks all at
/// once.
fn keep_open(files: &mut HashMap<PathBuf, File>, path: PathBuf) {
    if !files.contains_key(&path)
        && let Ok(file) = File::options().write(true).open(&path)
    {
        files.insert(path, file);
    }
}

/// Frees the blocks of a removed file piece by piece.
fn give_back(file: File, closing: &AtomicBool) {
    let mut left = unlinked_bytes(&file);
    while left > PIECE_BYTES && !closing.load(Ordering::Relaxed) {
        left -= PIECE_BYTES;
        let since = Instant::now();
        if file.set_len(left).is_err() {
            return;
        }
        std::thread::sleep(since.elapsed().max(PAUSE));
    }
}

/// Returns the length of a file without a name, and 0 for one that still has a name.
fn unlinked_bytes(file: &File) -> u64 {
    let Ok(metadata) = file.metadata() else { return 0 };
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::nlink(&metadata) > 0 {
        return 0;
    }
    metadata.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_tables_are_removed_here_and_not_by_fjall() {
        let directory = tempfile::tempdir().unwrap();
        let db = fjall::Database::builder(directory.path()).open().unwrap();
        let spaces = ["a", "b", "c", "d"].map(|name| db.keyspace(name, Default::default).unwrap());
        let retired = Retired::default();
        for value in ["old", "new"] {
            spaces[0].insert("key", value).unwrap();
            spaces[0].rotate_memtable_and_wait().unwrap();
            retired.remember(&spaces);
        }
        let tables = || std::fs::read_dir(spaces[0].path().join("tables")).unwrap().count();
        let before = tables();
        let tree = &spaces[0].tree;
        tree.major_compact(1 << 20, 1 << 40).unwrap();
        tree.get_version_history_lock().maintenance(spaces[0].path(), 1 << 40).unwrap();
        assert_eq!((tree.table_count(), tree.version_free_list_len()), (1, 0));
        assert_eq!(tables(), before + 1, "fjall has removed the tables");
        retired.free(&spaces, Vec::new());
        retired.clear();
        assert_eq!(tables(), 1);
    }

    #[test]
    fn a_removed_log_is_freed_through_its_handle() {
        let directory = tempfile::tempdir().unwrap();
        let retired = Retired::default();
        let logs = ["1.jnl", "2.jnl"].map(|name| directory.path().join(name)).to_vec();
        logs.iter().for_each(|log| std::fs::write(log, vec![7; 9 << 20]).unwrap());
        assert!(retired.take_removed_files(logs.clone()).is_empty());
        let second_name = directory.path().join("copy");
        std::fs::hard_link(&logs[1], &second_name).unwrap();
        logs.iter().for_each(|log| std::fs::remove_file(log).unwrap());
        let removed = retired.take_removed_files(Vec::new());
        assert!(retired.files.lock().is_empty());
        let closing = AtomicBool::new(false);
        let again: Vec<File> = removed.iter().map(|file| file.try_clone().unwrap()).collect();
        removed.into_iter().for_each(|file| give_back(file, &closing));
        let mut left: Vec<u64> = again.iter().map(|file| file.metadata().unwrap().len()).collect();
        left.sort_unstable();
        assert_eq!(left, [1 << 20, 9 << 20], "what has another name stays whole");
        assert_eq!(std::fs::read(second_name).unwrap().len(), 9 << 20);
    }
}
