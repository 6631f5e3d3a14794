//! Finds the damaged block behind the error of a read. lsm-tree's errors name neither the file nor
//! the position in it, and an operator needs both.

use lsm_tree::Table;
use lsm_tree::table::BlockHandle;
use lsm_tree::table::block::BlockType;
use quire_storage::Direction;

use crate::directory::damage::Damage;
use crate::error::is_damage;
use crate::table::block_index::{BlockIndex, Entry};
use crate::table::opened::OpenTable;
use crate::table::trees::TableList;

/// The largest number of blocks that are tried below each block of an index, beginning with the one
/// that may contain the key: a scan reads at most as many blocks ahead of its last row, and a visitor
/// gets the rows of about half as many.
const BLOCKS_MAX: usize = 64;
/// The number of tables of one run that are tried: the one that may contain the key, and the next.
const TABLES_MAX: usize = 2;

/// Returns the first damaged block of a list's tables near `key`, in the direction of a scan, or
/// `None` if every block there can be read. It reads `TABLES_MAX` tables of each run, and
/// `BLOCKS_MAX` blocks below each block of an index.
pub(crate) fn damage_near(list: &TableList, key: &[u8], direction: Direction) -> Option<Damage> {
    let tables = list.runs.iter().flat_map(|run| {
        let split = match direction {
            Direction::Forward => run.partition_point(|t| t.metadata.key_range.max()[..] < *key),
            // An empty key is behind all others in a reverse scan.
            Direction::Reverse if key.is_empty() => run.len(),
            Direction::Reverse => run.partition_point(|t| t.metadata.key_range.min()[..] <= *key),
        };
        let near: Vec<&Table> = match direction {
            Direction::Forward => run.iter().skip(split).take(TABLES_MAX).collect(),
            Direction::Reverse => run.iter().take(split).rev().take(TABLES_MAX).collect(),
        };
        near
    });
    let mut opened = tables.map(|table| OpenTable::new(list, table));
    opened.find_map(|table| damage_in(&table, key, direction))
}

fn damage_in(table: &OpenTable, key: &[u8], direction: Direction) -> Option<Damage> {
    let near = Near { table, key, direction };
    let regions = &table.table.regions;
    match (&regions.filter_tli, &regions.filter) {
        (Some(top), _) => near.damage_below(top, "filter_tli", &[(BlockType::Filter, "filter")]),
        (None, Some(filter)) => near.damage_at(filter, BlockType::Filter, "filter"),
        (None, None) => None,
    }
    .or_else(|| {
        let rows = (BlockType::Data, "data");
        match regions.index {
            Some(_) => near.damage_below(&regions.tli, "tli", &[(BlockType::Index, "index"), rows]),
            None => near.damage_below(&regions.tli, "tli", &[rows]),
        }
    })
}

/// The blocks of a table near a key.
struct Near<'n> {
    table: &'n OpenTable,
    key: &'n [u8],
    direction: Direction,
}

impl Near<'_> {
    /// Returns the damage of one block, or `None` if it can be read. `section` is its part of the
    /// file.
    fn damage_at(&self, place: &BlockHandle, kind: BlockType, section: &str) -> Option<Damage> {
        let error = self.table.block(place, kind).err()?;
        let what = format!("a block of '{section}' is damaged");
        is_damage(error).then(|| Damage::at(&self.table.table.path, *place.offset(), what))
    }

    /// Returns the first damage of a block of an index and of the blocks below it near the key.
    /// `levels` are the kinds and sections of the blocks below, from the upper level to the lowest.
    fn damage_below(
        &self,
        place: &BlockHandle,
        section: &str,
        levels: &[(BlockType, &str)],
    ) -> Option<Damage> {
        let Ok(index) = self.table.index(place) else {
            return self.damage_at(place, BlockType::Index, section);
        };
        let ((kind, section), lower) = levels.split_first()?;
        self.places(&index).iter().find_map(|place| match lower {
            [] => self.damage_at(place, *kind, section),
            lower => self.damage_below(place, section, lower),
        })
    }

    /// Returns the positions of the blocks below an index block that are near the key.
    fn places(&self, index: &BlockIndex) -> Vec<BlockHandle> {
        let mut found = Vec::new();
        let mut take = |entry: Entry<'_>| {
            found.push(entry.block);
            found.len() < BLOCKS_MAX
        };
        // What cannot be read is damage, which the caller has found.
        let _ = match self.direction {
            Direction::Forward => index.entries(self.key, &mut take),
            Direction::Reverse => index.entries_back(self.key, &mut take),
        };
        found
    }
}
