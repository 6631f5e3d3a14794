//! Frees outside of fjall's locks what fjall lets go of. A file is removed and a memtable is freed by
//! the thread that drops the last reference to it. In fjall that is mostly a thread that holds the
//! lock which every read and write of a keyspace needs, or the lock of the log: a compaction that
//! replaced ten tables removed ten files there, and no commit went on for 180 to 300 ms. So this list
//! keeps one more reference to each memtable and each table, and a handle on each log file, until
//! fjall has let go of it; then a thread of its own drops that.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fjall::{AbstractTree, Keyspace};
use lsm_tree::{Memtable, Table};
use parking_lot::Mutex;

use crate::memtables::Memtables;

/// Memtables up to this size are freed where they are found.
const FREED_AT_ONCE_BYTES: u64 = 1 << 20;
/// What takes longer than this has removed a file.
const REMOVAL: Duration = Duration::from_millis(1);
/// The pause after each file, so that the removals do not fill the file system's journal.
const PAUSE: Duration = Duration::from_millis(5);

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
    logs: Mutex<HashMap<PathBuf, File>>,
    freeing: Mutex<Option<JoinHandle<()>>>,
}

/// What nothing else refers to.
struct Unused {
    memtables: Vec<Arc<Memtable>>,
    lists: Vec<TableList>,
    logs: Vec<File>,
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
            logs: self.take_removed_logs(logs),
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

    /// Opens the log files that are new, and returns the handles of those that are gone: the file
    /// system frees a removed file when its last handle is closed.
    fn take_removed_logs(&self, there: Vec<PathBuf>) -> Vec<File> {
        let mut logs = self.logs.lock();
        let removed = logs.extract_if(|path, _| !there.contains(path)).map(|(_, file)| file);
        let removed = removed.collect();
        for path in there {
            if !logs.contains_key(&path)
                && let Ok(file) = File::open(&path)
            {
                logs.insert(path, file);
            }
        }
        removed
    }

    /// Forgets everything, and returns when what nothing else refers to is freed.
    pub fn clear(&self) {
        if let Some(thread) = self.freeing.lock().take() {
            // It cannot panic, and there is nothing to do about it.
            let _ = thread.join();
        }
        self.memtables.clear();
        drop(std::mem::take(&mut *self.lists.lock()));
        drop(std::mem::take(&mut *self.logs.lock()));
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
        memtables <= FREED_AT_ONCE_BYTES && self.lists.is_empty() && self.logs.is_empty()
    }

    fn free(self) {
        drop(self.memtables);
        for list in self.lists {
            (list.tables)().into_iter().for_each(drop_slowly);
        }
        self.logs.into_iter().for_each(drop_slowly);
    }
}

/// Drops, and pauses if that has removed a file.
fn drop_slowly<T>(item: T) {
    let since = Instant::now();
    drop(item);
    if since.elapsed() > REMOVAL {
        std::thread::sleep(PAUSE);
    }
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
    fn a_removed_log_is_freed_when_its_handle_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let retired = Retired::default();
        let logs = ["1.jnl", "2.jnl"].map(|name| directory.path().join(name)).to_vec();
        logs.iter().for_each(|log| std::fs::write(log, b"log").unwrap());
        assert!(retired.take_removed_logs(logs.clone()).is_empty());
        assert_eq!(retired.take_removed_logs(logs[1..].to_vec()).len(), 1);
        assert!(retired.take_removed_logs(logs[1..].to_vec()).is_empty());
        assert_eq!(retired.logs.lock().len(), 1);
    }
}
