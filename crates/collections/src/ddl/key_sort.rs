//! Sorts the entries of an index that is being built, as bytes: in memory while they fit, else in
//! runs on disk that are merged.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::path::Path;

use quire_error::{Error, Result};

use crate::spill::{SpillReader, SpillWriter};

/// The size of a piece of memory that entries lie in. A longer entry has a piece of its own.
const SEGMENT_BYTES: usize = 1 << 20;

/// An entry in memory.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// The bytes of the key after those that all keys share: most comparisons end here.
    prefix: u64,
    segment: u32,
    start: u32,
    key_bytes: u32,
    value_bytes: u32,
}

/// The entries of one index, in any order.
#[derive(Default)]
pub(super) struct KeySorter {
    memory: Memory,
    runs: Vec<SpillReader>,
}

/// Entries in memory.
#[derive(Default)]
struct Memory {
    segments: Vec<Vec<u8>>,
    rows: Vec<Row>,
}

/// The entries of one index, by key and then by value.
pub(super) enum SortedRows {
    /// All of them fit into memory.
    Memory(MemoryRows),
    /// Runs that are merged.
    Merge(Merge),
}

/// Sorted entries in memory.
pub(super) struct MemoryRows {
    memory: Memory,
    next: usize,
}

/// Sorted runs, each with its least entry that is left. The top is the entry that was given out last.
pub(super) struct Merge {
    heads: BinaryHeap<Head>,
    is_given: bool,
}

/// The least entry of a run.
struct Head {
    key: Vec<u8>,
    value: Vec<u8>,
    run: Run,
}

enum Run {
    Memory(MemoryRows),
    Disk(SpillReader),
}

impl KeySorter {
    /// Adds an entry; key and value are given in two parts.
    pub fn add(&mut self, key: [&[u8]; 2], value: [&[u8]; 2]) -> Result<()> {
        let lengths = [key, value].map(|[one, other]| one.len() + other.len());
        let needed = lengths[0] + lengths[1];
        let segments = &mut self.memory.segments;
        let has_room = segments.last().is_some_and(|last| last.capacity() - last.len() >= needed);
        if !has_room {
            segments.push(Vec::with_capacity(needed.max(SEGMENT_BYTES)));
        }
        let number = segments.len() - 1;
        let Some(segment) = segments.last_mut() else { return Ok(()) };
        let start = segment.len();
        key.into_iter().chain(value).for_each(|part| segment.extend_from_slice(part));
        self.memory.rows.push(Row {
            prefix: 0,
            segment: short(number)?,
            start: short(start)?,
            key_bytes: short(lengths[0])?,
            value_bytes: short(lengths[1])?,
        });
        Ok(())
    }

    /// The memory that the entries take.
    pub fn memory_bytes(&self) -> usize {
        let segments = self.memory.segments.iter().map(Vec::capacity).sum::<usize>();
        segments + self.memory.rows.len() * size_of::<Row>()
    }

    /// Sorts what is in memory and writes it to a file in `directory`.
    pub fn spill(&mut self, directory: &Path) -> Result<()> {
        let mut rows = std::mem::take(&mut self.memory).sorted();
        let mut writer = SpillWriter::create(directory)?;
        while let Some((key, value)) = rows.next() {
            writer.write(&[key, value])?;
        }
        self.runs.push(writer.into_reader()?);
        Ok(())
    }

    /// Sorts what is left and gives all entries back.
    pub fn finish(self) -> Result<SortedRows> {
        let memory = self.memory.sorted();
        if self.runs.is_empty() {
            return Ok(SortedRows::Memory(memory));
        }
        let runs = self.runs.into_iter().map(Run::Disk).chain([Run::Memory(memory)]);
        let mut heads = BinaryHeap::new();
        for run in runs {
            let mut head = Head { key: Vec::new(), value: Vec::new(), run };
            if head.advance()? {
                heads.push(head);
            }
        }
        Ok(SortedRows::Merge(Merge { heads, is_given: false }))
    }
}

fn short(number: usize) -> Result<u32> {
    u32::try_from(number).map_err(|_| Error::internal("an index entry of 4 GiB"))
}

impl Memory {
    fn key(&self, row: &Row) -> &[u8] {
        let (start, len) = (row.start as usize, row.key_bytes as usize);
        let segment = self.segments.get(row.segment as usize);
        segment.and_then(|segment| segment.get(start..start + len)).unwrap_or(&[])
    }

    fn value(&self, row: &Row) -> &[u8] {
        let start = row.start as usize + row.key_bytes as usize;
        let segment = self.segments.get(row.segment as usize);
        let value =
            segment.and_then(|segment| segment.get(start..start + row.value_bytes as usize));
        value.unwrap_or(&[])
    }

    fn sorted(mut self) -> MemoryRows {
        let shared = self.shared_prefix();
        let mut rows = std::mem::take(&mut self.rows);
        for row in &mut rows {
            let mut prefix = [0; size_of::<u64>()];
            let rest = self.key(row).get(shared..).unwrap_or(&[]);
            prefix.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            row.prefix = u64::from_be_bytes(prefix);
        }
        rows.sort_unstable_by(|a, b| {
            let keys = || self.key(a).cmp(self.key(b));
            let values = || self.value(a).cmp(self.value(b));
            a.prefix.cmp(&b.prefix).then_with(keys).then_with(values)
        });
        self.rows = rows;
        MemoryRows { memory: self, next: 0 }
    }

    /// The number of bytes in which all keys begin alike.
    fn shared_prefix(&self) -> usize {
        let Some(first) = self.rows.first() else { return 0 };
        let first = self.key(first);
        self.rows.iter().fold(first.len(), |shared, row| {
            let alike = self.key(row).iter().zip(first).take(shared);
            alike.take_while(|(a, b)| a == b).count()
        })
    }
}

impl MemoryRows {
    fn next(&mut self) -> Option<(&[u8], &[u8])> {
        let row = self.memory.rows.get(self.next)?;
        self.next += 1;
        Some((self.memory.key(row), self.memory.value(row)))
    }
}

impl SortedRows {
    /// The next entry.
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        match self {
            SortedRows::Memory(rows) => Ok(rows.next()),
            SortedRows::Merge(merge) => merge.next(),
        }
    }
}

impl Merge {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if std::mem::replace(&mut self.is_given, true)
            && let Some(mut top) = self.heads.peek_mut()
            && !top.advance()?
        {
            PeekMut::pop(top);
        }
        Ok(self.heads.peek().map(|head| (&head.key[..], &head.value[..])))
    }
}

impl Head {
    /// Takes the next entry of the run; false at its end.
    fn advance(&mut self) -> Result<bool> {
        match &mut self.run {
            Run::Disk(file) => {
                Ok(file.read_into(&mut self.key)? && file.read_into(&mut self.value)?)
            }
            Run::Memory(rows) => {
                let Some((key, value)) = rows.next() else { return Ok(false) };
                self.key.clear();
                self.key.extend_from_slice(key);
                self.value.clear();
                self.value.extend_from_slice(value);
                Ok(true)
            }
        }
    }
}

/// The least entry is the greatest head: a heap gives out its greatest.
impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.cmp(&self.key).then_with(|| other.value.cmp(&self.value))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Head {}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<(Vec<u8>, Vec<u8>)> {
        // Keys with a common beginning, keys of which one begins with the other, one that is longer
        // than a segment, and equal keys with different values.
        let mut entries: Vec<_> = (0..5000u32)
            .map(|n| {
                let mixed = n.wrapping_mul(2_654_435_761);
                let mut key = b"same".to_vec();
                key.extend_from_slice(&mixed.to_be_bytes()[..1 + (n % 4) as usize]);
                (key, n.to_be_bytes().to_vec())
            })
            .collect();
        entries.push((b"same".to_vec(), vec![]));
        entries.push((b"same".iter().copied().chain(vec![7; SEGMENT_BYTES]).collect(), vec![1]));
        entries
    }

    fn sorted(spill_every: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut sorter = KeySorter::default();
        for (at, (key, value)) in entries().iter().enumerate() {
            let (head, tail) = key.split_at(key.len() / 2);
            sorter.add([head, tail], [value, &[]]).unwrap();
            if at % spill_every == spill_every - 1 {
                sorter.spill(&std::env::temp_dir()).unwrap();
                assert_eq!(sorter.memory_bytes(), 0);
            }
        }
        let (mut rows, mut out) = (sorter.finish().unwrap(), Vec::new());
        while let Some((key, value)) = rows.next().unwrap() {
            out.push((key.to_vec(), value.to_vec()));
        }
        out
    }

    #[test]
    fn entries_come_back_in_order_from_memory_and_from_disk() {
        let mut expected = entries();
        expected.sort();
        for spill_every in [usize::MAX, 5002, 900] {
            assert_eq!(sorted(spill_every), expected);
        }
        assert!(KeySorter::default().finish().unwrap().next().unwrap().is_none());
    }
}
