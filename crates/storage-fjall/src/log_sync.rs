//! Syncs fjall's log while other threads go on writing to it. fjall holds the log's lock during its
//! own fsync; a separate handle on the same file needs no lock.

use std::fs::File;
use std::path::PathBuf;

use parking_lot::Mutex;
use quire_storage::Result;

use crate::journal;

/// A handle on the newest file of the log.
pub(crate) struct LogSync {
    data: PathBuf,
    /// Kept open, because a handle reports only the write failures since it was opened.
    newest: Mutex<Option<(PathBuf, File)>>,
}

impl LogSync {
    pub fn new(data: PathBuf) -> Self {
        Self { data, newest: Mutex::new(None) }
    }

    /// Syncs what fjall has written to the operating system. Only the newest file needs it: fjall
    /// syncs a file before it begins the next one.
    ///
    /// Returns false if fjall must sync the file itself: a file that was not open here before,
    /// because a handle does not report failures from before it was opened, or one that cannot be
    /// opened, which is not a failed write.
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
