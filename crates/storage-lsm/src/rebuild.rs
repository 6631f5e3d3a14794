//! Builds a keyspace again from the readable rows of its tables: the newest row of every key, with
//! its sequence number, in new tables with new indexes and filters. The log, which holds newer rows
//! than the tables, is replayed over them at the next open.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use lsm_tree::table::Writer;
use lsm_tree::{CompressionType, InternalValue};
use quire_storage::{Bytes, Result, Space, StorageError};

use crate::manifest::{self, TableEntry};
use crate::table_file::Readable;
use crate::tuning::{TABLE_BYTES, block_bytes, restart_interval};

/// The level of the new tables: the lowest, because their keys do not overlap.
const LOWEST: u8 = 6;

/// The result of a rebuild.
#[derive(Default)]
pub(crate) struct Rebuilt {
    /// The rows that were written.
    pub rows: u64,
    /// The tables from which rows may be lost.
    pub damaged_tables: u64,
}

/// The next row of a table, ordered by key, and among equal keys the newest first.
struct Head {
    row: InternalValue,
    source: usize,
}

impl Head {
    fn order(&self) -> (&[u8], Reverse<u64>, usize) {
        (&self.row.key.user_key, Reverse(self.row.key.seqno), self.source)
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Head {}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Head {
    /// Reversed, because the heap returns the greatest and the smallest is wanted.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.order().cmp(&self.order())
    }
}

/// Fills the empty `keyspace` with the newest readable row of every key in `tables`.
pub(crate) fn fill(keyspace: &Path, space: Space, mut tables: Vec<Readable>) -> Result<Rebuilt> {
    let mut heap = BinaryHeap::new();
    for (source, table) in tables.iter_mut().enumerate() {
        heap.extend(table.next().map(|row| Head { row, source }));
    }
    let mut output = Output::new(keyspace, space);
    let mut last: Option<Bytes> = None;
    while let Some(Head { row, source }) = heap.pop() {
        let next = tables.get_mut(source).and_then(Iterator::next);
        heap.extend(next.map(|row| Head { row, source }));
        if last.as_deref().is_some_and(|last| *last == row.key.user_key[..]) {
            continue;
        }
        last = Some(Bytes::from(row.key.user_key.clone()));
        if !row.key.value_type.is_tombstone() {
            output.write(row)?;
        }
    }
    let rows = output.rows;
    let written = output.finish()?;
    manifest::write(keyspace, &written, LOWEST)?;
    let damaged_tables = tables.iter().filter(|table| table.has_lost).count();
    Ok(Rebuilt { rows, damaged_tables: u64::try_from(damaged_tables).unwrap_or(u64::MAX) })
}

/// The tables that are being written.
struct Output<'k> {
    keyspace: &'k Path,
    space: Space,
    writer: Option<Writer>,
    bytes: u64,
    rows: u64,
    written: Vec<TableEntry>,
}

impl<'k> Output<'k> {
    fn new(keyspace: &'k Path, space: Space) -> Self {
        Self { keyspace, space, writer: None, bytes: 0, rows: 0, written: Vec::new() }
    }

    fn write(&mut self, row: InternalValue) -> Result<()> {
        if self.bytes >= TABLE_BYTES {
            self.end_table()?;
        }
        if self.writer.is_none() {
            let id = u64::try_from(self.written.len()).unwrap_or(u64::MAX) + 1;
            let path = manifest::table_path(self.keyspace, id);
            let writer = Writer::new(path, id, LOWEST).map_err(failed)?;
            let writer = writer
                .use_data_block_size(block_bytes(self.space))
                .use_data_block_compression(CompressionType::Lz4)
                .use_data_block_restart_interval(restart_interval(self.space));
            self.writer = Some(writer);
        }
        let length = row.key.user_key.len() + row.value.len();
        self.bytes += u64::try_from(length).unwrap_or(u64::MAX);
        self.rows += 1;
        self.writer.as_mut().map_or(Ok(()), |writer| writer.write(row).map_err(failed))
    }

    fn end_table(&mut self) -> Result<()> {
        self.bytes = 0;
        let finished = self.writer.take().map(Writer::finish).transpose().map_err(failed)?;
        if let Some((id, checksum)) = finished.flatten() {
            self.written.push(TableEntry { id, checksum: checksum.into_u128(), seqno: 0 });
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<TableEntry>> {
        self.end_table()?;
        Ok(self.written)
    }
}

fn failed(error: lsm_tree::Error) -> StorageError {
    crate::error::storage(error, "writing a table")
}
