//! Forcing fjall's log to stable storage while others go on writing to it. fjall holds the log's
//! lock for as long as the disk takes; a handle of our own on the same file does not.

use std::fs::File;
use std::io::ErrorKind;
use std::path::PathBuf;

use parking_lot::Mutex;
use quire_storage::{Result, StorageError};

use crate::journal;

/// A handle on the newest file of the log.
pub(crate) struct LogSync {
    data: PathBuf,
    /// Kept open: a handle tells of every failure to write since it was opened.
    newest: Mutex<Option<(PathBuf, File)>>,
}

impl LogSync {
    pub fn new(data: PathBuf) -> Self {
        Self { data, newest: Mutex::new(None) }
    }

    /// Forces to stable storage whatever fjall has given to the operating system. Only the newest
    /// file needs it: fjall forces a file out before it begins the next.
    pub fn sync(&self) -> Result<()> {
        let mut newest = self.newest.lock();
        loop {
            let Some(path) = journal::files(&self.data)?.pop() else {
                return Err(StorageError::Io("the log has no files".into()));
            };
            match &*newest {
                Some((known, file)) if *known == path => return Ok(file.sync_data()?),
                _ => {}
            }
            match File::options().write(true).open(&path) {
                Ok(file) => *newest = Some((path, file)),
                // Since it was listed, a newer one was begun and all of this reached the tables.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_file_is_forced_out() {
        let directory = tempfile::tempdir().unwrap();
        let sync = LogSync::new(directory.path().to_owned());
        assert!(sync.sync().is_err(), "nothing there");
        let known = || sync.newest.lock().as_ref().map(|(path, _)| path.clone());
        for name in ["9.jnl", "10.jnl"] {
            let path = directory.path().join(name);
            std::fs::write(&path, b"log").unwrap();
            sync.sync().unwrap();
            assert_eq!(known(), Some(path));
        }
        std::fs::remove_file(directory.path().join("9.jnl")).unwrap();
        sync.sync().unwrap();
    }
}
