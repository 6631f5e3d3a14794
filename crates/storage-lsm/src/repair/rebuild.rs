//! Builds a keyspace again from the readable rows of its tables: the newest row of every key, with
//! its sequence number, in new tables with new indexes and filters. The log, which holds newer rows
//! than the tables, is replayed over them at the next open.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use lsm_tree::{CompressionType, InternalValue};
use quire_storage::{Bytes, Result, Space, StorageError};

use crate::table::file::Readable;
use crate::table::manifest;
use crate::table::output::Output;
use crate::table::tuning::{LEVELS, TABLE_BYTES, filter_bits};
use crate::table::writer::{Kind, NewRow};

/// The level of the new tables: the lowest, because their keys do not overlap.
const LOWEST: u8 = LEVELS - 1;

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
    let compression = CompressionType::Lz4;
    let filter_bits = filter_bits(space, LOWEST);
    let kind = Kind { space, level: LOWEST, compression, filter_bits };
    let mut number = 0;
    let next_number = || {
        number += 1;
        number
    };
    let mut output = Output::new(keyspace, kind, TABLE_BYTES, next_number);
    let mut rows = 0;
    let mut last: Option<Bytes> = None;
    while let Some(Head { row, source }) = heap.pop() {
        let next = tables.get_mut(source).and_then(Iterator::next);
        heap.extend(next.map(|row| Head { row, source }));
        if last.as_deref().is_some_and(|last| *last == row.key.user_key[..]) {
            continue;
        }
        last = Some(Bytes::from(row.key.user_key.clone()));
        if !row.key.value_type.is_tombstone() {
            let (key, seqno) = (&row.key.user_key[..], row.key.seqno);
            output.write(NewRow { key, seqno, value: Some(&row.value) }).map_err(failed)?;
            rows += 1;
        }
    }
    let written = output.finish().map_err(failed)?;
    manifest::write(keyspace, &written, LOWEST)?;
    let damaged_tables = tables.iter().filter(|table| table.has_lost).count();
    Ok(Rebuilt { rows, damaged_tables: u64::try_from(damaged_tables).unwrap_or(u64::MAX) })
}

fn failed(error: lsm_tree::Error) -> StorageError {
    crate::error::storage(error, "writing a table")
}
