//! fjall's log: its files, and the intact batches in them. `log_guard` decides how much of a log
//! can be used after a crash.
//!
//! The format (fjall 3, little endian): a batch is `01 count:u32 seqno:u64`, then `count` times an
//! item `02 type:u8 compression:u8 keyspace:u64 key_len:u16 value_len:u32 stored_len:u32 key value`
//! or a clear `04 keyspace:u64`, then `03 xxh3:u64 "FJL\x03"`; the checksum covers the items. Files
//! are allocated ahead, so zeros may follow the last batch.

use std::ops::Range;
use std::path::{Path, PathBuf};

use quire_storage::committer::{GroupPlace, group_place};
use quire_storage::{Result, Space};
use xxhash_rust::xxh3::Xxh3;

use crate::bytes_at::Reader;
use crate::layout::number_of;

const TRAILER: &[u8; 4] = b"FJL\x03";
/// The sequence number of the next batch is greater than the last by at most this.
const SEQNO_LEAP_MAX: u64 = 1 << 40;

/// The content of a log file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The path of the file.
    pub path: PathBuf,
    /// The byte ranges of the intact batches, in order.
    pub intact: Vec<Range<usize>>,
    /// The place of each of them in the history of commits, in the same order.
    pub places: Vec<Option<GroupPlace>>,
    /// The offset of the first damaged batch; `None` if only zeros follow the last intact one.
    pub damaged_from: Option<usize>,
    /// The length of the file in bytes.
    pub length: usize,
}

impl Inspection {
    /// Returns the number of intact batches after the first damage.
    pub fn intact_after_damage(&self) -> usize {
        let Some(from) = self.damaged_from else { return 0 };
        self.intact.iter().filter(|batch| batch.start > from).count()
    }

    /// Returns the end of the last batch before the first damage.
    pub(crate) fn good_end(&self) -> usize {
        let before = |batch: &&Range<usize>| self.damaged_from.is_none_or(|from| batch.end <= from);
        self.intact.iter().filter(before).map(|batch| batch.end).max().unwrap_or(0)
    }
}

/// An intact batch.
struct Batch {
    seqno: u64,
    end: usize,
    place: Option<GroupPlace>,
}

/// Returns the intact batch at offset `at`, if there is one.
fn parse_batch(bytes: &[u8], at: usize) -> Option<Batch> {
    let mut reader = Reader::starting_at(bytes, at);
    if reader.array::<1>()? != [1] {
        return None;
    }
    let count = u32::from_le_bytes(reader.array()?);
    let seqno = u64::from_le_bytes(reader.array()?);
    let (mut hash, mut place) = (Xxh3::new(), None);
    for _ in 0..count {
        let start = reader.position();
        match reader.array::<1>()? {
            [2] => {
                let [kind, compression] = reader.array()?;
                if !matches!(kind, 0 | 1 | 2 | 4) || compression > 1 {
                    return None;
                }
                let keyspace = u64::from_le_bytes(reader.array()?);
                let key = u16::from_le_bytes(reader.array()?);
                reader.take(4)?;
                let stored = u32::from_le_bytes(reader.array()?);
                let key = reader.take(usize::from(key))?;
                let value = reader.take(usize::try_from(stored).ok()?)?;
                if (keyspace, kind, compression) == (number_of(Space::Meta), 0, 0) {
                    place = group_place(key, value).or(place);
                }
            }
            [4] => {
                reader.take(8)?;
            }
            _ => return None,
        }
        hash.update(bytes.get(start..reader.position())?);
    }
    let end = reader.array::<1>()? == [3];
    let checksum = u64::from_le_bytes(reader.array()?);
    let trailer = reader.array::<4>()? == *TRAILER;
    let whole = end && trailer && checksum == hash.digest();
    whole.then(|| Batch { seqno, end: reader.position(), place })
}

/// Returns the length of the file without the zero pages that were allocated ahead.
fn used_length(bytes: &[u8]) -> usize {
    const PAGE: usize = 4096;
    let pages = bytes.chunks(PAGE).rev().take_while(|page| [0; PAGE].starts_with(page));
    let kept = bytes.len().div_ceil(PAGE) - pages.count();
    let bytes = bytes.get(..kept * PAGE).unwrap_or(bytes);
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

/// Finds every intact batch of a log.
pub fn inspect(path: &Path) -> Result<Inspection> {
    let bytes = std::fs::read(path)?;
    let used = used_length(&bytes);
    let mut found = Inspection {
        path: path.to_owned(),
        intact: Vec::new(),
        places: Vec::new(),
        damaged_from: None,
        length: bytes.len(),
    };
    let (mut at, mut last_seqno) = (0, None);
    while at < used {
        let later = |seqno: u64| {
            last_seqno.is_none_or(|last: u64| seqno > last && seqno - last < SEQNO_LEAP_MAX)
        };
        match parse_batch(&bytes, at).filter(|batch| later(batch.seqno)) {
            Some(batch) => {
                found.intact.push(at..batch.end);
                found.places.push(batch.place);
                (at, last_seqno) = (batch.end, Some(batch.seqno));
            }
            None => {
                found.damaged_from.get_or_insert(at);
                let rest = bytes.get(at + 1..used).unwrap_or_default();
                match rest.iter().position(|byte| *byte == 1) {
                    Some(next) => at += 1 + next,
                    None => break,
                }
            }
        }
    }
    Ok(found)
}

/// Returns the log files of a database, oldest first.
pub fn files(data: &Path) -> Result<Vec<PathBuf>> {
    Ok(numbered(data)?.into_iter().map(|(_, path)| path).collect())
}

/// Returns the numbers of the log files of a database, oldest first. The numbers rise, and fjall
/// writes to the last file.
pub(crate) fn numbers(data: &Path) -> Result<Vec<u64>> {
    Ok(numbered(data)?.into_iter().map(|(number, _)| number).collect())
}

/// Returns the path of the log file with this number.
pub(crate) fn path(data: &Path, number: u64) -> PathBuf {
    data.join(format!("{number}.jnl"))
}

fn numbered(data: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(data)? {
        let path = entry?.path();
        let number = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_suffix(".jnl"))
            .and_then(|number| number.parse::<u64>().ok());
        if let Some(number) = number {
            files.push((number, path));
        }
    }
    files.sort();
    Ok(files)
}
