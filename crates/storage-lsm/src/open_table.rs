//! A table, opened to read its blocks.

use lsm_tree::file_accessor::FileAccessor;
use lsm_tree::table::block::BlockType;
use lsm_tree::table::util::{SliceIndexes, load_block};
use lsm_tree::table::{Block, BlockHandle, BlockOffset, IndexBlock};
use lsm_tree::{Error, GlobalTableId, SeqNo, Table};

use crate::block_rows::NotRows;
use crate::tables::TableList;

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

/// The place of a block, from an entry of an index block.
pub(crate) struct Place<'i> {
    pub block: BlockHandle,
    index: &'i [u8],
    prefix: Option<SliceIndexes>,
    rest: SliceIndexes,
}

impl Place<'_> {
    /// Writes the last key of the block into `key`.
    pub fn copy_last_key(&self, key: &mut Vec<u8>) {
        let part = |at: &SliceIndexes| self.index.get(at.0..at.1).unwrap_or_default();
        key.clear();
        key.extend_from_slice(self.prefix.as_ref().map_or(&[][..], part));
        key.extend_from_slice(part(&self.rest));
    }
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

    /// Returns the index of the table, or the index of its partitions.
    pub fn top(&self) -> Result<IndexBlock> {
        self.block(&self.table.regions.tli, BlockType::Index).map(IndexBlock::new)
    }

    /// Calls `take` with the places of the row blocks whose last key is not below `from`, in
    /// ascending order, until it returns false. `top` is the top index of the table.
    pub fn places(
        &self,
        top: &IndexBlock,
        from: &[u8],
        take: &mut dyn FnMut(Place<'_>) -> bool,
    ) -> Result<()> {
        if self.table.regions.index.is_none() {
            places_in(top, from, take);
            return Ok(());
        }
        let mut parts = top.iter();
        parts.seek(from, SeqNo::MAX);
        for part in parts {
            let place = BlockHandle::new(part.offset, part.size);
            let part = IndexBlock::new(self.block(&place, BlockType::Index)?);
            if !places_in(&part, from, take) {
                break;
            }
        }
        Ok(())
    }

    /// Calls `take` with the places of the row blocks in descending order, until it returns false.
    /// Starts with the last block that can have a key up to `until` or a later one; with the last
    /// of all if `until` is empty.
    pub fn places_back(
        &self,
        top: &IndexBlock,
        until: &[u8],
        take: &mut dyn FnMut(Place<'_>) -> bool,
    ) -> Result<()> {
        if self.table.regions.index.is_none() {
            places_back_in(top, until, take);
            return Ok(());
        }
        let mut parts = top.iter();
        if !until.is_empty() {
            parts.seek_upper(until, SeqNo::MAX);
        }
        while let Some(part) = parts.next_back() {
            let place = BlockHandle::new(part.offset, part.size);
            let part = IndexBlock::new(self.block(&place, BlockType::Index)?);
            if !places_back_in(&part, until, take) {
                break;
            }
        }
        Ok(())
    }
}

/// Does the work of [`OpenTable::places`] for one index block. Returns true if `take` wants more.
fn places_in(index: &IndexBlock, from: &[u8], take: &mut dyn FnMut(Place<'_>) -> bool) -> bool {
    let mut entries = index.iter();
    entries.seek(from, SeqNo::MAX);
    let data = index.as_slice();
    entries.all(|entry| take(place(data, (entry.offset, entry.size), entry.prefix, entry.end_key)))
}

/// Does the work of [`OpenTable::places_back`] for one index block. Returns true if `take` wants
/// more.
fn places_back_in(
    index: &IndexBlock,
    until: &[u8],
    take: &mut dyn FnMut(Place<'_>) -> bool,
) -> bool {
    let mut entries = index.iter();
    if !until.is_empty() {
        entries.seek_upper(until, SeqNo::MAX);
    }
    let data = index.as_slice();
    let mut entries = entries.rev();
    entries.all(|entry| take(place(data, (entry.offset, entry.size), entry.prefix, entry.end_key)))
}

/// Returns the place in an entry of the index block `index`. lsm-tree does not export the type of
/// the entries.
fn place(
    index: &[u8],
    (offset, size): (BlockOffset, u32),
    prefix: Option<SliceIndexes>,
    rest: SliceIndexes,
) -> Place<'_> {
    Place { block: BlockHandle::new(offset, size), index, prefix, rest }
}
