//! The archive that each table and each list of tables is: sections, one after the other, then a
//! table of contents, and a trailer that says where that is. It is the format of crate `sfa` 1.0,
//! with which lsm-tree 3.1 writes. Numbers are little endian.

use twox_hash::XxHash3_128;

use crate::directory::bytes_at::Reader;

const TRAILER_BYTES: usize = 38;
/// The magic bytes, version 1, and the kind of checksum: xxh3-128.
const TRAILER: &[u8; 6] = b"SFA!\x01\x00";
const CONTENTS: &[u8; 4] = b"TOC!";

/// Returns the sections of an archive, each with its name.
pub(crate) fn parse(bytes: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let trailer = bytes.get(bytes.len().checked_sub(TRAILER_BYTES)?..)?;
    let mut reader = Reader::new(trailer);
    if reader.array()? != *TRAILER {
        return None;
    }
    let checksum = u128::from_le_bytes(reader.array()?);
    let start = usize::try_from(u64::from_le_bytes(reader.array()?)).ok()?;
    let length = usize::try_from(u64::from_le_bytes(reader.array()?)).ok()?;
    let contents = bytes.get(start..start.checked_add(length)?)?;
    if XxHash3_128::oneshot(contents) != checksum {
        return None;
    }
    let mut reader = Reader::new(contents);
    if reader.array()? != *CONTENTS {
        return None;
    }
    let count = u32::from_le_bytes(reader.array()?);
    let mut sections = Vec::new();
    for _ in 0..count {
        let start = usize::try_from(u64::from_le_bytes(reader.array()?)).ok()?;
        let length = usize::try_from(u64::from_le_bytes(reader.array()?)).ok()?;
        let name = usize::from(u16::from_le_bytes(reader.array()?));
        let name = reader.take(name)?;
        sections.push((name, bytes.get(start..start.checked_add(length)?)?));
    }
    Some(sections)
}

/// Returns an archive of these sections.
pub(crate) fn encode<'s>(sections: impl Iterator<Item = (&'s [u8], &'s [u8])>) -> Vec<u8> {
    let (mut archive, mut contents) = (Vec::new(), Contents::default());
    for (name, section) in sections {
        archive.extend(section);
        contents.end_section(name, archive.len() as u64);
    }
    archive.extend(contents.encode());
    archive
}

/// The table of contents of an archive that is being written.
#[derive(Default)]
pub(crate) struct Contents {
    entries: Vec<u8>,
    count: u32,
    /// Where the last section ends.
    end: u64,
}

impl Contents {
    /// Adds the section that ends at this position of the file and begins at the end of the one
    /// before it.
    pub fn end_section(&mut self, name: &[u8], end: u64) {
        self.entries.extend(self.end.to_le_bytes());
        self.entries.extend((end - self.end).to_le_bytes());
        self.entries.extend(u16::try_from(name.len()).unwrap_or(u16::MAX).to_le_bytes());
        self.entries.extend(name);
        self.count += 1;
        self.end = end;
    }

    /// Returns the bytes after the last section.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = CONTENTS.to_vec();
        bytes.extend(self.count.to_le_bytes());
        bytes.extend(&self.entries);
        let (length, checksum) = (bytes.len() as u64, XxHash3_128::oneshot(&bytes));
        bytes.extend(TRAILER);
        bytes.extend(checksum.to_le_bytes());
        bytes.extend(self.end.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes
    }
}
