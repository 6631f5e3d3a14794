//! Frees old views on a thread of their own: the last reference to a view frees memtables of many
//! megabytes and removes the files of tables, which neither a reader nor a writer should do.
//!
//! A removed file frees its blocks when its last handle is closed, all at once. If the file system
//! discards the blocks on the device, every fsync waits meanwhile. So another thread keeps handles
//! on the files and truncates them piece by piece.

use std::collections::VecDeque;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::store::view::View;

/// The bytes of a removed file that are freed at a time.
const PIECE_BYTES: u64 = 4 << 20;
/// The shortest pause between two pieces. A pause is as long as the piece before it took.
const PAUSE: Duration = Duration::from_millis(1);

/// Handles on removed files, the oldest first.
type Files = Arc<Mutex<VecDeque<File>>>;

/// The views that new snapshots no longer use, and the files that were removed.
#[derive(Default)]
pub(crate) struct Retired {
    views: Mutex<Vec<Arc<View>>>,
    files: Files,
    freeing: Mutex<Option<JoinHandle<()>>>,
    truncating: Mutex<Option<JoinHandle<()>>>,
    /// Tells the threads to end soon.
    closing: Arc<AtomicBool>,
}

impl Retired {
    /// Adds a view after another one has taken its place.
    pub fn add(&self, view: Arc<View>) {
        self.views.lock().push(view);
    }

    /// Adds handles on removed files.
    pub fn add_files(&self, files: Vec<File>) {
        self.files.lock().extend(files);
    }

    /// Returns the views that snapshots still use.
    pub fn in_use(&self) -> Vec<Arc<View>> {
        let views = self.views.lock();
        views.iter().filter(|view| Arc::strong_count(view) > 1).cloned().collect()
    }

    /// Starts to free what nothing uses any more.
    pub fn free(&self) {
        start(&self.freeing, "quire-free", || {
            let (views, files) = (self.take_unused(), Arc::clone(&self.files));
            (!views.is_empty()).then_some(move || free(views, &files))
        });
        start(&self.truncating, "quire-truncate", || {
            let (files, closing) = (Arc::clone(&self.files), Arc::clone(&self.closing));
            let has_files = !files.lock().is_empty();
            has_files.then_some(move || give_back_all(&files, &closing))
        });
    }

    fn take_unused(&self) -> Vec<Arc<View>> {
        self.views.lock().extract_if(.., |view| Arc::strong_count(view) == 1).collect()
    }

    /// Frees everything that nothing uses, and returns afterwards. Returns false if snapshots still
    /// use some of it at the end of `limit`: the last one then frees it.
    pub fn clear(&self, limit: Duration) -> bool {
        self.closing.store(true, Ordering::Relaxed);
        for thread in [&self.freeing, &self.truncating] {
            if let Some(thread) = thread.lock().take() {
                // The thread cannot panic, and there would be nothing to do about it.
                let _ = thread.join();
            }
        }
        drop(std::mem::take(&mut *self.files.lock()));
        let until = Instant::now() + limit;
        loop {
            drop(self.take_unused());
            if self.views.lock().is_empty() {
                return true;
            }
            if Instant::now() >= until {
                self.views.lock().clear();
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Starts a thread for the work that `find` finds, unless the last one is still running.
fn start<W: FnOnce() + Send + 'static>(
    running: &Mutex<Option<JoinHandle<()>>>,
    name: &str,
    find: impl FnOnce() -> Option<W>,
) {
    let mut running = running.lock();
    if running.as_ref().is_some_and(|thread| !thread.is_finished()) {
        return;
    }
    if let Some(work) = find() {
        // If no thread can be started, the closure is dropped here, which frees everything in it.
        *running = std::thread::Builder::new().name(name.into()).spawn(work).ok();
    }
}

fn free(views: Vec<Arc<View>>, files: &Mutex<VecDeque<File>>) {
    for view in views {
        let handles: Vec<File> = replaced(&view).filter_map(|path| writable(&path)).collect();
        drop(view);
        files.lock().extend(handles);
    }
}

fn give_back_all(files: &Mutex<VecDeque<File>>, closing: &AtomicBool) {
    loop {
        let next = files.lock().pop_front();
        match next {
            Some(file) => give_back(file, closing),
            None => return,
        }
    }
}

/// Returns the tables of a view that lsm-tree has replaced. The last reference removes them.
fn replaced(view: &View) -> impl Iterator<Item = PathBuf> {
    let tables = view.tables().filter(|table| table.is_deleted.load(Ordering::Acquire));
    tables.map(|table| table.path.to_path_buf())
}

/// A file that cannot be opened frees its blocks all at once.
fn writable(path: &PathBuf) -> Option<File> {
    File::options().write(true).open(path).ok()
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
    fn a_removed_file_is_freed_through_its_handle() {
        let directory = tempfile::tempdir().unwrap();
        let paths = ["1.jnl", "2.jnl"].map(|name| directory.path().join(name));
        paths.iter().for_each(|path| std::fs::write(path, vec![7; 9 << 20]).unwrap());
        let second_name = directory.path().join("copy");
        std::fs::hard_link(&paths[1], &second_name).unwrap();
        let files: Vec<File> = paths.iter().filter_map(writable).collect();
        paths.iter().for_each(|path| std::fs::remove_file(path).unwrap());
        let again: Vec<File> = files.iter().map(|file| file.try_clone().unwrap()).collect();
        give_back_all(&Mutex::new(files.into()), &AtomicBool::new(false));
        let mut left: Vec<u64> = again.iter().map(|file| file.metadata().unwrap().len()).collect();
        left.sort_unstable();
        assert_eq!(left, [1 << 20, 9 << 20], "what has another name stays whole");
        assert_eq!(std::fs::read(second_name).unwrap().len(), 9 << 20);
    }
}
