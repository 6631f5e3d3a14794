//! Merges records that were sorted in memory and written to disk in runs, with a bounded number of
//! files: for the stages of a pipeline and for index builds.
//!
//! Every run has a level; a new run has level 0. When a level has as many runs as can be merged at
//! once, they are merged into one run of the next level (balanced merging: Knuth, TAOCP 3, 5.4.1).
//! So a record is written once for each level, and few files are open however much is sorted.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::path::Path;

use quire_error::{Error, Result};
use quire_mql::context::InterruptCheck;

use crate::spill::{READ_BUFFER_BYTES, SpillReader, SpillWriter};

/// The largest number of runs that are merged at once.
const FAN_IN_MAX: usize = 64;

/// The number of records between two checks of the interrupt.
const INTERRUPT_RECORDS: usize = 1024;

/// The resources of a sort on disk.
#[derive(Clone, Copy)]
pub struct Workspace<'e> {
    /// The directory of the files.
    pub directory: &'e Path,
    /// The memory that the sort may use, in bytes.
    pub bytes_max: usize,
    /// Returns an error if the operation must end.
    pub interrupt: &'e dyn InterruptCheck,
}

/// A run that is being written, in ascending order of keys.
pub struct RunWriter {
    file: SpillWriter,
    /// The size of the largest record, in bytes.
    largest: usize,
}

/// The runs of one sort: the earliest first, which have the highest levels.
#[derive(Default)]
pub struct SortedRuns {
    runs: Vec<RunOnDisk>,
    /// The size of the largest record, in bytes.
    largest: usize,
}

/// A complete run.
struct RunOnDisk {
    file: SpillReader,
    level: u32,
}

/// The merged records of several runs in key order; records with equal keys are in the order of
/// their runs.
pub struct MergedRuns {
    files: Vec<SpillReader>,
    heads: BinaryHeap<Head>,
}

/// The next record of a run.
struct Head {
    record: SortedRecord,
    run: usize,
}

/// A record of a run.
pub struct SortedRecord {
    /// The sort key.
    pub key: Vec<u8>,
    /// The data of the record.
    pub payload: Vec<u8>,
}

impl RunWriter {
    /// Creates a run in a new file.
    pub fn create(workspace: Workspace<'_>) -> Result<Self> {
        Ok(RunWriter { file: SpillWriter::create(workspace.directory)?, largest: 0 })
    }

    /// Appends a record. Its key must not be less than that of the record before.
    pub fn write(&mut self, key: &[u8], payload: &[u8]) -> Result<()> {
        self.largest = self.largest.max(key.len() + payload.len());
        self.file.write(&[key, payload])
    }
}

impl SortedRuns {
    /// Returns true before the first run.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Adds the next run, and merges the runs of a level when it is full.
    pub fn add(&mut self, run: RunWriter, workspace: Workspace<'_>) -> Result<()> {
        self.push(run, 0)?;
        while let Some(level) = self.full_level(self.fan_in(workspace)) {
            let first = self.runs.partition_point(|run| run.level > level);
            self.merge_from(first, level + 1, workspace)?;
        }
        Ok(())
    }

    fn push(&mut self, run: RunWriter, level: u32) -> Result<()> {
        self.largest = self.largest.max(run.largest);
        self.runs.push(RunOnDisk { file: run.file.into_reader()?, level });
        Ok(())
    }

    /// Returns the number of runs whose buffers and next records fit into the memory of the sort.
    fn fan_in(&self, workspace: Workspace<'_>) -> usize {
        let each = READ_BUFFER_BYTES + self.largest;
        (workspace.bytes_max / each).clamp(2, FAN_IN_MAX)
    }

    /// Returns the lowest level, if it has `fan_in` runs.
    fn full_level(&self, fan_in: usize) -> Option<u32> {
        let level = self.runs.last()?.level;
        let count = self.runs.iter().rev().take_while(|run| run.level == level).count();
        (count >= fan_in).then_some(level)
    }

    /// Merges the runs from `first` on into one.
    fn merge_from(&mut self, first: usize, level: u32, workspace: Workspace<'_>) -> Result<()> {
        let files = self.runs.drain(first..).map(|run| run.file).collect();
        let (mut merged, mut run) = (MergedRuns::new(files)?, RunWriter::create(workspace)?);
        let mut written = 0usize;
        while let Some(record) = merged.next_record()? {
            if written.is_multiple_of(INTERRUPT_RECORDS) {
                workspace.interrupt.check()?;
            }
            written += 1;
            run.write(&record.key, &record.payload)?;
        }
        self.push(run, level)
    }

    /// Returns all records, merged.
    pub fn merge(mut self, workspace: Workspace<'_>) -> Result<MergedRuns> {
        let fan_in = self.fan_in(workspace);
        while self.runs.len() > fan_in {
            // The last runs are the smallest.
            let first = self.runs.len() - fan_in.min(self.runs.len() - fan_in + 1);
            let level = self.runs.get(first).map_or(0, |run| run.level);
            self.merge_from(first, level, workspace)?;
        }
        MergedRuns::new(self.runs.into_iter().map(|run| run.file).collect())
    }
}

impl MergedRuns {
    fn new(mut files: Vec<SpillReader>) -> Result<Self> {
        let mut heads = BinaryHeap::with_capacity(files.len());
        for (run, file) in files.iter_mut().enumerate() {
            if let Some(record) = read_record(file)? {
                heads.push(Head { record, run });
            }
        }
        Ok(MergedRuns { files, heads })
    }

    /// Returns true if there are no more records.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Returns the key of the next record.
    pub fn next_key(&self) -> Option<&[u8]> {
        self.heads.peek().map(|head| &head.record.key[..])
    }

    /// Returns the next record, which stays the next one.
    pub fn peek(&self) -> Option<&SortedRecord> {
        self.heads.peek().map(|head| &head.record)
    }

    /// Returns the next record.
    pub fn next_record(&mut self) -> Result<Option<SortedRecord>> {
        let Some(mut head) = self.heads.peek_mut() else { return Ok(None) };
        let following = match self.files.get_mut(head.run) {
            Some(file) => read_record(file)?,
            None => None,
        };
        Ok(Some(match following {
            Some(following) => std::mem::replace(&mut head.record, following),
            None => PeekMut::pop(head).record,
        }))
    }
}

fn read_record(file: &mut SpillReader) -> Result<Option<SortedRecord>> {
    let Some(key) = file.read()? else { return Ok(None) };
    let payload = file.read()?.ok_or_else(|| Error::internal("a spilled run ended early"))?;
    Ok(Some(SortedRecord { key, payload }))
}

/// Reversed, because the heap returns its greatest element.
impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        other.record.key.cmp(&self.record.key).then(other.run.cmp(&self.run))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_error::ErrorCode;

    /// Calls `body` with a workspace of `bytes_max` bytes.
    fn with_workspace<T>(bytes_max: usize, body: impl FnOnce(Workspace<'_>) -> T) -> T {
        let (directory, interrupt) = (std::env::temp_dir(), || Ok(()));
        body(Workspace { directory: &directory, bytes_max, interrupt: &interrupt })
    }

    /// Adds runs of three records each, with seven different keys. The payload is the number of the
    /// record.
    fn add_runs(
        runs: &mut SortedRuns,
        count: u32,
        padding: usize,
        workspace: Workspace<'_>,
    ) -> Result<()> {
        for at in 0..count {
            let mut run = RunWriter::create(workspace)?;
            let mut keys: Vec<u8> = (0..3).map(|n| ((at * 5 + n * 3) % 7) as u8).collect();
            keys.sort_unstable();
            for (n, key) in keys.iter().enumerate() {
                let mut payload = (at * 3 + n as u32).to_be_bytes().to_vec();
                payload.resize(4 + padding, 0);
                run.write(&[*key], &payload)?;
            }
            runs.add(run, workspace)?;
        }
        Ok(())
    }

    fn open_files_and_records(count: u32, stage_bytes_max: usize) -> (usize, Vec<(u8, u32)>) {
        with_workspace(stage_bytes_max, |workspace| {
            let mut runs = SortedRuns::default();
            add_runs(&mut runs, count, 0, workspace).unwrap();
            let open = runs.runs.len();
            let (mut merged, mut records) = (runs.merge(workspace).unwrap(), Vec::new());
            while let Some(record) = merged.next_record().unwrap() {
                let written = u32::from_be_bytes(record.payload[..].try_into().unwrap());
                records.push((record.key[0], written));
            }
            assert!(merged.is_empty());
            (open, records)
        })
    }

    #[test]
    fn many_runs_are_merged_in_passes_and_equal_keys_keep_their_order() {
        let (open, expected) = open_files_and_records(300, usize::MAX);
        assert_eq!((open, expected.len()), (4 + 300 % 64, 900));
        assert!(expected.is_sorted(), "by key and then by the time of writing");
        // With memory for two runs the levels work like a binary counter: one run for each bit that
        // is set.
        for count in [1, 2, 3, 127, 300] {
            let (open, records) = open_files_and_records(count, 1);
            assert_eq!(open, count.count_ones() as usize);
            assert!(records.is_sorted());
            assert_eq!(records.len(), count as usize * 3);
        }
    }

    #[test]
    fn large_records_are_merged_from_fewer_runs() {
        with_workspace(10 << 20, |workspace| {
            let mut runs = SortedRuns::default();
            assert_eq!(runs.fan_in(workspace), FAN_IN_MAX);
            add_runs(&mut runs, 1, 1 << 20, workspace).unwrap();
            assert_eq!(runs.fan_in(workspace), 9);
        });
    }

    #[test]
    fn a_merge_notices_the_interrupt() {
        with_workspace(1, |workspace| {
            let mut runs = SortedRuns::default();
            add_runs(&mut runs, 1, 0, workspace).unwrap();
            let killed = || Err(Error::new(ErrorCode::Interrupted, "killed"));
            let workspace = Workspace { interrupt: &killed, ..workspace };
            let error = add_runs(&mut runs, 1, 0, workspace).unwrap_err();
            assert_eq!(error.code(), ErrorCode::Interrupted);
        });
    }
}
