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

/// The most tables into which a merge may cut its rows, unless each has the usual size: lsm-tree
/// looks at all pairs of a level's tables when it chooses a merge.
const TABLES_MAX: u64 = 512;
/// How many times larger than the level above it a level is.
const LEVEL_RATIO: u16 = 10;

/// Where merges cut.
pub(crate) struct Cut {
    /// The usual size of a table's file, in bytes.
    pub file_bytes: u64,
    /// The most bytes of rows in a table, about.
    pub row_bytes: u64,
}

/// The next merge of levels.
pub(crate) struct Merge {
    pub levels: Leveled,
    /// The bytes of the tables that it will merge, as far as they are known; 0 if it moves some.
    pub bytes: u64,
}

/// Returns the size of a table's blocks of rows before compression, in bytes. lsm-tree writes this
/// property and does not read it.
fn row_bytes(table: &Table) -> Option<u64> {
    let file = File::open(&*table.path).ok()?;
    let place = table.regions.metadata;
    let properties = Block::from_file(&file, place, CompressionType::None).ok()?;
    let size = DataBlock::new(properties).point_read(b"user_data_size", SeqNo::MAX)?;
    Some(u64::from_le_bytes(size.value[..].try_into().ok()?))
}

impl Cut {
    /// Returns the size of a file, in bytes, at which a merge of `tables` starts a new table: so
    /// that a table has about `row_bytes` of rows, also where the merge only meets rows of tables
    /// that compress well. A table that cannot be read does not count: the merge fails at it.
    pub fn of<'t>(&self, tables: impl IntoIterator<Item = &'t Table>) -> u64 {
        let (mut all, mut files, mut rows) = (0, 0, 0);
        for table in tables {
            let (file, row_bytes) = (table.metadata.file_size, row_bytes(table).unwrap_or(0));
            all += file;
            if row_bytes / (self.row_bytes / self.file_bytes) > file {
                files += file;
                rows += row_bytes;
            }
        }
        if rows <= self.row_bytes {
            return self.file_bytes;
        }
        let bytes = u128::from(files) * u128::from(self.row_bytes) / u128::from(rows);
        let bytes = u64::try_from(bytes).unwrap_or(self.file_bytes);
        bytes.max(all / TABLES_MAX).clamp(1, self.file_bytes)
    }

    /// Returns the strategy for the next merge of levels. `is_alone` tells that no other merge of
    /// the tree runs: the tables that it will merge are known then.
    ///
    /// With a smaller size lsm-tree may choose other tables or find nothing to merge, and writers
    /// would wait forever for the merge of the first level. So the strategy has the smallest size,
    /// from the wanted one on, with which the same tables are chosen.
    pub fn levels(&self, tree: &Tree, is_alone: bool) -> Merge {
        self.next_merge(tree, is_alone, &|bytes| self.levels_cut_at(bytes))
    }

    /// Returns the strategy for the next step of a merge of all levels into the last one. It takes the tables of the
    /// lowest level above the last that has some: those whose merge reads the fewest bytes, or those that can be moved.
    pub fn settling(&self, tree: &Tree, is_alone: bool) -> Merge {
        self.next_merge(tree, is_alone, &settling_cut_at)
    }

    fn next_merge(&self, tree: &Tree, is_alone: bool, cut_at: &dyn Fn(u64) -> Leveled) -> Merge {
        let version = tree.current_version();
        let chosen = |levels: &Leveled| {
            let choice = levels.choose(&version, &tree.config, &Default::default());
            if let Choice::Merge(input) = choice { Some(input.table_ids) } else { None }
        };
        let usual = cut_at(self.file_bytes);
        let Some(tables) = chosen(&usual) else { return Merge { levels: usual, bytes: 0 } };
        let inputs = version.iter_tables().filter(|it| tables.contains(&it.id()));
        let input_bytes = inputs.map(|table| table.metadata.file_size).sum();
        let merged = version.iter_tables().filter(|it| !is_alone || tables.contains(&it.id()));
        let mut bytes = self.of(merged);
        while bytes < self.file_bytes {
            let levels = cut_at(bytes);
            if chosen(&levels).as_ref() == Some(&tables) {
                return Merge { levels, bytes: input_bytes };
            }
            bytes *= 2;
        }
        Merge { levels: usual, bytes: input_bytes }
    }

    /// Returns the strategy that cuts at `bytes`. lsm-tree derives the size of the first level and
    /// of the largest merge from it; the size of the other levels is independent of it.
    fn levels_cut_at(&self, bytes: u64) -> Leveled {
        #[expect(clippy::cast_precision_loss, reason = "the quotient of two sizes of tables")]
        let smaller = self.file_bytes as f32 / bytes as f32;
        let ratio = f32::from(LEVEL_RATIO);
        Leveled::default()
            .with_table_target_size(bytes)
            .with_level_ratio_policy(vec![ratio * smaller, ratio])
    }
}

/// Returns the strategy for which every level is too large, because no flushed table is few enough: lsm-tree computes the
/// sizes of all levels from that number.
fn settling_cut_at(bytes: u64) -> Leveled {
    Leveled::default().with_l0_threshold(0).with_table_target_size(bytes)
}

/// Returns a strategy that moves flushed tables which overlap with nothing below, and never merges:
/// no level is ever too large for it.
pub(crate) fn only_moves() -> Leveled {
    Leveled::default().with_l0_threshold(u8::MAX).with_table_target_size(1 << 40)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use lsm_tree::InternalValue;
    use lsm_tree::ValueType::Value;
    use quire_storage::Space;
    use quire_storage::rng::Rng;

    use super::*;
    use crate::table::trees::{NO_SNAPSHOT, Trees};
    use crate::table::tuning::CUT;

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
        while trees.compact(Space::Doc, &|_| true).unwrap() {}
        let check = || {
            let tables: Vec<Table> = tree.current_version().iter_tables().cloned().collect();
            let rows: Vec<u64> = tables.iter().map(|table| row_bytes(table).unwrap()).collect();
            assert_eq!(rows.iter().sum::<u64>() >> 20, 320);
            assert!(rows.iter().all(|rows| *rows < CUT.row_bytes + (4 << 20)), "{rows:?}");
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
        assert_eq!(CUT.of(tree.current_version().iter_tables()), CUT.file_bytes);
    }

    /// With the smaller size alone, lsm-tree found nothing to merge in some of these trees, while
    /// the tables of the first level became more and more.
    #[test]
    fn merges_of_rows_that_compress_well_never_stop() {
        let cut = Cut { file_bytes: 64 << 10, row_bytes: 256 << 10 };
        let mut rng = Rng::new(3);
        for ordinary in [2_u64, 8, 14, 20, 26, 32] {
            let dir = tempfile::tempdir().unwrap();
            let trees = Trees::open(dir.path(), 1 << 20, &Arc::default()).unwrap();
            let tree = trees.of(Space::Doc);
            let mut number = 0;
            let mut write = |rng: &mut Rng, noisy: u64, plain: u64| {
                number += 1;
                let mut rows = BTreeMap::new();
                for _ in 0..noisy {
                    let noise: Vec<u8> = (0..1000).map(|_| rng.below(256) as u8).collect();
                    rows.insert([&b"a"[..], &rng.below(2000).to_be_bytes()].concat(), noise);
                }
                for row in 0..plain {
                    let key = [&b"b"[..], &(row * 1000 + number).to_be_bytes()].concat();
                    rows.insert(key, vec![7; 64 << 10]);
                }
                let rows = rows.into_iter().map(|(key, value)| {
                    Ok(InternalValue::from_components(key, value, number, Value))
                });
                let (tables, _) = tree.flush_to_tables(rows).unwrap().unwrap();
                tree.register_tables(&tables, None, None, &[], NO_SNAPSHOT).unwrap();
                loop {
                    let before = tree.current_version().id();
                    tree.compact(Arc::new(cut.levels(tree, true).levels), NO_SNAPSHOT).unwrap();
                    if tree.current_version().id() == before {
                        break;
                    }
                }
                let runs = tree.current_version().l0().run_count();
                assert!(runs <= 4, "{runs} runs after {number} flushes");
            };
            for _ in 0..ordinary {
                write(&mut rng, 120, 0);
            }
            for _ in 0..12 {
                write(&mut rng, 2, 60);
            }
        }
    }
}
