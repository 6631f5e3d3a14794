//! The files of a database directory, and its lock:
//!
//! - `LOCK`: locked while a process has the directory open; holds its process id.
//! - `FORMAT`: one line, `quire-storage <version>`; written after everything else is complete.
//! - `FORMAT.new`: exists while the directory is being created; at the end it becomes `FORMAT`.
//! - `data/`: the log and the keyspaces.
//! - `REPAIR`: a repair has begun and not ended; see `repair_mark`.
//! - `COPYING`: a backup into this directory has begun and not ended.

pub(crate) mod bytes_at;
pub(crate) mod damage;
pub(crate) mod disk_space;
pub(crate) mod durable_files;
pub(crate) mod durable_mark;
pub(crate) mod layout;
pub(crate) mod private;
pub(crate) mod repair_mark;
pub(crate) mod scratch;

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use quire_storage::{Result, StorageError};

use crate::directory::durable_files::sync_directory;
use crate::directory::durable_mark::DurableMark;
use crate::directory::private::{create_directories, file_options, restrict, unlinked_options};
use crate::directory::scratch::Scratch;

/// The version of everything in the directory; see docs/format.md.
pub const FORMAT_VERSION: u32 = 3;

const LOCK: &str = "LOCK";
const FORMAT: &str = "FORMAT";
const FORMAT_UNFINISHED: &str = "FORMAT.new";
const DATA: &str = "data";
/// The file that names the format of the data.
pub(crate) const DATA_VERSION: &str = "data/version";
/// The mark of an incomplete copy.
const COPYING: &str = "COPYING";
const FORMAT_WORD: &str = "quire-storage";
/// How often and at which interval the lock is tried while another process holds it.
const LOCK_TRIES: usize = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// Returns true if the directory holds a database or a process is creating one, whose `FORMAT` does
/// not exist yet. A database that has lost its `FORMAT` counts too.
pub fn is_database(path: &Path) -> bool {
    let made_now = || {
        let lock = File::open(path.join(LOCK));
        lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
    };
    let lost_format =
        || path.join(DATA_VERSION).is_file() && !path.join(FORMAT_UNFINISHED).exists();
    path.join(FORMAT).is_file() || lost_format() || made_now()
}

/// A locked directory. Dropping it releases the lock.
pub(crate) struct Directory {
    path: PathBuf,
    /// The parent directories that got a new entry when this directory was created.
    parents: Vec<PathBuf>,
    state: Condition,
    /// The image that a check opens instead of the directory.
    image: Option<Scratch>,
    /// The locked file; `None` if a check looks at a directory without a lock file.
    _lock: Option<File>,
}

/// The state in which a directory was found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    /// Empty, or its creation never finished.
    New,
    /// Complete, in the current format.
    Complete,
    /// Without a readable `FORMAT`; a repair writes it again.
    LostFormat,
}

/// The content of `FORMAT`.
enum Format {
    Missing,
    Damaged,
    Current,
}

impl Directory {
    /// Locks a directory and checks its format. Creates a missing directory, without its format
    /// file. With `repair` a lost or damaged format file is accepted.
    pub fn lock(path: &Path, repair: bool) -> Result<Self> {
        let parents = create(path)?;
        check_foreign(path)?;
        let lock = lock_file(path)?;
        let path = path.to_owned();
        let mut directory =
            Self { path, parents, state: Condition::New, image: None, _lock: Some(lock) };
        directory.check_whole()?;
        if !repair && repair_mark::is_there(&directory.path)? {
            let path = directory.path.display();
            return Err(StorageError::Unavailable(format!(
                "a repair of {path} has begun and not ended; run 'quire check --repair {path}' again"
            )));
        }
        directory.state = directory.find_state(repair)?;
        if directory.state == Condition::New && directory.data().try_exists()? {
            std::fs::remove_dir_all(directory.data())?;
        }
        Ok(directory)
    }

    /// Locks a complete directory without changing anything in it, not even the process id in its
    /// lock file.
    pub fn lock_unchanged(path: &Path) -> Result<Self> {
        check_foreign(path)?;
        let lock = match File::open(path.join(LOCK)) {
            Ok(mut lock) => {
                take_lock(path, &mut lock)?;
                Some(lock)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        let (path, parents) = (path.to_owned(), Vec::new());
        let mut directory = Self { path, parents, state: Condition::New, image: None, _lock: lock };
        directory.check_whole()?;
        directory.state = directory.find_state(false)?;
        if directory.state == Condition::New {
            let why = format!("{} was never finished and has no data", directory.path.display());
            return Err(StorageError::Unavailable(why));
        }
        Ok(directory)
    }

    /// Returns the directory, still locked, with an image that is opened instead of its data.
    pub fn with_image(self, image: Scratch) -> Self {
        Self { image: Some(image), ..self }
    }

    /// Opens the file that says how far the log is durable.
    pub fn durable_mark(&self) -> Result<DurableMark> {
        match self.image {
            Some(_) => Ok(DurableMark::none()),
            None => DurableMark::open(&self.path),
        }
    }

    /// Returns true if an image is opened instead of the data.
    pub fn is_image(&self) -> bool {
        self.image.is_some()
    }

    /// Returns the directory of the log and the keyspaces.
    pub fn data(&self) -> PathBuf {
        self.image.as_ref().map_or(&*self.path, Scratch::path).join(DATA)
    }

    /// Returns true if the directory has its format file.
    pub fn is_complete(&self) -> bool {
        self.state == Condition::Complete
    }

    /// Returns a warning for the operator about the directory, if there is one.
    pub fn warning(&self) -> Option<String> {
        let format = self.path.join(FORMAT);
        (self.state == Condition::LostFormat)
            .then(|| format!("{} was lost or damaged and was written again", format.display()))
    }

    /// Marks the beginning of the creation: the data are worthless until `FORMAT` exists. A file
    /// system keeps the order of new names, so after a crash `data` never exists without this mark.
    pub fn begin_creation(&self) -> Result<()> {
        restrict(&self.path);
        file_options().open(self.path.join(FORMAT_UNFINISHED))?;
        Ok(())
    }

    /// Returns the last step of the creation. Call [`Completion::write`] after everything in the
    /// directory is durable.
    pub fn completion(&self) -> Completion {
        Completion { path: self.path.clone(), parents: self.parents.clone() }
    }

    /// Reads `FORMAT`. `Unavailable` if the version is not one that this program reads.
    fn format(&self) -> Result<Format> {
        let text = match std::fs::read(self.path.join(FORMAT)) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Format::Missing),
            Err(error) => return Err(error.into()),
        };
        let text = String::from_utf8_lossy(&text);
        let version = text.strip_prefix(FORMAT_WORD).map(|rest| rest.trim().parse::<u32>());
        match version {
            Some(Ok(FORMAT_VERSION)) => Ok(Format::Current),
            Some(Ok(version)) => Err(StorageError::Unavailable(format!(
                "the files in {} have format {version}; this program reads format {FORMAT_VERSION}. \
                 A program that reads the other format can copy the data: dump there, restore here",
                self.path.display()
            ))),
            Some(Err(_)) | None => Ok(Format::Damaged),
        }
    }

    /// Determines the state from `FORMAT` and `data`. Data of a creation that never finished are
    /// discarded, because no commit in them was acknowledged. Data that only lack their `FORMAT`
    /// are kept.
    fn find_state(&self, repair: bool) -> Result<Condition> {
        let corrupt = |what: &str| {
            Err(StorageError::Corruption { place: self.path.join(what).display().to_string() })
        };
        let is_there = self.data().try_exists()?;
        let is_data = self.path.join(DATA_VERSION).try_exists()?;
        match self.format()? {
            Format::Current if is_data => Ok(Condition::Complete),
            Format::Current if repair && is_there => Ok(Condition::LostFormat),
            Format::Current => corrupt(DATA_VERSION),
            Format::Missing if !is_there => Ok(Condition::New),
            Format::Missing if self.path.join(FORMAT_UNFINISHED).try_exists()? => {
                Ok(Condition::New)
            }
            Format::Missing | Format::Damaged if repair && is_data => Ok(Condition::LostFormat),
            Format::Missing | Format::Damaged => corrupt(FORMAT),
        }
    }

    /// Marks the directory as the target of a copy: until the copy ends no process can open it.
    pub fn begin_copy(&self) -> Result<()> {
        file_options().open(self.path.join(COPYING))?.sync_all()?;
        sync_directory(&self.path)
    }

    /// Removes the mark of the copy, after everything else is complete.
    pub fn end_copy(&self) -> Result<()> {
        std::fs::remove_file(self.path.join(COPYING))?;
        sync_directory(&self.path)
    }

    /// Removes the files of a failed copy. Files that cannot be removed stay, and the mark with
    /// them.
    pub fn abandon_copy(self) {
        let gone = match std::fs::remove_dir_all(self.data()) {
            Ok(()) => true,
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        };
        if gone {
            let _ = durable_mark::remove(&self.path);
            let _ = std::fs::remove_file(self.path.join(LOCK));
            let _ = std::fs::remove_file(self.path.join(COPYING));
        }
    }

    fn check_whole(&self) -> Result<()> {
        if self.path.join(COPYING).try_exists()? {
            return Err(StorageError::Unavailable(format!(
                "{} contains a backup that was never finished",
                self.path.display()
            )));
        }
        Ok(())
    }
}

/// The last step of a directory's creation.
pub(crate) struct Completion {
    path: PathBuf,
    parents: Vec<PathBuf>,
}

impl Completion {
    /// Writes `FORMAT` durably.
    pub fn write(&self) -> Result<()> {
        for parent in &self.parents {
            // A user may be allowed to write into the parent directory but not to read it.
            if let Ok(parent) = File::open(parent) {
                parent.sync_all()?;
            }
        }
        // The line is written under another name first. So after a crash `FORMAT` has the whole
        // line or does not exist, and it is never older than the data that it describes.
        let unfinished = self.path.join(FORMAT_UNFINISHED);
        let mut file = file_options().truncate(true).open(&unfinished)?;
        writeln!(file, "{FORMAT_WORD} {FORMAT_VERSION}")?;
        file.sync_all()?;
        sync_directory(&self.path)?;
        std::fs::rename(&unfinished, self.path.join(FORMAT))?;
        sync_directory(&self.path)
    }
}

/// Creates a directory and its missing parents. Returns the directories that got a new entry.
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
    create_directories(path)?;
    Ok(parents)
}

fn check_foreign(path: &Path) -> Result<()> {
    for foreign in ["WiredTiger", "storage.bson", "mongod.lock"] {
        if path.join(foreign).try_exists()? {
            return Err(StorageError::Unavailable(format!(
                "{} contains another database's files ({foreign}); dump and restore them instead",
                path.display()
            )));
        }
    }
    Ok(())
}

fn lock_file(path: &Path) -> Result<File> {
    let mut file = unlinked_options().read(true).open(path.join(LOCK))?;
    take_lock(path, &mut file)?;
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{}", std::process::id())?;
    Ok(file)
}

/// Takes the lock; `Unavailable` if another process holds it. A child process shares its parent's
/// lock for a moment while it starts.
fn take_lock(path: &Path, file: &mut File) -> Result<()> {
    let mut tried = file.try_lock();
    for _ in 0..LOCK_TRIES {
        if !matches!(tried, Err(TryLockError::WouldBlock)) {
            break;
        }
        std::thread::sleep(LOCK_PAUSE);
        tried = file.try_lock();
    }
    match tried {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let mut owner = String::new();
            let _ = file.read_to_string(&mut owner);
            Err(StorageError::Unavailable(format!(
                "{} is in use by process {}; stop it, or choose another directory",
                path.display(),
                owner.trim()
            )))
        }
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}
