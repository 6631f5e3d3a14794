//! What writers change in an index while its build reads the documents and loads their entries. A
//! writer does not change the entries then, because the build would overwrite its change. It notes
//! the key and the record, and after writers maintain the index themselves the build processes the
//! notes. The notes are not durable: a crash ends the build.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use quire_error::Result;

use crate::RecordId;
use crate::spill::{SpillReader, SpillWriter};

/// The bytes of notes in memory. More notes go to disk.
const MEMORY_BYTES: usize = 8 << 20;
const HEAD_BYTES: usize = 12;

/// The notes of one index.
pub(crate) struct SideWrites {
    directory: Arc<Path>,
    notes: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    /// For each note the length of its key, the record and the key.
    bytes: Vec<u8>,
    file: Option<SpillWriter>,
    /// The error that lost notes. It ends the build.
    failed: Option<quire_error::Error>,
}

/// The notes for the build, oldest first.
#[derive(Default)]
pub(crate) struct Notes {
    file: Option<SpillReader>,
    /// The notes that are still in memory.
    last: Vec<u8>,
    piece: Vec<u8>,
    at: usize,
}

impl SideWrites {
    /// Returns an empty set. Notes that do not fit into memory go to `directory`.
    pub fn new(directory: &Arc<Path>) -> Self {
        SideWrites { directory: Arc::clone(directory), notes: Mutex::default() }
    }

    /// Notes that a writer adds or removes the entry with this key for a record. The key does not
    /// contain the record id. Must be called before the writer's commit.
    pub fn note(&self, record: RecordId, key: &[u8]) {
        let mut notes = self.notes.lock();
        let len = u32::try_from(key.len()).unwrap_or(u32::MAX);
        notes.bytes.extend_from_slice(&len.to_le_bytes());
        notes.bytes.extend_from_slice(&record.0.to_le_bytes());
        notes.bytes.extend_from_slice(key);
        if notes.bytes.len() >= MEMORY_BYTES {
            let written = notes.spill(&self.directory);
            notes.bytes.clear();
            notes.failed = notes.failed.take().or(written.err());
        }
    }

    /// Takes all notes.
    ///
    /// # Errors
    /// The error of writing notes to disk: some notes are lost.
    pub fn take(&self) -> Result<Notes> {
        let Pending { bytes, file, failed } = std::mem::take(&mut *self.notes.lock());
        if let Some(error) = failed {
            return Err(error);
        }
        let file = file.map(SpillWriter::into_reader).transpose()?;
        Ok(Notes { file, last: bytes, ..Notes::default() })
    }
}

impl Pending {
    fn spill(&mut self, directory: &Path) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(SpillWriter::create(directory)?),
        };
        file.write(&[&self.bytes])
    }
}

impl Notes {
    /// Returns the next note: record and key.
    pub fn next(&mut self) -> Result<Option<(RecordId, Vec<u8>)>> {
        if self.at >= self.piece.len() && !self.next_piece()? {
            return Ok(None);
        }
        let rest = self.piece.get(self.at..).unwrap_or(&[]);
        let Some((len, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        let Some((record, rest)) = rest.split_first_chunk::<8>() else { return Ok(None) };
        let len = u32::from_le_bytes(*len) as usize;
        self.at += HEAD_BYTES + len;
        Ok(Some((RecordId(u64::from_le_bytes(*record)), rest.get(..len).unwrap_or(&[]).to_vec())))
    }

    fn next_piece(&mut self) -> Result<bool> {
        self.at = 0;
        if let Some(file) = &mut self.file {
            if file.read_into(&mut self.piece)? {
                return Ok(true);
            }
            self.file = None;
        }
        self.piece = std::mem::take(&mut self.last);
        Ok(!self.piece.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_returned_in_order_beyond_the_memory_limit() {
        let side = SideWrites::new(&std::env::temp_dir().into());
        let note = |n: u64| (RecordId(n), vec![n as u8; 1000 + (n % 50) as usize]);
        let count = 3 * MEMORY_BYTES as u64 / 1000;
        for (record, key) in (0..count).map(note) {
            side.note(record, &key);
        }
        assert!(side.notes.lock().bytes.capacity() < 3 * MEMORY_BYTES);
        let mut notes = side.take().unwrap();
        for n in 0..count {
            assert_eq!(notes.next().unwrap(), Some(note(n)));
        }
        assert_eq!(notes.next().unwrap(), None);
        assert_eq!(side.take().unwrap().next().unwrap(), None);
    }

    #[test]
    fn notes_that_cannot_be_written_end_the_build() {
        let side = SideWrites::new(&Path::new("/dev/null/none").into());
        let key = vec![1; MEMORY_BYTES];
        side.note(RecordId(1), &key);
        side.note(RecordId(2), b"short");
        assert!(side.take().is_err());
    }
}
