//! Making a keyspace again from what can be read of its tables: the newest row of every key, with its
//! sequence number, in new tables with new indexes and filters. The log, which holds what is newer
//! than the tables, is read again over them at the next open.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use fjall::CompressionType;
use lsm_tree::InternalValue;
use lsm_tree::table::Writer;
use quire_storage::{Bytes, Result, Space, StorageError};

use crate::manifest::{self, TableEntry};
use crate::table_file::Readable;
use crate::tuning::{TABLE_BYTES, block_bytes, restart_interval};

/// The level that new tables stand in: the lowest, since no key is in two of them.
const LOWEST: u8 = 6;

/// What was made.
#[derive(Default)]
pub(crate) struct Rebuilt {
    /// Rows that were written.
    pub rows: u64,
    /// Tables in which rows may be lost.
    pub damaged_tables: u64,
}

/// A table's next row, ordered by key, newest first.
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
    /// The smallest is the greatest: heaps give the greatest.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.order().cmp(&self.order())
    }
}

/// Fills `keyspace`, an empty one, with the newest readable row of every key in `tables`.
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

/// The tables that are written.
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
    crate::error::storage(error.into(), "writing a table")
}
