//! Writes the rows of a sealed memtable to tables.
//!
//! Compression takes half of the instructions of a flush. Documents that it would hardly make
//! smaller are written as they are: a sample of them is compressed first. Tables with rising record
//! ids move down the levels unchanged, so this is decided once for most documents. A merge
//! compresses what it writes.

use std::path::Path;

use lsm_tree::{
    AbstractTree, Checksum, CompressionType, InternalValue, Result, Table, Tree, UserKey,
    UserValue, ValueType,
};
use quire_storage::{Direction, Space};

use crate::manifest::{self, TableEntry};
use crate::memtable::{Memtable, MemtableRows};
use crate::table_output::{Kind, Output};
use crate::tuning::TABLE_BYTES;

/// The number of samples that are compressed to see what it saves, and the bytes of each.
const SAMPLES: usize = 16;
const SAMPLE_BYTES: usize = 16 << 10;
/// Rows are compressed if that saves at least this part of their bytes, one eighth.
const LEAST_SAVING: usize = 8;

/// Writes the newest row of each key to tables for the first level, in ascending order. Older
/// versions are not written: a snapshot that sees them keeps the memtable.
pub(crate) fn write(tree: &Tree, space: Space, memtable: &Memtable) -> Result<Vec<Table>> {
    let keyspace: &Path = &tree.config.path;
    // A memtable is larger than this only by its last batch.
    let row_bytes = 2 * TABLE_BYTES;
    let kind = Kind { space, level: 0, compression: compression(space, memtable), row_bytes };
    let mut output = Output::new(keyspace, kind, || tree.get_next_table_id());
    rows(memtable).try_for_each(|row| output.write(row))?;
    let written = output.finish()?;
    written.iter().map(|entry| open(tree, keyspace, entry)).collect()
}

fn rows(memtable: &Memtable) -> impl Iterator<Item = InternalValue> {
    MemtableRows::new(memtable, u64::MAX, Direction::Forward, &[]).map(|row| {
        let kind = if row.value.is_some() { ValueType::Value } else { ValueType::Tombstone };
        let key = UserKey::from(row.key);
        let value = UserValue::from(row.value.unwrap_or_default());
        InternalValue::from_components(key, value, row.seqno, kind)
    })
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
    use crate::table_file::Readable;
    use crate::tables::Trees;

    #[test]
    fn documents_are_compressed_if_that_saves_much_and_are_readable_without_lsm_tree() {
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
            let tables = write(trees.of(space), space, &memtable).unwrap();
            let [table] = &tables[..] else { panic!("{} tables", tables.len()) };
            assert_eq!(table.metadata.data_block_compression, expected);
            let readable = Readable::find(&table.path, 0);
            let read: Vec<u8> = readable.flat_map(|row| row.value.to_vec()).collect();
            assert!(read == *bytes);
        }
    }
}
