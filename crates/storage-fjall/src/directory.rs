//! What lies in a database directory, and who may use it:
//!
//! - `LOCK`: locked while a process has the directory open; holds its process id.
//! - `FORMAT`: one line, `quire-storage <version>`; written when everything else is complete.
//! - `data/`: fjall's files.
//! - `COPYING`: a backup into this directory has begun and not ended.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use quire_storage::{Result, StorageError};

/// The version of everything in the directory; see docs/format.md.
pub const FORMAT_VERSION: u32 = 1;

const LOCK: &str = "LOCK";
const FORMAT: &str = "FORMAT";
const FORMAT_UNFINISHED: &str = "FORMAT.new";
const DATA: &str = "data";
/// The mark of a copy that is not whole.
const COPYING: &str = "COPYING";
const FORMAT_WORD: &str = "quire-storage";

/// True if a database lies there, or a process is making one: `FORMAT` comes last.
pub fn is_database(path: &Path) -> bool {
    let made_now = || {
        let lock = File::open(path.join(LOCK));
        lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
    };
    path.join(FORMAT).is_file() || made_now()
}

/// A locked directory; the lock goes with it.
pub(crate) struct Directory {
    path: PathBuf,
    /// The directories that got a new entry when this one was made.
    parents: Vec<PathBuf>,
    _lock: File,
}

impl Directory {
    /// Locks a directory and checks its format. Creates it, but not yet its format file.
    pub fn lock(path: &Path) -> Result<Self> {
        let parents = create(path)?;
        let lock = lock_file(path)?;
        let directory = Self { path: path.to_owned(), parents, _lock: lock };
        directory.check_whole()?;
        directory.check_foreign()?;
        directory.check_format()?;
        directory.remove_unfinished()?;
        Ok(directory)
    }

    /// Where fjall lives.
    pub fn data(&self) -> PathBuf {
        self.path.join(DATA)
    }

    /// Whether the directory has been completed.
    pub fn is_complete(&self) -> Result<bool> {
        Ok(self.path.join(FORMAT).try_exists()?)
    }

    /// What has to be made durable once everything in the directory is: call its
    /// [`Completion::write`].
    pub fn completion(&self) -> Completion {
        Completion { path: self.path.clone(), parents: self.parents.clone() }
    }

    fn check_format(&self) -> Result<()> {
        let path = self.path.join(FORMAT);
        if !path.try_exists()? {
            return Ok(());
        }
        let text = std::fs::read_to_string(&path)?;
        let version = text
            .strip_prefix(FORMAT_WORD)
            .and_then(|rest| rest.trim().parse::<u32>().ok())
            .ok_or_else(|| StorageError::Corruption { place: path.display().to_string() })?;
        if version != FORMAT_VERSION {
            return Err(StorageError::Unavailable(format!(
                "the files in {} have format {version}; this program reads format {FORMAT_VERSION}",
                self.path.display()
            )));
        }
        Ok(())
    }

    /// Says that a copy into the directory begins: until it ends nobody can open it.
    pub fn begin_copy(&self) -> Result<()> {
        File::create(self.path.join(COPYING))?.sync_all()?;
        sync_directory(&self.path)
    }

    /// Says that the copy is whole, when everything else is.
    pub fn end_copy(&self) -> Result<()> {
        std::fs::remove_file(self.path.join(COPYING))?;
        sync_directory(&self.path)
    }

    /// Removes what a failed copy has written. What cannot be removed stays in sight, marked.
    pub fn abandon_copy(self) {
        let gone = match std::fs::remove_dir_all(self.data()) {
            Ok(()) => true,
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        };
        if gone {
            let _ = std::fs::remove_file(self.path.join(LOCK));
            let _ = std::fs::remove_file(self.path.join(COPYING));
        }
    }

    fn check_whole(&self) -> Result<()> {
        if self.path.join(COPYING).try_exists()? {
            return Err(StorageError::Unavailable(format!(
                "{} holds a backup that was never finished",
                self.path.display()
            )));
        }
        Ok(())
    }

    fn check_foreign(&self) -> Result<()> {
        for foreign in ["WiredTiger", "storage.bson", "mongod.lock"] {
            if self.path.join(foreign).try_exists()? {
                return Err(StorageError::Unavailable(format!(
                    "{} holds another database's files ({foreign}); dump and restore them instead",
                    self.path.display()
                )));
            }
        }
        Ok(())
    }

    /// A directory without `FORMAT` was never finished: nothing was ever acknowledged in it.
    fn remove_unfinished(&self) -> Result<()> {
        let data = self.data();
        if self.path.join(FORMAT).try_exists()? {
            if !data.join("version").try_exists()? {
                return Err(StorageError::Corruption {
                    place: format!("{} has no {DATA}/version", self.path.display()),
                });
            }
        } else if data.try_exists()? {
            std::fs::remove_dir_all(&data)?;
        }
        Ok(())
    }
}

/// The end of a directory's creation.
pub(crate) struct Completion {
    path: PathBuf,
    parents: Vec<PathBuf>,
}

impl Completion {
    /// Says that the directory is complete, durably.
    pub fn write(&self) -> Result<()> {
        for parent in &self.parents {
            // One may be allowed to write into a directory and not to read it.
            if let Ok(parent) = File::open(parent) {
                parent.sync_all()?;
            }
        }
        // Under another name first: a crash leaves the whole line or none, and never a line
        // that is older than what it says is there.
        let unfinished = self.path.join(FORMAT_UNFINISHED);
        let mut file = File::create(&unfinished)?;
        writeln!(file, "{FORMAT_WORD} {FORMAT_VERSION}")?;
        file.sync_all()?;
        sync_directory(&self.path)?;
        std::fs::rename(&unfinished, self.path.join(FORMAT))?;
        sync_directory(&self.path)
    }
}

/// Creates a directory with those above it; the directories that got a new entry.
fn create(path: &Path) -> Result<Vec<PathBuf>> {
    let missing = path
        .ancestors()
        .take_while(|ancestor| !ancestor.as_os_str().is_empty() && !ancestor.exists());
    let parents = missing
        .map(|made| match made.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        })
        .collect();
    std::fs::create_dir_all(path)?;
    Ok(parents)
}

fn lock_file(path: &Path) -> Result<File> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path.join(LOCK))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut owner = String::new();
            let _ = file.read_to_string(&mut owner);
            return Err(StorageError::Unavailable(format!(
                "{} is in use by process {}",
                path.display(),
                owner.trim()
            )));
        }
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{}", std::process::id())?;
    Ok(file)
}

/// Makes the entries of a directory durable.
pub(crate) fn sync_directory(path: &Path) -> Result<()> {
    #[cfg(unix)]
    File::open(path)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}
