//! Forcing fjall's log to stable storage while others go on writing to it. fjall holds the log's
//! lock for as long as the disk takes; a handle of our own on the same file does not.

use std::fs::File;
use std::path::PathBuf;

use parking_lot::Mutex;
use quire_storage::Result;

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
    ///
    /// False if fjall has to do it itself: a file that is new here, since a handle does not tell
    /// of failures before it was opened, or one that cannot be opened, which is no failed write.
    pub fn sync(&self) -> Result<bool> {
        let mut newest = self.newest.lock();
        let Some(path) = journal::files(&self.data).ok().and_then(|mut files| files.pop()) else {
            return Ok(false);
        };
        if let Some((known, file)) = &*newest
            && *known == path
        {
            file.sync_data()?;
            return Ok(true);
        }
        *newest = File::options().write(true).open(&path).ok().map(|file| (path, file));
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_file_is_forced_out() {
        let directory = tempfile::tempdir().unwrap();
        let sync = LogSync::new(directory.path().to_owned());
        assert!(!sync.sync().unwrap(), "nothing there");
        let known = || sync.newest.lock().as_ref().map(|(path, _)| path.clone());
        for name in ["9.jnl", "10.jnl"] {
            let path = directory.path().join(name);
            std::fs::write(&path, b"log").unwrap();
            assert!(!sync.sync().unwrap(), "new here");
            assert_eq!(known(), Some(path));
            assert!(sync.sync().unwrap());
        }
        std::fs::remove_file(directory.path().join("9.jnl")).unwrap();
        assert!(sync.sync().unwrap());
    }
}
