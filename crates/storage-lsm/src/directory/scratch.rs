//! Temporary directories, for the image that a check opens. A process that is killed leaves its
//! directory behind; the next check of any database removes it.
//!
//! A process holds a lock (`flock`) on the directory that it uses, so a directory whose lock is
//! free is unused. A process id in the name would not show that: ids are reused and differ between
//! containers.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const PREFIX: &str = "quire-image-";
/// The number of attempts: another process can remove a new directory.
const TRIES_MAX: usize = 20;

/// A temporary directory. Dropping the value removes it.
pub(crate) struct Scratch {
    path: PathBuf,
    _lock: File,
}

impl Scratch {
    /// Creates a directory below `place`; `None` if that does not exist or cannot be used.
    pub fn new(place: &Path) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Until it is locked, another process that opens a database can remove it.
        (0..TRIES_MAX).find_map(|_| {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            Self::make(place.join(format!("{PREFIX}{}-{number}", std::process::id())))
        })
    }

    fn make(path: PathBuf) -> Option<Self> {
        make_private(&path).ok()?;
        let lock = File::open(&path).ok()?;
        // Another process can have removed it since its creation, or can be about to.
        lock.try_lock().ok()?;
        path.is_dir().then_some(Self { path, _lock: lock })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If this fails, another process removes it, or the next start of the system.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Creates a directory that only this user can read.
fn make_private(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Removes the directories below `place` that killed processes have left.
pub(crate) fn sweep(place: &Path) {
    let Ok(entries) = std::fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory && is_ours(&entry.file_name().to_string_lossy()) {
            remove_unused(&entry.path());
        }
    }
}

/// Returns true for `PREFIX`, a process id, a hyphen and a number.
fn is_ours(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.strip_prefix(PREFIX)
        .and_then(|rest| rest.split_once('-'))
        .is_some_and(|(process, number)| is_number(process) && is_number(number))
}

/// Removes a directory that no process has locked. A directory of another user may stay.
fn remove_unused(path: &Path) {
    let Ok(lock) = File::open(path) else { return };
    if lock.try_lock().is_ok() {
        let _ = std::fs::remove_dir_all(path);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A check failed when another process removed its directory before it was locked.
    #[test]
    fn a_new_directory_survives_sweepers() {
        let place = tempfile::TempDir::new().unwrap();
        let is_done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    sweep(place.path());
                }
            });
            let made: Vec<_> = (0..300).map(|_| Scratch::new(place.path())).collect();
            is_done.store(true, Ordering::Relaxed);
            assert!(made.iter().all(Option::is_some));
        });
    }

    #[test]
    fn only_unused_directories_are_removed() {
        let place = tempfile::TempDir::new().unwrap();
        let used = Scratch::new(place.path()).unwrap();
        std::fs::write(used.path().join("file"), "in use").unwrap();
        let left = place.path().join("quire-image-1-0");
        std::fs::create_dir_all(left.join("keyspaces")).unwrap();
        std::fs::write(left.join("keyspaces/0"), "of a dead process").unwrap();
        for other in ["quire-image-1", "quire-image-x-1", "quire-image-1-", "other"] {
            std::fs::create_dir(place.path().join(other)).unwrap();
        }
        sweep(place.path());
        assert!(!left.exists() && used.path().join("file").exists());
        assert_eq!(place.path().read_dir().unwrap().count(), 5);
        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
    }
}
