//! The log on disk: its files, how a batch is written, and the intact batches in a file. `log`
//! appends to it, `replay` reads it at an open, `log_guard` decides how much of it can be used
//! after a crash.
//!
//! The format (little endian): a batch is `01 count:u32 seqno:u64`, then `count` times an item `02
//! type:u8 compression:u8 keyspace:u64 key_len:u16 value_len:u32 stored_len:u32 key value`, then
//! `03 xxh3:u64 "QJL\x01"`; the checksum covers everything before the `03`. Type 0 is a value and 1
//! a deleted key. Zeros may follow the last batch: a file gets longer ahead of its use, or is filled
//! with them. `compression` is 0.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use quire_storage::committer::{GroupPlace, group_place};
use quire_storage::{Op, Result, Space};
use twox_hash::XxHash3_64;

use crate::directory::bytes_at::Reader;
use crate::directory::layout::number_of;

/// The end of a batch.
const TRAILER: &[u8; 4] = b"QJL\x01";
const BATCH: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const VALUE: u8 = 0;
const DELETED: u8 = 1;
const PLAIN: u8 = 0;
/// A search for intact batches after damage reads at most this many times the length of the file. A
/// document can contain the beginnings of many batches.
const FAILED_SHARE_MAX: usize = 16;
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
    /// False if the search for intact batches after damage was given up: it would take too long.
    pub is_searched: bool,
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

/// Appends the head of a batch of `count` items to `record`.
pub(crate) fn begin(count: usize, seqno: u64, record: &mut Vec<u8>) {
    record.push(BATCH);
    record.extend(length(count).to_le_bytes());
    record.extend(seqno.to_le_bytes());
}

/// Appends an item.
pub(crate) fn item(op: &Op, record: &mut Vec<u8>) {
    let value = op.value.as_deref().unwrap_or_default();
    let kind = if op.value.is_some() { VALUE } else { DELETED };
    let mut head = [0; 21];
    head[..3].copy_from_slice(&[ITEM, kind, PLAIN]);
    head[3..11].copy_from_slice(&number_of(op.space).to_le_bytes());
    head[11..13].copy_from_slice(&(op.key.len() as u16).to_le_bytes());
    head[13..17].copy_from_slice(&length(value.len()).to_le_bytes());
    head[17..].copy_from_slice(&length(value.len()).to_le_bytes());
    record.extend_from_slice(&head);
    record.extend_from_slice(&op.key);
    record.extend_from_slice(value);
}

/// Appends the end of a batch. `checksum` is the xxh3-64 of its head and its items.
pub(crate) fn end(checksum: u64, record: &mut Vec<u8>) {
    record.push(END);
    record.extend(checksum.to_le_bytes());
    record.extend(TRAILER);
}

fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// An intact batch.
struct Batch {
    seqno: u64,
    end: usize,
    place: Option<GroupPlace>,
}

/// An item of a batch: a key of a keyspace, and its value unless it is deleted.
struct Item<'b> {
    keyspace: u64,
    key: &'b [u8],
    value: Option<&'b [u8]>,
}

impl Item<'_> {
    /// Returns the change that the item makes, if its keyspace is one of the four spaces.
    fn op(&self) -> Option<Op> {
        let space = Space::ALL.into_iter().find(|space| number_of(*space) == self.keyspace)?;
        let (key, value) = (Bytes::copy_from_slice(self.key), self.value);
        Some(Op { space, key, value: value.map(Bytes::copy_from_slice) })
    }
}

/// Reads the next item of a batch.
fn parse_item<'b>(reader: &mut Reader<'b>) -> Option<Item<'b>> {
    let [ITEM, kind @ (VALUE | DELETED), PLAIN] = reader.array()? else { return None };
    let keyspace = u64::from_le_bytes(reader.array()?);
    let key = u16::from_le_bytes(reader.array()?);
    let length = u32::from_le_bytes(reader.array()?);
    let stored = u32::from_le_bytes(reader.array()?);
    if stored != length {
        return None;
    }
    let key = reader.take(usize::from(key))?;
    let value = reader.take(usize::try_from(stored).ok()?)?;
    Some(Item { keyspace, key, value: (kind == VALUE).then_some(value) })
}

/// Returns the intact batch at the reader's position, if there is one. Calls `each` with its items,
/// also before the checksum shows that they are intact.
fn parse_batch(reader: &mut Reader<'_>, mut each: impl FnMut(&Item<'_>)) -> Option<Batch> {
    let start = reader.position();
    if reader.array::<1>()? != [BATCH] {
        return None;
    }
    let count = u32::from_le_bytes(reader.array()?);
    let seqno = u64::from_le_bytes(reader.array()?);
    let mut place = None;
    for _ in 0..count {
        let item = parse_item(reader)?;
        if let Item { keyspace, key, value: Some(value) } = item
            && keyspace == number_of(Space::Meta)
        {
            place = group_place(key, value).or(place);
        }
        each(&item);
    }
    let content_end = reader.position();
    let end = reader.array::<1>()? == [END];
    let checksum = u64::from_le_bytes(reader.array()?);
    let is_ours = reader.array::<4>()? == *TRAILER;
    let content = reader.bytes(start..content_end)?;
    let whole = end && is_ours && checksum == XxHash3_64::oneshot(content);
    whole.then(|| Batch { seqno, end: reader.position(), place })
}

/// A batch that is read again.
pub(crate) struct Decoded {
    pub seqno: u64,
    pub ops: Vec<Op>,
    /// The offset after it.
    pub end: usize,
}

/// Reads the batch at offset `at` again; `None` if there is no intact one.
pub(crate) fn decode(bytes: &[u8], at: usize) -> Option<Decoded> {
    let mut ops = Vec::new();
    let mut reader = Reader::starting_at(bytes, at);
    let Batch { seqno, end, .. } = parse_batch(&mut reader, |item| ops.extend(item.op()))?;
    Some(Decoded { seqno, ops, end })
}

/// Reads a log file. Returns its bytes without the zeros at its end, and its length. The zeros of a
/// filled file are never all in memory.
pub(crate) fn read(path: &Path) -> std::io::Result<(Vec<u8>, usize)> {
    const PIECE: usize = 1 << 20;
    let mut file = File::open(path)?;
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    let (mut piece, mut used) = (Vec::new(), length);
    while let Some(last) = used.checked_sub(1) {
        let start = last / PIECE * PIECE;
        file.seek(SeekFrom::Start(start as u64))?;
        piece.resize(used - start, 0);
        file.read_exact(&mut piece)?;
        match used_length(&piece) {
            0 => used = start,
            in_piece => {
                used = start + in_piece;
                break;
            }
        }
    }
    let mut bytes = vec![0; used];
    file.rewind()?;
    file.read_exact(&mut bytes)?;
    Ok((bytes, length))
}

/// Returns the length of the bytes without the zeros at their end.
fn used_length(bytes: &[u8]) -> usize {
    const PAGE: usize = 4096;
    let pages = bytes.chunks(PAGE).rev().take_while(|page| [0; PAGE].starts_with(page));
    let kept = bytes.len().div_ceil(PAGE) - pages.count();
    let bytes = bytes.get(..kept * PAGE).unwrap_or(bytes);
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

/// Finds every intact batch of a log file.
pub fn inspect(path: &Path) -> Result<Inspection> {
    let (bytes, length) = read(path)?;
    let used = bytes.len();
    let mut found = Inspection {
        path: path.to_owned(),
        intact: Vec::new(),
        places: Vec::new(),
        damaged_from: None,
        is_searched: true,
        length,
    };
    let (mut at, mut last_seqno) = (0, None);
    let mut failed_bytes = 0;
    while at < used {
        let later = |seqno: u64| {
            last_seqno.is_none_or(|last: u64| seqno > last && seqno - last < SEQNO_LEAP_MAX)
        };
        let mut reader = Reader::starting_at(&bytes, at);
        match parse_batch(&mut reader, |_| {}).filter(|batch| later(batch.seqno)) {
            Some(batch) => {
                found.intact.push(at..batch.end);
                found.places.push(batch.place);
                (at, last_seqno) = (batch.end, Some(batch.seqno));
            }
            None => {
                found.damaged_from.get_or_insert(at);
                failed_bytes += reader.position() - at;
                if failed_bytes / FAILED_SHARE_MAX > length {
                    found.is_searched = false;
                    break;
                }
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

/// Returns the numbers of the log files of a database, oldest first. The numbers rise without a
/// gap; the last file, or the one before it, is written to.
pub(crate) fn numbers(data: &Path) -> Result<Vec<u64>> {
    Ok(numbered(data)?.into_iter().map(|(number, _)| number).collect())
}

/// Returns the path of the log file with this number.
pub(crate) fn path(data: &Path, number: u64) -> PathBuf {
    data.join(format!("{number}.jnl"))
}

pub(crate) fn numbered(data: &Path) -> Result<Vec<(u64, PathBuf)>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(ops: &[Op], seqno: u64, record: &mut Vec<u8>) {
        let start = record.len();
        begin(ops.len(), seqno, record);
        ops.iter().for_each(|op| item(op, record));
        end(XxHash3_64::oneshot(&record[start..]), record);
    }

    #[test]
    fn a_batch_is_read_as_it_was_written() {
        let op = |space, key: &'static str, value: Option<&'static str>| Op {
            space,
            key: Bytes::from_static(key.as_bytes()),
            value: value.map(|value| Bytes::from_static(value.as_bytes())),
        };
        let ops = vec![
            op(Space::Doc, "one", Some("value")),
            op(Space::Idx, "two", None),
            op(Space::Log, "three", Some("")),
        ];
        let mut bytes = Vec::new();
        encode(&ops, 7, &mut bytes);
        let first = bytes.len();
        encode(&ops[..1], 8, &mut bytes);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("1.jnl");
        std::fs::write(&path, &bytes).unwrap();
        let found = inspect(&path).unwrap();
        assert_eq!(found.intact, [0..first, first..bytes.len()]);
        assert_eq!(found.damaged_from, None);
        let read = decode(&bytes, 0).unwrap();
        assert_eq!((read.seqno, read.ops, read.end), (7, ops, first));
        for at in 0..first {
            let mut damaged = bytes.clone();
            damaged[at] ^= 16;
            assert!(decode(&damaged, 0).is_none(), "a flipped bit at {at}");
        }
    }

    #[test]
    fn zeros_at_the_end_are_not_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("1.jnl");
        for used in [0, 1, 5000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3_000_000] {
            for zeros in [0, 1, 4096, 2_500_000] {
                let bytes = [vec![7; used], vec![0; zeros]].concat();
                std::fs::write(&path, &bytes).unwrap();
                assert!(read(&path).unwrap() == (vec![7; used], used + zeros), "{used} {zeros}");
            }
        }
    }

    /// A value of beginnings of batches, each of which seems to reach to the end of the file, made
    /// the search after damage quadratic.
    #[test]
    fn the_search_after_damage_is_given_up_in_time() {
        let mut fake = Vec::new();
        begin(1, 7, &mut fake);
        fake.extend([ITEM, VALUE, PLAIN]);
        fake.extend(number_of(Space::Doc).to_le_bytes());
        fake.extend(1_u16.to_le_bytes());
        // Its item is as long as half of the file.
        fake.extend([(1_u32 << 20).to_le_bytes(); 2].concat());
        let value = Bytes::from(fake.repeat((2 << 20) / fake.len()));
        let ops = [Op { space: Space::Doc, key: Bytes::from_static(b"k"), value: Some(value) }];
        let mut bytes = Vec::new();
        encode(&ops, 1, &mut bytes);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("1.jnl");
        std::fs::write(&path, &bytes).unwrap();
        assert!(inspect(&path).unwrap().is_searched);
        bytes[20] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let found = inspect(&path).unwrap();
        assert_eq!((found.damaged_from, found.is_searched), (Some(0), false));
    }
}
