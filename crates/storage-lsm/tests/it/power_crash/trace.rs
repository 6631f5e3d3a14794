//! Reads the record of `examples/recorder.rs`: what a process did to the files of a directory.

use std::path::PathBuf;

/// The number of a file or a directory, under any name; 0 is the recorded directory itself.
pub type Number = u64;

/// One call.
#[derive(Debug, Clone)]
pub enum Event {
    /// The creation of a file.
    Create(Number, PathBuf),
    /// The creation of a directory.
    MakeDirectory(Number, PathBuf),
    /// Bytes written at an offset.
    Write(Number, u64, Vec<u8>),
    /// The new length of a file.
    Truncate(Number, u64),
    /// An fsync or fdatasync.
    Sync(Number),
    /// The old and the new name.
    Rename(PathBuf, PathBuf),
    /// The removal of a file or an empty directory.
    Remove(PathBuf),
    /// The name of a file and another name, which it gets in addition.
    Link(PathBuf, PathBuf),
}

/// Reads a whole record.
pub fn read(bytes: &[u8]) -> Vec<Event> {
    let mut reader = Reader(bytes);
    let mut events = Vec::new();
    while let Some((&tag, rest)) = reader.0.split_first() {
        reader.0 = rest;
        events.push(match tag {
            1 => Event::Create(reader.number(), reader.path()),
            2 => Event::MakeDirectory(reader.number(), reader.path()),
            3 => Event::Write(reader.number(), reader.number(), reader.text().to_vec()),
            4 => Event::Truncate(reader.number(), reader.number()),
            5 => Event::Sync(reader.number()),
            6 => Event::Rename(reader.path(), reader.path()),
            7 => Event::Remove(reader.path()),
            8 => Event::Link(reader.path(), reader.path()),
            other => panic!("no event has the tag {other}"),
        });
    }
    events
}

struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn number(&mut self) -> u64 {
        let (number, rest) = self.0.split_first_chunk::<8>().unwrap();
        self.0 = rest;
        u64::from_le_bytes(*number)
    }

    fn text(&mut self) -> &'b [u8] {
        let length = usize::try_from(self.number()).unwrap();
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        text
    }

    fn path(&mut self) -> PathBuf {
        PathBuf::from(std::str::from_utf8(self.text()).unwrap())
    }
}
