//! Creates a new database. The files are written in their place at once, and synced together while the
//! server already answers: lsm-tree would sync each of them before the next one, some ten syncs one
//! after another for each of four trees, which takes a fifth of a second on many disks.
//!
//! `FORMAT` is written after everything is durable; a creation that did not get there is done
//! again. The first commit waits for it ([`Creation::wait`]), so nothing acknowledged can be lost.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use quire_storage::{Result, Space, StorageError};

use crate::directory::Completion;
use crate::directory::layout::{keyspace_path, number_of};
use crate::directory::private::{create_directories, file_options};
use crate::log::journal;
use crate::table::manifest;

/// The file that names the format of the tables. A directory with it holds data.
pub(crate) const VERSION: &str = "version";
pub(crate) const VERSION_TEXT: &[u8] = b"FJL\x03";

/// Fills `data` with an empty database and an empty log. Returns what it has created, which is not
/// synced, each directory after what is in it.
pub(crate) fn prepare(data: &Path) -> Result<Vec<PathBuf>> {
    create_directories(data)?;
    let mut made = Vec::new();
    for space in Space::ALL {
        made.extend(manifest::create(&keyspace_path(data, number_of(space)))?);
    }
    for (path, text) in [(journal::path(data, 0), &b""[..]), (data.join(VERSION), VERSION_TEXT)] {
        file_options().create_new(true).open(&path)?.write_all(text)?;
        made.push(path);
    }
    let keyspaces = made.first().and_then(|file| file.parent()?.parent()).map(Path::to_owned);
    made.extend(keyspaces);
    made.push(data.to_owned());
    Ok(made)
}

/// Fills `data` with an empty database that is durable when the call returns.
pub(crate) fn make(data: &Path) -> Result<()> {
    sync_all(&prepare(data)?)
}

/// A directory that is becoming durable and complete.
pub(crate) struct Creation {
    thread: Mutex<Option<JoinHandle<Result<()>>>>,
    result: OnceLock<Result<()>>,
}

impl Creation {
    /// Returns the creation of a directory that was complete before.
    pub fn done() -> Self {
        Self { thread: Mutex::new(None), result: OnceLock::from(Ok(())) }
    }

    /// Starts a thread that syncs the files of `made` and then completes the directory.
    pub fn start(made: Vec<PathBuf>, completion: Completion) -> Result<Self> {
        let thread = std::thread::Builder::new().name("quire-create".into());
        let thread = thread.spawn(move || finish(&made, &completion))?;
        Ok(Self { thread: Mutex::new(Some(thread)), result: OnceLock::new() })
    }

    /// Waits until the directory is complete.
    pub fn wait(&self) -> Result<()> {
        if let Some(result) = self.result.get() {
            return result.clone();
        }
        let died = || Err(StorageError::Io("the creation of the directory did not end".into()));
        if let Some(thread) = self.thread.lock().take() {
            let _ = self.result.set(thread.join().unwrap_or_else(|_| died()));
        }
        self.result.get().cloned().unwrap_or_else(died)
    }
}

impl Drop for Creation {
    fn drop(&mut self) {
        // The thread must end before the lock of the directory is released.
        let _ = self.wait();
    }
}

/// Syncs the files of `made`, then marks the directory as complete.
pub(crate) fn finish(made: &[PathBuf], completion: &Completion) -> Result<()> {
    sync_all(made)?;
    completion.write()
}

fn sync_all(made: &[PathBuf]) -> Result<()> {
    for path in made {
        match File::open(path) {
            Ok(file) => file.sync_all()?,
            // lsm-tree has replaced the file meanwhile, and synced the new one.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
