//! Frees outside of fjall's locks what fjall lets go of. A file is removed and a memtable is freed by
//! the thread that drops the last reference to it. In fjall that is mostly a thread that holds the
//! lock which every read and write of a keyspace needs, or the lock of the log: a compaction that
//! replaced ten tables removed ten files there, and no commit went on for 180 to 300 ms. So this list
//! keeps one more reference to each memtable and each table, and a handle on each log file, until
//! fjall has let go of it; then a thread of its own drops that.
//!
//! A removed file gives its blocks back when its last handle is closed, all at once. Where the file system
//! discards them on the device, every fsync waits for that meanwhile, also those of lists of tables under
//! the lock of a keyspace. So the thread holds handles on what is removed and cuts it off piece by piece.

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

/// Memtables up to this size are freed where they are found.
const FREED_AT_ONCE_BYTES: u64 = 1 << 20;
/// So much of a removed file is given back at a time.
const PIECE_BYTES: u64 = 4 << 20;
/// The shortest pause between two pieces; it takes as long as the piece before.
const PAUSE: Duration = Duration::from_millis(1);

/// One list of the tables of a keyspace. fjall does not name the type of its lists.
struct TableList {
    number: u64,
    tables: Box<dyn FnOnce() -> Vec<Table> + Send>,
}

/// What fjall may let go of.
#[derive(Default)]
pub(crate) struct Retired {
    memtables: Memtables,
    /// By rising numbers.
    lists: Mutex<[VecDeque<TableList>; 4]>,
    /// Handles on the log files, and on tables that are in no list any more.
    files: Arc<Mutex<HashMap<PathBuf, File>>>,
    freeing: Mutex<Option<JoinHandle<()>>>,
    /// The thread should end soon.
    closing: Arc<AtomicBool>,
}

/// What nothing else refers to.
struct Unused {
    memtables: Vec<Arc<Memtable>>,
    lists: Vec<TableList>,
    removed: Vec<File>,
    files: Arc<Mutex<HashMap<PathBuf, File>>>,
    closing: Arc<AtomicBool>,
}

impl Retired {
    /// Remembers what is in use now. Called so often that little is let go of unseen.
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

    /// Starts to free what fjall has let go of, unless the last round is still at it. `logs` are the
    /// log files that are there.
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
            // Without a thread the closure is dropped here, and what is in it.
            let thread = std::thread::Builder::new().name("quire-free".into());
            *freeing = thread.spawn(move || unused.free()).ok();
        }
    }

    /// The lists before the oldest that fjall keeps. fjall numbers lists without a gap.
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

    /// Opens the log files that are new, and returns the handles of all files that are gone.
    fn take_removed_files(&self, logs: Vec<PathBuf>) -> Vec<File> {
        let mut files = self.files.lock();
        let removed = files.extract_if(|path, _| !path.exists()).map(|(_, file)| file).collect();
        logs.into_iter().for_each(|log| keep_open(&mut files, log));
        removed
    }

    /// Forgets everything, and returns when what nothing else refers to is freed.
    pub fn clear(&self) {
        self.closing.store(true, Ordering::Relaxed);
        if let Some(thread) = self.freeing.lock().take() {
            // It cannot panic, and there is nothing to do about it.
            let _ = thread.join();
        }
        self.memtables.clear();
        drop(std::mem::take(&mut *self.lists.lock()));
        drop(std::mem::take(&mut *self.files.lock()));
        self.closing.store(false, Ordering::Relaxed);
    }
}

impl Drop for Retired {
    /// A removal that is under way must not reach a database that is opened next.
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

/// Opens a file, unless it is open already. One that cannot be opened gives its blocks back at once.
fn keep_open(files: &mut HashMap<PathBuf, File>, path: PathBuf) {
    if !files.contains_key(&path)
        && let Ok(file) = File::options().write(true).open(&path)
    {
        files.insert(path, file);
    }
}

/// Gives the blocks of a removed file back piece by piece.
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

/// The length of a file that has no name any more, and 0 for one that still has another name.
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
    fn a_removed_log_is_given_back_by_its_handle() {
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
