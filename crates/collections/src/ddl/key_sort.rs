//! Sorts the entries of an index that is being built, as bytes: in memory if they fit, else in runs
//! on disk that are merged.

use std::cell::Cell;
use std::cmp::Ordering;

use quire_error::{Error, Result};
use quire_mql::checked_sort;
use quire_mql::context::InterruptCheck;

use crate::key_order::{order_digits, shared_bytes};
use crate::sorted_runs::{MergedRuns, RunWriter, SortedRuns, Workspace};

/// The size of a memory segment for entries, in bytes. A longer entry has a segment of its own.
const SEGMENT_BYTES: usize = 1 << 20;

/// The entries in memory that are sorted between two checks of the interrupt: some ten
/// milliseconds. Tests sort few entries.
const SORTED_AT_ONCE: usize = if cfg!(test) { 500 } else { 1 << 18 };
/// The units of work between two checks while sorted entries are merged.
const CHECK_UNITS: u32 = if cfg!(test) { 1_000 } else { 1 << 16 };

/// An entry in memory.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// The first bytes of the key after those that all keys share: most comparisons need no more.
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
    runs: SortedRuns,
}

/// Entries in memory.
#[derive(Default)]
struct Memory {
    segments: Vec<Vec<u8>>,
    rows: Vec<Row>,
}

/// The entries of one index in key order. Entries with equal keys are in value order if their
/// values were added in ascending order, as record ids are.
pub(super) enum SortedRows {
    /// All entries are in memory.
    Memory(MemoryRows),
    /// The entries are merged from runs on disk.
    Runs(MergedRuns),
}

/// Sorted entries in memory.
pub(super) struct MemoryRows {
    memory: Memory,
    next: usize,
}

impl KeySorter {
    /// Adds an entry. The key and the value are given in two parts each.
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

    /// Returns the memory that the entries take, also while they are sorted.
    pub fn memory_bytes(&self) -> usize {
        let segments = self.memory.segments.iter().map(Vec::capacity).sum::<usize>();
        let rows = self.memory.rows.len() * size_of::<Row>();
        let merged = if self.memory.rows.len() > SORTED_AT_ONCE { rows } else { 0 };
        segments + rows + merged
    }

    /// Sorts the entries in memory and writes them to disk.
    pub fn spill(&mut self, workspace: Workspace<'_>) -> Result<()> {
        let rows = std::mem::take(&mut self.memory).sorted(workspace.interrupt)?;
        let mut run = RunWriter::create(workspace)?;
        for row in &rows.memory.rows {
            run.write(rows.memory.key(row), rows.memory.value(row))?;
        }
        self.runs.add(run, workspace)
    }

    /// Sorts the remaining entries and returns all of them.
    pub fn finish(mut self, workspace: Workspace<'_>) -> Result<SortedRows> {
        if self.runs.is_empty() {
            return Ok(SortedRows::Memory(self.memory.sorted(workspace.interrupt)?));
        }
        if !self.memory.rows.is_empty() {
            self.spill(workspace)?;
        }
        Ok(SortedRows::Runs(self.runs.merge(workspace)?))
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

    /// Sorts the entries in memory.
    fn sorted(mut self, interrupt: &dyn InterruptCheck) -> Result<MemoryRows> {
        let mut rows = std::mem::take(&mut self.rows);
        let shared = shared_bytes(rows.iter().map(|row| self.key(row)));
        for part in rows.chunks_mut(SORTED_AT_ONCE) {
            interrupt.check()?;
            for row in part {
                row.prefix = order_digits(self.key(row), shared);
            }
        }
        let left = Cell::new(0_u32);
        let work = |units| {
            let rest = left.get().checked_sub(units);
            left.set(rest.unwrap_or(CHECK_UNITS));
            if rest.is_some() { Ok(()) } else { interrupt.check() }
        };
        let order = |one: &Row, other: &Row| self.order(one, other);
        checked_sort::sort(&mut rows, SORTED_AT_ONCE, &work, order)?;
        self.rows = rows;
        Ok(MemoryRows { memory: self, next: 0 })
    }

    fn order(&self, one: &Row, other: &Row) -> Ordering {
        let keys = || self.key(one).cmp(self.key(other));
        let values = || self.value(one).cmp(self.value(other));
        one.prefix.cmp(&other.prefix).then_with(keys).then_with(values)
    }
}

impl SortedRows {
    /// Returns key and value of the next entry.
    fn peek(&self) -> Option<(&[u8], &[u8])> {
        match self {
            SortedRows::Memory(MemoryRows { memory, next }) => {
                let row = memory.rows.get(*next)?;
                Some((memory.key(row), memory.value(row)))
            }
            SortedRows::Runs(runs) => {
                let record = runs.peek()?;
                Some((&record.key, &record.payload))
            }
        }
    }

    /// Passes the next entry.
    fn pass(&mut self) -> Result<()> {
        match self {
            SortedRows::Memory(rows) => rows.next += 1,
            SortedRows::Runs(runs) => drop(runs.next_record()?),
        }
        Ok(())
    }
}

/// The entries that several threads have sorted, in one order: by key, and those of one key by
/// value.
#[derive(Default)]
pub(super) struct MergedRows {
    parts: Vec<SortedRows>,
}

/// The part that has the next entry.
pub(super) struct NextRow<'r>(&'r mut SortedRows);

impl MergedRows {
    /// Adds what one thread has sorted.
    pub fn add(&mut self, rows: SortedRows) {
        self.parts.push(rows);
    }

    /// Returns the next entry, which stays the next one until it is passed.
    pub fn next(&mut self) -> Option<NextRow<'_>> {
        let heads = self.parts.iter().enumerate().filter_map(|(at, part)| Some((part.peek()?, at)));
        let (_, at) = heads.min()?;
        self.parts.get_mut(at).map(NextRow)
    }
}

impl NextRow<'_> {
    /// Key and value.
    pub fn entry(&self) -> (&[u8], &[u8]) {
        self.0.peek().unwrap_or_default()
    }

    /// Goes on to the entry after it.
    pub fn pass(self) -> Result<()> {
        self.0.pass()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<(Vec<u8>, Vec<u8>)> {
        // Keys with a common prefix, keys that are prefixes of others, one that is longer than a
        // segment, and equal keys with different values.
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

    /// All entries, added to this number of sorters in turn.
    fn sorted(spill_every: usize, threads: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        let (directory, interrupt) = (std::env::temp_dir(), || Ok(()));
        let workspace =
            Workspace { directory: &directory, bytes_max: 1 << 20, interrupt: &interrupt };
        let mut sorters: Vec<KeySorter> = (0..threads).map(|_| KeySorter::default()).collect();
        for (at, (key, value)) in entries().iter().enumerate() {
            let (head, tail) = key.split_at(key.len() / 2);
            let sorter = &mut sorters[at % threads];
            sorter.add([head, tail], [value, &[]]).unwrap();
            if at % spill_every == spill_every - 1 {
                sorter.spill(workspace).unwrap();
                assert_eq!(sorter.memory_bytes(), 0);
            }
        }
        let (mut rows, mut out) = (MergedRows::default(), Vec::new());
        sorters.into_iter().for_each(|sorter| rows.add(sorter.finish(workspace).unwrap()));
        while let Some(row) = rows.next() {
            let (key, value) = row.entry();
            out.push((key.to_vec(), value.to_vec()));
            row.pass().unwrap();
        }
        out
    }

    /// A million entries were sorted in one piece, without a check of the interrupt.
    #[test]
    fn sorting_checks_the_interrupt() {
        let directory = std::env::temp_dir();
        let killed = || Err(Error::new(quire_error::ErrorCode::Interrupted, "killed"));
        let looks = std::sync::atomic::AtomicUsize::new(0);
        let counted = || {
            looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok(())
        };
        let with = |interrupt| {
            let mut sorter = KeySorter::default();
            for (key, value) in entries() {
                sorter.add([&key, &[]], [&value, &[]]).unwrap();
            }
            sorter.finish(Workspace { directory: &directory, bytes_max: 1 << 20, interrupt })
        };
        assert!(with(&killed).is_err());
        assert!(with(&counted).is_ok());
        // Each part once, and each of them again in every round of merging.
        let parts = entries().len() / SORTED_AT_ONCE;
        assert!(looks.into_inner() > 3 * parts);
    }

    #[test]
    fn entries_come_back_in_order_from_memory_and_from_disk() {
        let mut expected = entries();
        expected.sort();
        for spill_every in [usize::MAX, 5002, 900, 7] {
            for threads in [1, 3] {
                assert_eq!(sorted(spill_every, threads), expected);
            }
        }
    }
}
