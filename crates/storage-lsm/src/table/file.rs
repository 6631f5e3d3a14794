//! Reads a table's file without lsm-tree's own reader: verifies every byte, finds where it is
//! damaged and reads the intact rows.
//!
//! A table is an archive (see `archive`) whose sections, except for the section of one version byte,
//! are sequences of blocks, each behind its header (see `block_header`).

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use lsm_tree::CompressionType;
use lsm_tree::InternalValue;
use lsm_tree::table::block::decoder::ParsedItem;
use lsm_tree::table::{Block, DataBlock};
use twox_hash::XxHash3_128;

use crate::directory::damage::Damage;
use crate::table::archive;
use crate::table::block_header::{BlockHeader, HEADER_BYTES, MAGIC, ROWS};
use crate::table::manifest::TableEntry;

/// The section of the rows. Damage in any other section loses no data.
pub(crate) const ROWS_SECTION: &[u8] = b"data";
/// The only section without blocks.
pub(crate) const VERSION_SECTION: &[u8] = b"table_version";

/// Verifies a table with the checksum of the whole file from the list of tables. If they differ,
/// the damage names the first block whose own checksum is wrong.
pub(crate) fn verify(path: &Path, table: &TableEntry) -> Result<(), Damage> {
    let bytes = std::fs::read(path).map_err(|error| Damage::unreadable(path, &error))?;
    if XxHash3_128::oneshot(&bytes) == table.checksum {
        return Ok(());
    }
    let Some(sections) = archive::parse(&bytes) else {
        let end = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        return Err(Damage::at(path, end, "its end is damaged or missing"));
    };
    for (name, section) in sections {
        let from = section.as_ptr() as usize - bytes.as_ptr() as usize;
        if name == VERSION_SECTION {
            continue;
        }
        if let Some(at) = first_damage(&bytes, from..from + section.len()) {
            let name = String::from_utf8_lossy(name).into_owned();
            let at = u64::try_from(at).unwrap_or(u64::MAX);
            return Err(Damage::at(path, at, format!("a block of '{name}' is damaged")));
        }
    }
    Err(Damage::new(path, "does not have the checksum that the list of tables keeps of it"))
}

fn first_damage(bytes: &[u8], section: Range<usize>) -> Option<usize> {
    let mut at = section.start;
    while at < section.end {
        match header(bytes, at).filter(|found| is_whole(bytes, found)) {
            Some(found) => at = found.stored.end,
            None => return Some(at),
        }
    }
    None
}

/// A block with an intact header.
struct FoundBlock {
    header: BlockHeader,
    stored: Range<usize>,
}

impl FoundBlock {
    /// Returns true if the block may be stored without compression.
    fn is_plain(&self) -> bool {
        self.header.stored_length == self.header.plain_length
    }
}

fn header(bytes: &[u8], at: usize) -> Option<FoundBlock> {
    let header = BlockHeader::parse(bytes.get(at..)?)?;
    let from = at + HEADER_BYTES;
    let end = from.checked_add(usize::try_from(header.stored_length).ok()?)?;
    Some(FoundBlock { header, stored: from..end })
}

fn is_whole(bytes: &[u8], found: &FoundBlock) -> bool {
    bytes
        .get(found.stored.clone())
        .is_some_and(|stored| XxHash3_128::oneshot(stored) == found.header.checksum)
}

/// The readable part of a table.
pub(crate) struct Readable {
    path: PathBuf,
    /// The ranges of the intact blocks of rows, in the order of their keys.
    blocks: Vec<Range<usize>>,
    /// The number that is added to the sequence numbers.
    seqno: u64,
    /// True if blocks of rows are damaged, or may be.
    pub has_lost: bool,
    next: usize,
    rows: std::vec::IntoIter<InternalValue>,
}

impl Readable {
    /// Finds every intact block of rows; none in a file that cannot be read.
    pub fn find(path: &Path, seqno: u64) -> Self {
        let bytes = std::fs::read(path);
        let mut found = Self {
            path: path.to_owned(),
            blocks: Vec::new(),
            seqno,
            has_lost: bytes.is_err(),
            next: 0,
            rows: Vec::new().into_iter(),
        };
        if let Ok(bytes) = bytes {
            found.find_blocks(&bytes);
        }
        found
    }

    fn find_blocks(&mut self, bytes: &[u8]) {
        let sections = archive::parse(bytes);
        let rows = sections.as_ref().and_then(|sections| {
            let section = sections.iter().find(|(name, _)| *name == ROWS_SECTION)?;
            Some(section.1.as_ptr() as usize - bytes.as_ptr() as usize + section.1.len())
        });
        // Without the table of contents the end of the rows is not known.
        self.has_lost |= rows.is_none();
        let end = rows.unwrap_or(bytes.len());
        let mut at = 0;
        while at < end {
            match header(bytes, at) {
                Some(found) if is_whole(bytes, &found) => {
                    if found.header.kind == ROWS {
                        self.blocks.push(at..found.stored.end);
                    }
                    at = found.stored.end;
                }
                Some(found) => {
                    self.has_lost |= found.header.kind == ROWS;
                    at = found.stored.end;
                }
                None => {
                    self.has_lost |= rows.is_some();
                    at = next_header(bytes, at + 1).unwrap_or(end);
                }
            }
        }
    }

    fn load(&self, block: &Range<usize>) -> Option<Vec<InternalValue>> {
        let mut bytes = vec![0; block.len()];
        let mut file = File::open(&self.path).ok()?;
        file.seek(SeekFrom::Start(u64::try_from(block.start).ok()?)).ok()?;
        file.read_exact(&mut bytes).ok()?;
        let parse = AssertUnwindSafe(|| {
            let read = |compression| Block::from_reader(&mut &bytes[..], compression).ok();
            // A block that is not compressed is hardly ever a compressed one of the same length.
            let is_plain = header(&bytes, 0).is_some_and(|found| found.is_plain());
            let block = read(CompressionType::Lz4)
                .or_else(|| is_plain.then(|| read(CompressionType::None)).flatten())?;
            let block = DataBlock::new(block);
            let rows = block.iter().map(|item| item.materialize(block.as_slice()));
            let mut rows: Vec<InternalValue> = rows.collect();
            rows.iter_mut().for_each(|row| row.key.seqno += self.seqno);
            Some(rows)
        });
        // lsm-tree asserts some properties of the data that it reads.
        catch_unwind(parse).unwrap_or(None)
    }
}

impl Iterator for Readable {
    type Item = InternalValue;

    /// Returns the next readable row, in the order of keys, and of one key the newest first.
    fn next(&mut self) -> Option<InternalValue> {
        loop {
            if let Some(row) = self.rows.next() {
                return Some(row);
            }
            let block = self.blocks.get(self.next)?.clone();
            self.next += 1;
            match self.load(&block) {
                Some(rows) => self.rows = rows.into_iter(),
                None => self.has_lost = true,
            }
        }
    }
}

fn next_header(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let starts = rest.windows(MAGIC.len()).enumerate().filter(|(_, four)| *four == MAGIC);
    starts.map(|(at, _)| from + at).find(|at| header(bytes, *at).is_some())
}
