//! A table, opened to read its blocks.

use lsm_tree::file_accessor::FileAccessor;
use lsm_tree::table::block::BlockType;
use lsm_tree::table::util::load_block;
use lsm_tree::table::{Block, BlockHandle};
use lsm_tree::{Error, GlobalTableId, Table};

use crate::table::block_fields::NotRows;
use crate::table::block_index::{BlockIndex, Entry};
use crate::table::trees::TableList;

pub(crate) type Result<T> = std::result::Result<T, Error>;

pub(crate) fn not_rows(_: NotRows) -> Error {
    Error::InvalidTrailer
}

/// A table with everything that is needed to load its blocks.
pub(crate) struct OpenTable {
    pub table: Table,
    id: GlobalTableId,
    files: FileAccessor,
}

impl OpenTable {
    /// Opens a table of a list.
    pub fn new(list: &TableList, table: &Table) -> Self {
        let id = (list.tree(), table.metadata.id).into();
        Self { table: table.clone(), id, files: list.files().clone() }
    }

    /// Reads a block, from the cache if possible.
    pub fn block(&self, place: &BlockHandle, kind: BlockType) -> Result<Block> {
        let metadata = &self.table.metadata;
        let compression = match kind {
            BlockType::Index => metadata.index_block_compression,
            _ => metadata.data_block_compression,
        };
        let (path, cache) = (&self.table.path, &self.table.cache);
        load_block(self.id, path, &self.files, cache, place, kind, compression)
    }

    /// Reads a block of an index.
    pub fn index(&self, place: &BlockHandle) -> Result<BlockIndex> {
        BlockIndex::new(self.block(place, BlockType::Index)?.data.into()).map_err(not_rows)
    }

    /// Returns the index of the table, or the index of its partitions.
    pub fn top(&self) -> Result<BlockIndex> {
        self.index(&self.table.regions.tli)
    }

    /// Calls `take` with the entries of the row blocks whose last key is not below `from`, in
    /// ascending order, until it returns false. `top` is the top index of the table.
    pub fn entries(
        &self,
        top: &BlockIndex,
        from: &[u8],
        take: &mut dyn FnMut(Entry<'_>) -> bool,
    ) -> Result<()> {
        if self.table.regions.index.is_none() {
            return top.entries(from, take).map_err(not_rows).map(|_| ());
        }
        for number in top.search(from).map_err(not_rows)?..top.len() {
            let part = self.index(&top.entry(number).map_err(not_rows)?.block)?;
            if !part.entries(from, take).map_err(not_rows)? {
                break;
            }
        }
        Ok(())
    }

    /// Calls `take` with the entries of the row blocks in descending order, until it returns false.
    /// Starts with the last block that can have a key up to `until` or a later one; with the last
    /// of all if `until` is empty.
    pub fn entries_back(
        &self,
        top: &BlockIndex,
        until: &[u8],
        take: &mut dyn FnMut(Entry<'_>) -> bool,
    ) -> Result<()> {
        if self.table.regions.index.is_none() {
            return top.entries_back(until, take).map_err(not_rows).map(|_| ());
        }
        for number in (0..=top.last_until(until).map_err(not_rows)?).rev() {
            let part = self.index(&top.entry(number).map_err(not_rows)?.block)?;
            if !part.entries_back(until, take).map_err(not_rows)? {
                break;
            }
        }
        Ok(())
    }
}
