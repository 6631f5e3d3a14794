//! Estimates which part of the tables of a space is hidden: rows whose key has a newer row, which overwrites or deletes
//! it, in a memtable or in another table. They occupy the disk until a merge meets both.
//!
//! lsm-tree counts tombstones and not overwritten rows, and the metadata of tables cannot tell new keys from changed
//! ones. So a few keys of each memtable and of each table above others are looked up in what lies below. The estimate
//! needs no counters on the way of a write, and holds after a restart.

use lsm_tree::{InternalValue, SeqNo, Table};
use quire_storage::Result;

use crate::error::storage;
use crate::memory::memtable::{Memtable, hash_of};
use crate::store::view::SpaceView;
use crate::table::opened::OpenTable;
use crate::table::trees::TableList;

/// The keys that are looked up, in all, and of one memtable or table.
const SAMPLES_MAX: usize = 1024;
const SAMPLES_OF_ONE: usize = 64;
const SAMPLES_OF_ONE_MIN: usize = 4;

/// What is hidden in the tables of a space.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Hidden {
    /// The bytes of hidden rows.
    pub bytes: u64,
    /// The part of `bytes` that rows of memtables hide.
    pub by_memtables: u64,
    /// The bytes of the tables that overlap with another table, or with a memtable that hides rows. A merge of these
    /// tables reads as many bytes.
    pub overlapping: u64,
}

/// Rows, some of whose keys are looked up.
struct Sample {
    keys: Vec<Vec<u8>>,
    /// The number of rows of which these are the keys.
    rows: u64,
}

/// Estimates what is hidden in the tables of a space.
pub(crate) fn estimate(view: &SpaceView) -> Result<Hidden> {
    let list = &*view.tables;
    let mut hidden = Hidden::default();
    for memtable in view.memtables.iter().filter(|memtable| !memtable.is_empty()) {
        hidden.by_memtables += bytes_below(&sample_of_memtable(memtable), list, 0)?;
    }
    let above: Vec<(usize, &Table)> = tables_above(list).collect();
    let of_one = (SAMPLES_MAX / above.len().max(1)).clamp(SAMPLES_OF_ONE_MIN, SAMPLES_OF_ONE);
    // Of very many tables only some are looked at.
    let step = (above.len() * of_one).div_ceil(SAMPLES_MAX).max(1);
    for (run, table) in above.iter().step_by(step) {
        for sample in samples_of_table(list, table, of_one)? {
            hidden.bytes += step as u64 * bytes_below(&sample, list, run + 1)?;
        }
    }
    hidden.bytes += hidden.by_memtables;
    hidden.overlapping = match hidden.by_memtables {
        0 => overlapping_bytes(list),
        _ => list.bytes(),
    };
    Ok(hidden)
}

/// Returns the tables that overlap with an older one, each with the number of its run.
fn tables_above(list: &TableList) -> impl Iterator<Item = (usize, &Table)> {
    let runs = list.runs.iter().enumerate();
    let tables = runs.flat_map(|(run, tables)| tables.iter().map(move |table| (run, table)));
    tables.filter(|(run, table)| list.runs.iter().skip(run + 1).any(|older| overlaps(older, table)))
}

/// Returns true if a table of a run overlaps with `table`.
fn overlaps(run: &[Table], table: &Table) -> bool {
    let keys = &table.metadata.key_range;
    let first = run.partition_point(|other| other.metadata.key_range.max() < keys.min());
    run.get(first).is_some_and(|other| other.metadata.key_range.min() <= keys.max())
}

fn overlapping_bytes(list: &TableList) -> u64 {
    let runs = list.runs.iter().enumerate();
    let tables = runs.flat_map(|(run, tables)| tables.iter().map(move |table| (run, table)));
    let overlapping = tables.filter(|(run, table)| {
        let others = list.runs.iter().enumerate().filter(|(other, _)| other != run);
        others.into_iter().any(|(_, other)| overlaps(other, table))
    });
    overlapping.map(|(_, table)| table.metadata.file_size).sum()
}

/// Returns the bytes of the rows that rows with a key of a sample hide, in the runs from `first` on.
fn bytes_below(sample: &Sample, list: &TableList, first: usize) -> Result<u64> {
    let mut found = 0;
    for key in &sample.keys {
        for run in list.runs.iter().skip(first) {
            let at = run.partition_point(|table| table.metadata.key_range.max()[..] < **key);
            let Some(table) = run.get(at).filter(|it| it.metadata.key_range.min()[..] <= **key)
            else {
                continue;
            };
            if look_up(table, key)?.is_some() {
                found += table.metadata.file_size / table.metadata.item_count.max(1);
                break;
            }
        }
    }
    let bytes = u128::from(found) * u128::from(sample.rows);
    let bytes = bytes / (sample.keys.len().max(1) as u128);
    Ok(u64::try_from(bytes).unwrap_or(u64::MAX))
}

fn sample_of_memtable(memtable: &Memtable) -> Sample {
    let (keys, rows) = memtable.sample_keys(SAMPLES_OF_ONE);
    Sample { keys, rows }
}

/// Returns samples of the tombstones and of the other rows of a table. Each stands for its own number of rows: a
/// tombstone is short, so that of keys at equal distances in bytes too few are those of tombstones.
fn samples_of_table(list: &TableList, table: &Table, count: usize) -> Result<[Sample; 2]> {
    let deleted = table.metadata.tombstone_count.min(table.metadata.item_count);
    let mut tombstones = Sample { keys: Vec::new(), rows: deleted };
    let mut others = Sample { keys: Vec::new(), rows: table.metadata.item_count - deleted };
    for key in keys_of_table(list, table, count)? {
        let row = if deleted == 0 { None } else { look_up(table, &key)? };
        let sample = match row {
            Some(row) if row.is_tombstone() => &mut tombstones,
            _ => &mut others,
        };
        sample.keys.push(key);
    }
    Ok([tombstones, others])
}

/// Returns the last keys of `count` blocks of a table, at equal distances.
fn keys_of_table(list: &TableList, table: &Table, count: usize) -> Result<Vec<Vec<u8>>> {
    let blocks = usize::try_from(table.metadata.data_block_count).unwrap_or(usize::MAX);
    let (step, mut number) = ((blocks / count).max(1), 0);
    let mut keys = Vec::new();
    let mut take = |last_key: &[u8]| {
        if number % step == 0 {
            keys.push(last_key.to_vec());
        }
        number += 1;
        true
    };
    let open = OpenTable::new(list, table);
    let read =
        open.top().and_then(|top| open.entries(&top, &[], &mut |entry| take(entry.last_key)));
    read.map_err(|error| storage(error, "estimating what is hidden"))?;
    Ok(keys)
}

fn look_up(table: &Table, key: &[u8]) -> Result<Option<InternalValue>> {
    let row = table.get(key, SeqNo::MAX, hash_of(key));
    row.map_err(|error| storage(error, "estimating what is hidden"))
}
