//! The file `DURABLE`: up to which version the log is known to be on stable storage. It is written
//! after each fsync of the log and is not synced itself, so it may lag behind the log but never
//! runs ahead of it. A log that ends before that version was cut short, and is refused.
//!
//! 24 bytes, big endian: the version up to which all commits are on stable storage, the version up
//! to which all of them are in tables (as of the last clean stop), and the xxh3-64 of both.

use std::fs::File;
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;

use parking_lot::Mutex;
use quire_storage::Result;
use twox_hash::XxHash3_64;

use crate::directory::bytes_at::Reader;
use crate::directory::private::unlinked_options;

const NAME: &str = "DURABLE";

/// The content of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Durable {
    /// All commits up to this version are on stable storage.
    pub version: u64,
    /// All commits up to this version are in tables.
    pub in_tables: u64,
}

/// Reads the file. A missing or damaged file gives zeros.
pub(crate) fn read(directory: &Path) -> Durable {
    let bytes = std::fs::read(directory.join(NAME)).unwrap_or_default();
    parse(&bytes).unwrap_or_default()
}

/// Returns a warning for the operator if the file is missing or damaged, and `None` if it is sound
/// or empty. A power cut soon after the creation of the database can leave no file, so a start is
/// not refused.
pub(crate) fn warning(directory: &Path) -> Option<String> {
    let path = directory.join(NAME);
    let what = match std::fs::read(&path) {
        Ok(bytes) if bytes.is_empty() || parse(&bytes).is_some() => return None,
        Ok(_) => "is damaged",
        Err(error) if error.kind() == ErrorKind::NotFound => "is missing",
        Err(_) => "cannot be read",
    };
    Some(format!(
        "{} {what} and is written again; if the end of the log was lost as well, that cannot be noticed",
        path.display()
    ))
}

fn parse(bytes: &[u8]) -> Option<Durable> {
    let mut reader = Reader::new(bytes);
    let [version, in_tables, checksum] =
        [reader.array()?, reader.array()?, reader.array()?].map(u64::from_be_bytes);
    let whole = reader.is_at_end() && checksum == XxHash3_64::oneshot(bytes.get(..16)?);
    whole.then_some(Durable { version, in_tables })
}

/// Removes the file, for a repair of a log that has lost durable records.
pub(crate) fn remove(directory: &Path) -> Result<()> {
    match std::fs::remove_file(directory.join(NAME)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// The writer of the file of an open directory.
pub(crate) struct DurableMark(Mutex<(Option<File>, Durable)>);

impl DurableMark {
    /// Opens the file; creates it if it is missing.
    pub fn open(directory: &Path) -> Result<Self> {
        let path = directory.join(NAME);
        let file = unlinked_options().open(path)?;
        Ok(Self(Mutex::new((Some(file), read(directory)))))
    }

    /// Returns a writer that writes nothing, for a directory that is not opened again.
    pub fn none() -> Self {
        Self(Mutex::new((None, Durable::default())))
    }

    /// Notes that all commits up to `version` are on stable storage.
    pub fn note(&self, version: u64) {
        let (file, durable) = &mut *self.0.lock();
        if version > durable.version {
            durable.version = version;
            write(file.as_mut(), durable);
        }
    }

    /// Notes that all durable commits are in tables. The log is about to be emptied.
    pub fn note_in_tables(&self) {
        let (file, durable) = &mut *self.0.lock();
        durable.in_tables = durable.version;
        write(file.as_mut(), durable);
    }
}

fn write(file: Option<&mut File>, durable: &Durable) {
    let Some(file) = file else { return };
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&durable.version.to_be_bytes());
    bytes[8..16].copy_from_slice(&durable.in_tables.to_be_bytes());
    let checksum = XxHash3_64::oneshot(&bytes[..16]);
    bytes[16..].copy_from_slice(&checksum.to_be_bytes());
    // A failed write only leaves the older value.
    let _ = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&bytes));
}
