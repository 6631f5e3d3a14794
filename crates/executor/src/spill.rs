//! Files of records that a stage could not hold in memory: written once, read once, gone when
//! dropped.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use quire_error::{Error, ErrorCode, Result};

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A file being written.
pub(crate) struct SpillWriter {
    file: BufWriter<File>,
}

/// A file being read from its beginning.
pub(crate) struct SpillReader {
    file: BufReader<File>,
}

fn failed(error: &std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Error::new(ErrorCode::OutOfDiskSpace, "the disk is full")
        }
        _ => Error::internal(format!("cannot spill to disk: {error}")),
    }
}

impl SpillWriter {
    /// A new file in a directory. It has no name once it is open.
    pub fn create(directory: &Path) -> Result<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("quire-spill-{}-{number}", std::process::id()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        let file = file.map_err(|error| failed(&error))?;
        std::fs::remove_file(&path).map_err(|error| failed(&error))?;
        Ok(SpillWriter { file: BufWriter::with_capacity(256 * 1024, file) })
    }

    /// Appends a record of several parts.
    pub fn write(&mut self, parts: &[&[u8]]) -> Result<()> {
        for part in parts {
            let len =
                u32::try_from(part.len()).map_err(|_| Error::internal("a part over 4 GiB"))?;
            self.file.write_all(&len.to_le_bytes()).map_err(|error| failed(&error))?;
            self.file.write_all(part).map_err(|error| failed(&error))?;
        }
        Ok(())
    }

    /// Ends writing.
    pub fn into_reader(self) -> Result<SpillReader> {
        let mut file = self.file.into_inner().map_err(|error| failed(error.error()))?;
        file.seek(SeekFrom::Start(0)).map_err(|error| failed(&error))?;
        Ok(SpillReader { file: BufReader::with_capacity(64 * 1024, file) })
    }
}

impl SpillReader {
    /// The next part; `None` at the end of the file.
    pub fn read(&mut self) -> Result<Option<Vec<u8>>> {
        let mut len = [0; 4];
        match self.file.read_exact(&mut len) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(failed(&error)),
        }
        let mut part = vec![0; u32::from_le_bytes(len) as usize];
        self.file.read_exact(&mut part).map_err(|error| failed(&error))?;
        Ok(Some(part))
    }
}
