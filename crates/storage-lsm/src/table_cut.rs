//! Where a merge cuts the tables that it writes.
//!
//! lsm-tree cuts by the size of the file. While it writes a table it keeps the last key of each
//! block, and such a key is a part of the block that it was read from: all blocks of the table
//! stay in memory, uncompressed. A file of 32 MiB can hold 8 GiB of documents that compress well.
//! So merges of such tables cut earlier (docs/adr/0019-compression-and-size-of-tables.md).

use std::fs::File;

use lsm_tree::compaction::{Choice, CompactionStrategy, Leveled};
use lsm_tree::table::{Block, DataBlock};
use lsm_tree::{AbstractTree, CompressionType, SeqNo, Table, Tree};

use crate::tuning::{TABLE_BYTES, TABLE_ROW_BYTES};

/// The most tables into which a merge may cut its rows, unless each has `TABLE_BYTES`: lsm-tree
/// looks at all pairs of a level's tables when it chooses a merge.
const TABLES_MAX: u64 = 512;
/// How many times larger than the level above it a level is.
const LEVEL_RATIO: u16 = 10;

/// Returns the size of a table's blocks of rows before compression, in bytes. lsm-tree writes this
/// property and does not read it.
fn row_bytes(table: &Table) -> Option<u64> {
    let file = File::open(&*table.path).ok()?;
    let place = table.regions.metadata;
    let properties = Block::from_file(&file, place, CompressionType::None).ok()?;
    let size = DataBlock::new(properties).point_read(b"user_data_size", SeqNo::MAX)?;
    Some(u64::from_le_bytes(size.value[..].try_into().ok()?))
}

/// Returns the size of a file, in bytes, at which a merge of `tables` starts a new table: so that
/// a table has about `TABLE_ROW_BYTES` of rows, also where the merge only meets rows of tables
/// that compress well. A table that cannot be read does not count: the merge fails at it.
pub(crate) fn cut_bytes<'t>(tables: impl IntoIterator<Item = &'t Table>) -> u64 {
    let (mut all, mut files, mut rows) = (0, 0, 0);
    for table in tables {
        let (file, row_bytes) = (table.metadata.file_size, row_bytes(table).unwrap_or(0));
        all += file;
        if row_bytes / (TABLE_ROW_BYTES / TABLE_BYTES) > file {
            files += file;
            rows += row_bytes;
        }
    }
    if rows <= TABLE_ROW_BYTES {
        return TABLE_BYTES;
    }
    let bytes = u128::from(files) * u128::from(TABLE_ROW_BYTES) / u128::from(rows);
    let bytes = u64::try_from(bytes).unwrap_or(TABLE_BYTES);
    bytes.max(all / TABLES_MAX).clamp(1, TABLE_BYTES)
}

/// Returns the strategy for the next merge of levels. `is_alone` tells that no other merge of the
/// tree runs: the tables that it will merge are known then. The strategy cuts earlier only if it
/// chooses the same tables: with another size lsm-tree may find nothing to merge, and writers would
/// wait forever for the merge of the first level.
pub(crate) fn levels(tree: &Tree, is_alone: bool) -> Leveled {
    let version = tree.current_version();
    let chosen = |levels: &Leveled| {
        let choice = levels.choose(&version, &tree.config, &Default::default());
        if let Choice::Merge(input) = choice { Some(input.table_ids) } else { None }
    };
    let plain = levels_cut_at(TABLE_BYTES);
    let Some(tables) = chosen(&plain) else { return plain };
    let merged = version.iter_tables().filter(|table| !is_alone || tables.contains(&table.id()));
    let earlier = levels_cut_at(cut_bytes(merged));
    if chosen(&earlier).as_ref() == Some(&tables) { earlier } else { plain }
}

/// Returns the strategy that cuts at `bytes`. lsm-tree derives the size of the first level and of the
/// largest merge from it; the size of the other levels is independent of it.
fn levels_cut_at(bytes: u64) -> Leveled {
    #[expect(clippy::cast_precision_loss, reason = "at most the quotient of two sizes of tables")]
    let smaller = TABLE_BYTES as f32 / bytes as f32;
    let ratio = f32::from(LEVEL_RATIO);
    Leveled::default()
        .with_table_target_size(bytes)
        .with_level_ratio_policy(vec![ratio * smaller, ratio])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lsm_tree::InternalValue;
    use lsm_tree::ValueType::Value;
    use quire_storage::Space;

    use super::*;
    use crate::tables::{NO_SNAPSHOT, Trees};

    /// Writes a table with eight rows of a megabyte. The keys of all tables are mixed.
    fn write_table(tree: &Tree, number: u64, value: &[u8]) {
        let rows = (0..8).map(|row: u64| {
            let key = [row.to_be_bytes(), number.to_be_bytes()].concat();
            Ok(InternalValue::from_components(key, value, number, Value))
        });
        let (tables, _) = tree.flush_to_tables(rows).unwrap().unwrap();
        tree.register_tables(&tables, None, None, &[], NO_SNAPSHOT).unwrap();
    }

    #[test]
    fn a_merge_of_rows_that_compress_well_writes_tables_with_few_rows() {
        let dir = tempfile::tempdir().unwrap();
        let trees = Trees::open(dir.path(), 1 << 20, &Arc::default()).unwrap();
        let tree = trees.of(Space::Doc);
        for number in 0..40 {
            write_table(tree, number, &[b'x'; 1 << 20]);
        }
        while trees.compact(Space::Doc).unwrap() {}
        let check = || {
            let tables: Vec<Table> = tree.current_version().iter_tables().cloned().collect();
            let rows: Vec<u64> = tables.iter().map(|table| row_bytes(table).unwrap()).collect();
            assert_eq!(rows.iter().sum::<u64>() >> 20, 320);
            assert!(rows.iter().all(|rows| *rows < TABLE_ROW_BYTES + (4 << 20)), "{rows:?}");
        };
        check();
        trees.merge_all(Space::Doc).unwrap();
        check();
    }

    #[test]
    fn few_rows_that_compress_well_do_not_make_tables_smaller() {
        let dir = tempfile::tempdir().unwrap();
        let trees = Trees::open(dir.path(), 1 << 20, &Arc::default()).unwrap();
        let tree = trees.of(Space::Doc);
        write_table(tree, 0, &[b'x'; 1 << 20]);
        let mut word = 1_u64;
        let words = std::iter::repeat_with(|| {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            word.to_be_bytes()
        });
        let noise: Vec<u8> = words.take(1 << 17).flatten().collect();
        write_table(tree, 1, &noise);
        assert_eq!(cut_bytes(tree.current_version().iter_tables()), TABLE_BYTES);
    }
}
