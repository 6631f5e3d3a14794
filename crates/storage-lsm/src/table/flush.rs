//! Writes the rows of a sealed memtable to tables.
//!
//! Compression takes half of the instructions of a flush. Index entries are written as they are if
//! they overlap with other tables: then a merge soon rewrites them, and compresses what it writes.
//! Documents that compression would hardly make smaller are written as they are too: a sample of them
//! is compressed first. Tables with rising record ids move down the levels unchanged, so this is
//! decided once for most documents.
//!
//! The documents of a collection that overlap with no table, as new documents do, get tables of
//! their own if they are many: such a table moves down without a merge, and one with documents of
//! several collections does not.

use std::cell::RefCell;
use std::convert::Infallible;
use std::path::Path;

use lsm_tree::{AbstractTree, Checksum, CompressionType, KeyRange, Result, Table, Tree, UserKey};
use quire_storage::{Space, prefix_end};

use crate::memory::memtable::Memtable;
use crate::memory::row_tree::Row;
use crate::table::manifest::{self, TableEntry};
use crate::table::output::Output;
use crate::table::tuning::{LEVELS, PART_BYTES, TABLE_BYTES, filter_bits};
use crate::table::writer::{Kind, NewRow};

/// The number of samples that are compressed to see what it saves, and the bytes of each.
const SAMPLES: usize = 16;
const SAMPLE_BYTES: usize = 16 << 10;
/// Rows are compressed if that saves at least this part of their bytes, one eighth.
const LEAST_SAVING: usize = 8;

/// The tables of a memtable.
pub(crate) struct Flushed {
    /// Tables that overlap with no other one. They may be used one by one.
    pub apart: Vec<Table>,
    /// The other tables. They must be used together, and last.
    pub rest: Vec<Table>,
}

/// Writes the newest row of each key to tables for the first level, in ascending order. Older
/// versions are not written: a snapshot that sees them keeps the memtable. `next` is the first batch
/// in the memtable after this one.
///
/// After a crash, the log is replayed from the newest batch in any table on. So no row is written
/// with a batch beyond which rows can be missing in the tables: late rows, which are newer than the
/// first rows of the next memtable, get the batch before `next`, and rows that may be in use before
/// the others of this memtable get the batch before its first one. This keeps the order of the
/// versions of a key: the rows of earlier memtables are older than that, and rows apart are the only
/// ones of their keys.
///
/// If it fails, it has removed what it wrote: the disk may be full.
pub(crate) fn write(tree: &Tree, space: Space, memtable: &Memtable, next: u64) -> Result<Flushed> {
    let created = RefCell::new(Vec::new());
    let next_number = || {
        let number = tree.get_next_table_id();
        created.borrow_mut().push(number);
        number
    };
    let flushed = write_tables(tree, space, memtable, next, &next_number);
    if flushed.is_err() {
        for number in created.take() {
            let _ = std::fs::remove_file(manifest::table_path(&tree.config.path, number));
        }
    }
    flushed
}

fn write_tables(
    tree: &Tree,
    space: Space,
    memtable: &Memtable,
    next: u64,
    next_number: &dyn Fn() -> u64,
) -> Result<Flushed> {
    let keyspace: &Path = &tree.config.path;
    let before = memtable.first_seqno().saturating_sub(1);
    let before_next = next.saturating_sub(1);
    let keys = keys_of(memtable);
    let is_merged = space == Space::Idx && keys.is_some_and(|keys| overlaps(tree, &keys));
    let compression = if is_merged { CompressionType::None } else { compression(space, memtable) };
    // Tables that no merge rewrites have the filters of the lowest level, where they stay.
    let filter_bits = filter_bits(space, if is_merged { 0 } else { LEVELS - 1 });
    let kind = Kind { space, level: 0, compression, filter_bits };
    // Most memtables fit into one.
    let output = || Output::new(keyspace, kind, 2 * TABLE_BYTES, next_number);
    let open_all = |written: Vec<TableEntry>| -> Result<Vec<Table>> {
        written.iter().map(|entry| open(tree, keyspace, entry)).collect()
    };
    // While flushed tables wait for a merge, none moves down.
    let splits = space == Space::Doc && tree.current_version().l0().is_empty();
    let collections_apart = if splits { collections_apart(tree, memtable) } else { Vec::new() };
    let mut rest = output();
    let mut written_apart = Vec::new();
    let mut apart: Option<(Collection, Output<'_, _>)> = None;
    memtable.try_for_each(|row| {
        let collection = collection_of(row.key);
        if let Some((_, ended)) = apart.take_if(|(of, _)| Some(*of) != collection) {
            written_apart.extend(ended.finish()?);
        }
        if apart.is_none()
            && let Some(own) = collection.filter(|own| collections_apart.contains(own))
        {
            rest.end_table()?;
            apart = Some((own, output()));
        }
        match &mut apart {
            Some((_, apart)) => apart.write(as_of(row, before)),
            None => rest.write(as_of(row, before_next)),
        }
    })?;
    if let Some((_, ended)) = apart {
        written_apart.extend(ended.finish()?);
    }
    // An open file keeps its space, so none is opened before all are written.
    let written = rest.finish()?;
    Ok(Flushed { apart: open_all(written_apart)?, rest: open_all(written)? })
}

/// Returns the row as if it had been written by batch `seqno`, unless an earlier one wrote it.
fn as_of<'r>(row: &Row<'r>, seqno: u64) -> NewRow<'r> {
    NewRow { key: row.key, seqno: row.seqno.min(seqno), value: row.value.as_deref() }
}

/// The bytes of a document's key that stand for its collection.
type Collection = [u8; 4];

fn collection_of(key: &[u8]) -> Option<Collection> {
    key.first_chunk().copied()
}

/// Returns the collections whose documents are many and overlap with no table.
fn collections_apart(tree: &Tree, memtable: &Memtable) -> Vec<Collection> {
    struct Documents {
        of: Option<Collection>,
        first: UserKey,
        bytes: u64,
    }
    let mut collections: Vec<Documents> = Vec::new();
    let Ok(()) = memtable.try_for_each(|row| {
        let (of, bytes) = (collection_of(row.key), as_of(row, 0).bytes() as u64);
        match collections.last_mut().filter(|last| last.of == of) {
            Some(last) => last.bytes += bytes,
            None => collections.push(Documents { of, first: UserKey::from(row.key), bytes }),
        }
        Ok::<(), Infallible>(())
    });
    collections.retain(|documents| documents.bytes >= PART_BYTES);
    let apart = collections.into_iter().filter_map(|Documents { of, first, .. }| {
        let end = prefix_end(&of?);
        let last = last_below(memtable, &end).unwrap_or_else(|| first.clone());
        if overlaps(tree, &KeyRange::new((first, last))) { None } else { of }
    });
    apart.collect()
}

/// Returns the range of all keys; `None` if there are none.
fn keys_of(memtable: &Memtable) -> Option<KeyRange> {
    let mut first = Vec::new();
    memtable.read(&[], u64::MAX, 1, &mut first);
    Some(KeyRange::new((UserKey::from(first.pop()?.key), last_below(memtable, &[])?)))
}

/// Returns the last key below `end`, or the last of all if that is empty.
fn last_below(memtable: &Memtable, end: &[u8]) -> Option<UserKey> {
    let mut last = Vec::new();
    memtable.read_back(end, u64::MAX, 1, &mut last);
    Some(UserKey::from(last.pop()?.key))
}

/// Returns true if a table has keys between the first and the last of `keys`.
fn overlaps(tree: &Tree, keys: &KeyRange) -> bool {
    let version = tree.current_version();
    let mut runs = version.iter_levels().flat_map(|level| level.iter());
    runs.any(|run| !run.get_overlapping(keys).is_empty())
}

/// Returns how the rows of a memtable are compressed.
fn compression(space: Space, memtable: &Memtable) -> CompressionType {
    if space != Space::Doc {
        return CompressionType::Lz4;
    }
    let (mut plain, mut compressed) = (0, 0);
    for sample in memtable.samples(SAMPLES, SAMPLE_BYTES) {
        plain += sample.len();
        compressed += lz4_flex::block::compress(&sample).len();
    }
    if compressed > plain - plain / LEAST_SAVING {
        CompressionType::None
    } else {
        CompressionType::Lz4
    }
}

/// Opens a new table of the first level. Its filter and its index stay in memory.
fn open(tree: &Tree, keyspace: &Path, entry: &TableEntry) -> Result<Table> {
    let path = manifest::table_path(keyspace, entry.id);
    let checksum = Checksum::from_raw(entry.checksum);
    let (cache, files) = (tree.config.cache.clone(), tree.config.descriptor_table.clone());
    Table::recover(path, checksum, entry.seqno, tree.id(), cache, files, true, true)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use quire_storage::rng::Rng;

    use super::*;
    use crate::table::file::Readable;
    use crate::table::trees::Trees;

    #[test]
    fn rows_are_compressed_if_that_pays_and_are_readable_without_lsm_tree() {
        let dir = tempfile::tempdir().unwrap();
        let trees = Trees::open(dir.path(), 1 << 20, &Arc::default()).unwrap();
        let mut rng = Rng::new(1);
        let noise: Vec<u8> = (0..2_000_000).map(|_| rng.below(256) as u8).collect();
        let text = b"a document compresses well ".repeat(80_000);
        for (space, bytes, expected) in [
            (Space::Doc, &noise, CompressionType::None),
            (Space::Doc, &text, CompressionType::Lz4),
            (Space::Idx, &noise, CompressionType::Lz4),
        ] {
            let memtable = Memtable::new(0);
            for (number, value) in bytes.chunks(1000).enumerate() {
                let value = Some(Bytes::copy_from_slice(value));
                memtable.write([(&number.to_be_bytes()[..], value)].into_iter(), 1, 1);
            }
            let tables = write(trees.of(space), space, &memtable, 2).unwrap();
            let tables = [tables.apart, tables.rest].concat();
            let [table] = &tables[..] else { panic!("{} tables", tables.len()) };
            assert_eq!(table.metadata.data_block_compression, expected);
            let readable = Readable::find(&table.path, 0);
            let read: Vec<u8> = readable.flat_map(|row| row.value.to_vec()).collect();
            assert!(read == *bytes);
        }
    }

    /// Entries that rise move down the levels as they are: each of their tables stays.
    #[test]
    fn index_entries_are_not_compressed_if_a_merge_follows() {
        let dir = tempfile::tempdir().unwrap();
        let trees = Trees::open(dir.path(), 1 << 20, &Arc::default()).unwrap();
        let tree = trees.of(Space::Idx);
        let (plain, compressed) = (CompressionType::None, CompressionType::Lz4);
        for (first, expected) in [(0, compressed), (5000, compressed), (3000, plain)] {
            let memtable = Memtable::new(0);
            let keys: Vec<[u8; 8]> = (first..first + 4000_u64).map(u64::to_be_bytes).collect();
            let rows = keys.iter().map(|key| (&key[..], Some(Bytes::new())));
            memtable.write(rows, first + 1, 1);
            let tables = write(tree, Space::Idx, &memtable, u64::MAX).unwrap().rest;
            assert_eq!(tables[0].metadata.data_block_compression, expected);
            let bits = tables[0].filter_size() * 8 / 4000;
            assert_eq!(bits, if expected == plain { 16 } else { 10 });
            tree.register_tables(&tables, None, None, &[], crate::table::trees::NO_SNAPSHOT)
                .unwrap();
        }
    }

    /// Returns a memtable with this many megabytes of documents in each collection, from record
    /// `first` on. Batches 5 and 8 wrote them.
    fn filled(first: u64, collections: &[(u32, u64)]) -> Memtable {
        let memtable = Memtable::new(0);
        for (collection, megabytes) in collections {
            for number in first..first + 4 * megabytes + 1 {
                let key = [&collection.to_be_bytes()[..], &number.to_be_bytes()].concat();
                let value = Some(Bytes::from(vec![7; (1 << 18) - key.len()]));
                memtable.write([(&key[..], value)].into_iter(), 5 + 3 * (number % 2), 1);
            }
        }
        memtable
    }

    #[test]
    fn many_new_documents_of_a_collection_get_tables_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let trees = Trees::open(dir.path(), 1 << 20, &Arc::default()).unwrap();
        let tree = trees.of(Space::Doc);
        let flushed = |first, collections: &[(u32, u64)]| {
            write(tree, Space::Doc, &filled(first, collections), u64::MAX).unwrap()
        };
        let ends = |tables: &[Table]| -> Vec<[u8; 2]> {
            let keys = tables.iter().map(|table| &table.metadata.key_range);
            keys.map(|keys| [keys.min()[3], keys.max()[3]]).collect()
        };
        let register = |tables: &[Table]| {
            tree.register_tables(tables, None, None, &[], crate::table::trees::NO_SNAPSHOT)
                .unwrap();
        };
        let first = flushed(100, &[(1, 1), (2, 1), (3, 4), (4, 1), (5, 9)]);
        assert_eq!(ends(&first.apart), [[3, 3], [5, 5]]);
        assert_eq!(ends(&first.rest), [[1, 2], [4, 4]]);
        for table in &first.apart {
            register(std::slice::from_ref(table));
            trees.move_flushed(Space::Doc).unwrap();
        }
        assert!(tree.current_version().l0().is_empty());
        // Documents of collection 3 that are there already are not new.
        let second = flushed(101, &[(3, 5), (6, 4), (7, 0)]);
        assert_eq!((ends(&second.apart), ends(&second.rest)), (vec![[6, 6]], vec![[3, 3], [7, 7]]));
        register(&second.rest);
        trees.move_flushed(Space::Doc).unwrap();
        // No table moves down while these wait for a merge.
        let third = flushed(900, &[(8, 5), (9, 5)]);
        assert_eq!((ends(&third.apart), ends(&third.rest)), (vec![], vec![[8, 9]]));
    }

    /// After a crash, the log is replayed from the newest batch in any table on.
    #[test]
    fn tables_have_no_batch_beyond_which_rows_can_be_missing() {
        let dir = tempfile::tempdir().unwrap();
        let trees = Trees::open(dir.path(), 1 << 20, &Arc::default()).unwrap();
        let tree = trees.of(Space::Doc);
        for (next, newest) in [(u64::MAX, 8), (9, 8), (8, 7), (6, 5)] {
            let tables = write(tree, Space::Doc, &filled(1, &[(1, 4), (2, 1)]), next).unwrap();
            let seqnos = |tables: &[Table]| {
                let seqnos = || Readable::find(&tables[0].path, 0).map(|row| row.key.seqno);
                (seqnos().min().unwrap(), seqnos().max().unwrap())
            };
            assert_eq!(seqnos(&tables.apart), (4, 4));
            assert_eq!(seqnos(&tables.rest), (5, newest));
        }
    }
}
