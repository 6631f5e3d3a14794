//! The guard before every open: what fjall's log is worth after a crash.
//!
//! fjall 3.1 refuses to open when a checksum in its log is wrong, which a torn last record can
//! cause, and silently drops intact records after a hole. So before it opens, every log file is
//! read here: a torn tail (nothing intact after it) is cut off with a warning; damage with intact
//! records after it is refused and left as it is, until an operator asks for a repair.
//!
//! The format (fjall 3, little endian): a batch is `01 count:u32 seqno:u64`, then `count` times an
//! item `02 type:u8 compression:u8 keyspace:u64 key_len:u16 value_len:u32 stored_len:u32 key value`
//! or a clear `04 keyspace:u64`, then `03 xxh3:u64 "FJL\x03"`; the checksum covers the items. Files
//! are allocated ahead, so zeros may follow the last batch.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use quire_storage::{Result, StorageError};
use xxhash_rust::xxh3::Xxh3;

use crate::directory::sync_directory;

const TRAILER: &[u8; 4] = b"FJL\x03";
/// A later batch's sequence number is greater, but not by more than this.
const SEQNO_LEAP_MAX: u64 = 1 << 40;

/// What a log file looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The file.
    pub path: PathBuf,
    /// The batches that are whole, in order.
    pub intact: Vec<Range<usize>>,
    /// Where the first batch that is not whole begins; `None` if only zeros follow the last.
    pub damaged_from: Option<usize>,
    /// Length of the file.
    pub length: usize,
}

impl Inspection {
    /// Intact batches that come after damage.
    pub fn intact_after_damage(&self) -> usize {
        let Some(from) = self.damaged_from else { return 0 };
        self.intact.iter().filter(|batch| batch.start > from).count()
    }

    /// The end of the last batch before any damage.
    fn good_end(&self) -> usize {
        let before = |batch: &&Range<usize>| self.damaged_from.is_none_or(|from| batch.end <= from);
        self.intact.iter().filter(before).map(|batch| batch.end).max().unwrap_or(0)
    }
}

/// Reads a position in the log without ever passing its end.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }
}

/// The sequence number and the end of a whole batch at `at`.
fn parse_batch(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut reader = Reader { bytes, at };
    if reader.array::<1>()? != [1] {
        return None;
    }
    let count = u32::from_le_bytes(reader.array()?);
    let seqno = u64::from_le_bytes(reader.array()?);
    let mut hash = Xxh3::new();
    for _ in 0..count {
        let start = reader.at;
        match reader.array::<1>()? {
            [2] => {
                let [kind, compression] = reader.array()?;
                if !matches!(kind, 0 | 1 | 2 | 4) || compression > 1 {
                    return None;
                }
                reader.take(8)?;
                let key = u16::from_le_bytes(reader.array()?);
                reader.take(4)?;
                let stored = u32::from_le_bytes(reader.array()?);
                reader.take(usize::from(key))?;
                reader.take(usize::try_from(stored).ok()?)?;
            }
            [4] => {
                reader.take(8)?;
            }
            _ => return None,
        }
        hash.update(bytes.get(start..reader.at)?);
    }
    let end = reader.array::<1>()? == [3];
    let checksum = u64::from_le_bytes(reader.array()?);
    let trailer = reader.array::<4>()? == *TRAILER;
    (end && trailer && checksum == hash.digest()).then_some((seqno, reader.at))
}

/// The length without the zeros of whole pages that were only allocated ahead.
fn used_length(bytes: &[u8]) -> usize {
    const PAGE: usize = 4096;
    let pages = bytes.chunks(PAGE).rev().take_while(|page| [0; PAGE].starts_with(page));
    let kept = bytes.len().div_ceil(PAGE) - pages.count();
    let bytes = bytes.get(..kept * PAGE).unwrap_or(bytes);
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

/// Finds every whole batch of a log.
pub fn inspect(path: &Path) -> Result<Inspection> {
    let bytes = std::fs::read(path)?;
    let used = used_length(&bytes);
    let mut found = Inspection {
        path: path.to_owned(),
        intact: Vec::new(),
        damaged_from: None,
        length: bytes.len(),
    };
    let (mut at, mut last_seqno) = (0, None);
    while at < used {
        let later = |seqno: u64| {
            last_seqno.is_none_or(|last: u64| seqno > last && seqno - last < SEQNO_LEAP_MAX)
        };
        match parse_batch(&bytes, at).filter(|(seqno, _)| later(*seqno)) {
            Some((seqno, end)) => {
                found.intact.push(at..end);
                (at, last_seqno) = (end, Some(seqno));
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

/// The log files of a database, oldest first.
pub fn files(data: &Path) -> Result<Vec<PathBuf>> {
    Ok(numbered(data)?.into_iter().map(|(_, path)| path).collect())
}

/// The numbers of the log files of a database, oldest first. They rise, and what is written goes
/// to the last.
pub(crate) fn numbers(data: &Path) -> Result<Vec<u64>> {
    Ok(numbered(data)?.into_iter().map(|(number, _)| number).collect())
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

/// Makes the log safe to open, or says why it is not. Returns what an operator should know.
pub fn guard(data: &Path, repair: bool) -> Result<Vec<String>> {
    let mut warnings = Vec::new();
    let files = files(data)?;
    let newest = files.last().cloned();
    for path in files {
        if path.metadata()?.len() == 0 {
            continue;
        }
        let found = inspect(&path)?;
        let Some(from) = found.damaged_from else { continue };
        let after = found.intact_after_damage();
        let name = path.display();
        if after == 0 && Some(&path) == newest.as_ref() {
            cut(&path, found.good_end())?;
            warnings.push(format!(
                "{name}: the last record, at byte {from}, was not written completely before the \
                 crash and was removed; it had not been acknowledged as durable"
            ));
        } else if repair {
            let kept = rewrite(&found)?;
            warnings.push(format!(
                "{name}: damaged at byte {from}; {kept} intact records kept, {after} of them after \
                 the damage; what the damaged bytes said is lost; the damaged file was kept beside it"
            ));
        } else {
            return Err(StorageError::Corruption {
                place: format!(
                    "{name}: damaged at byte {from}, with {after} intact records after the damage; \
                     nothing was changed; restore a backup, or run `quire check --repair`, which \
                     keeps every intact record"
                ),
            });
        }
    }
    Ok(warnings)
}

fn cut(path: &Path, length: usize) -> Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.set_len(u64::try_from(length).unwrap_or(u64::MAX))?;
    file.sync_all()?;
    Ok(())
}

/// Writes the intact batches anew and keeps the damaged file under another name.
fn rewrite(found: &Inspection) -> Result<usize> {
    let bytes = std::fs::read(&found.path)?;
    let mended = found.path.with_extension("mended");
    let mut file = File::create(&mended)?;
    for batch in &found.intact {
        file.write_all(bytes.get(batch.clone()).unwrap_or_default())?;
    }
    file.sync_all()?;
    let mut aside = found.path.with_extension("damaged");
    let mut number = 1;
    while aside.try_exists()? {
        number += 1;
        aside = found.path.with_extension(format!("damaged{number}"));
    }
    std::fs::rename(&found.path, &aside)?;
    std::fs::rename(&mended, &found.path)?;
    if let Some(parent) = found.path.parent() {
        sync_directory(parent)?;
    }
    Ok(found.intact.len())
}

/// Empties the log after everything it says has reached the tables, so that the next open has
/// nothing to replay.
pub(crate) fn clear(data: &Path) -> Result<()> {
    let mut files = files(data)?;
    if let Some(newest) = files.pop() {
        for path in files {
            std::fs::remove_file(path)?;
        }
        cut(&newest, 0)?;
        sync_directory(data)?;
    }
    Ok(())
}
