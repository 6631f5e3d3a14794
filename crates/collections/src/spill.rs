//! Temporary files of stages and index builds that exceed their memory. Dropping a value removes
//! its file. Records are written once and read in order; pages are written and read in any order.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use quire_error::{Error, ErrorCode, Result};

/// The buffer of a file that is being read, in bytes.
pub const READ_BUFFER_BYTES: usize = 64 * 1024;

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A file being written.
pub struct SpillWriter {
    file: BufWriter<File>,
}

/// A file being read from its beginning.
pub struct SpillReader {
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

/// Creates a file in a directory; the first file creates the directory. The file has no name.
fn unnamed(directory: &Path) -> Result<File> {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(format!("quire-spill-{}-{number}", std::process::id()));
    let create = || {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        // The files hold documents: no other user may read them.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&path)
    };
    let file = match create() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            std::fs::create_dir_all(directory).and_then(|()| create())
        }
        file => file,
    };
    let file = file.map_err(|error| failed(&error))?;
    std::fs::remove_file(&path).map_err(|error| failed(&error))?;
    Ok(file)
}

impl SpillWriter {
    /// Creates a file in a directory.
    pub fn create(directory: &Path) -> Result<Self> {
        let file = unnamed(directory)?;
        Ok(SpillWriter { file: BufWriter::with_capacity(256 * 1024, file) })
    }

    /// Appends a record, given in several parts.
    pub fn write(&mut self, parts: &[&[u8]]) -> Result<()> {
        for part in parts {
            let len =
                u32::try_from(part.len()).map_err(|_| Error::internal("a part over 4 GiB"))?;
            self.file.write_all(&len.to_le_bytes()).map_err(|error| failed(&error))?;
            self.file.write_all(part).map_err(|error| failed(&error))?;
        }
        Ok(())
    }

    /// Ends writing and returns a reader of what was written.
    pub fn into_reader(self) -> Result<SpillReader> {
        let mut file = self.file.into_inner().map_err(|error| failed(error.error()))?;
        file.seek(SeekFrom::Start(0)).map_err(|error| failed(&error))?;
        Ok(SpillReader { file: BufReader::with_capacity(READ_BUFFER_BYTES, file) })
    }
}

impl SpillReader {
    /// Continues at the beginning of the file.
    pub fn restart(&mut self) -> Result<()> {
        self.file.seek(SeekFrom::Start(0)).map(|_| ()).map_err(|error| failed(&error))
    }

    /// Returns the next part; `None` at the end of the file.
    pub fn read(&mut self) -> Result<Option<Vec<u8>>> {
        let mut part = Vec::new();
        Ok(self.read_into(&mut part)?.then_some(part))
    }

    /// Replaces the content of `part` by the next part. Returns false at the end of the file.
    pub fn read_into(&mut self, part: &mut Vec<u8>) -> Result<bool> {
        let mut len = [0; 4];
        match self.file.read_exact(&mut len) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(failed(&error)),
        }
        part.clear();
        part.resize(u32::from_le_bytes(len) as usize, 0);
        self.file.read_exact(part).map_err(|error| failed(&error))?;
        Ok(true)
    }
}

/// A file of pages of one size.
#[derive(Debug)]
pub struct SpillPages {
    file: File,
    page_bytes: u64,
    pages: u64,
}

impl SpillPages {
    /// Creates a file in a directory.
    pub fn create(directory: &Path, page_bytes: usize) -> Result<Self> {
        Ok(SpillPages { file: unnamed(directory)?, page_bytes: page_bytes as u64, pages: 0 })
    }

    /// Writes a page, or appends a new page if `page` is `None`. Returns its number.
    pub fn write(&mut self, page: Option<u64>, bytes: &[u8]) -> Result<u64> {
        let page = page.unwrap_or(self.pages);
        self.seek(page)?;
        self.file.write_all(bytes).map_err(|error| failed(&error))?;
        self.pages = self.pages.max(page + 1);
        Ok(page)
    }

    /// Reads a page.
    pub fn read(&mut self, page: u64, bytes: &mut [u8]) -> Result<()> {
        self.seek(page)?;
        self.file.read_exact(bytes).map_err(|error| failed(&error))
    }

    fn seek(&mut self, page: u64) -> Result<()> {
        let place = SeekFrom::Start(page * self.page_bytes);
        self.file.seek(place).map(|_| ()).map_err(|error| failed(&error))
    }
}
