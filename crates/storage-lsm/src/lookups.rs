//! Looks up many keys straight in the blocks of the tables. lsm-tree's own lookup builds an
//! iterator over the index and one over the block for each key. Here keys are looked up in
//! ascending order: keys in the same block cost one search in it, and keys in the same table share
//! its index. For a single key this would save a tenth of a lookup, and the insert of a new key
//! would lose more than that.

use bytes::Bytes;
use lsm_tree::table::block::BlockType;
use lsm_tree::table::filter::standard_bloom::Builder;
use lsm_tree::table::{BlockHandle, IndexBlock};
use lsm_tree::{InternalValue, SeqNo, Table};

use crate::block_rows::BlockRows;
use crate::open_table::{OpenTable, Result, not_rows};
use crate::view::SpaceView;

/// The result of a search in one table.
enum Found {
    /// The key has this value, or is deleted.
    Decided(Option<Bytes>),
    Nothing,
}

fn into_value(row: InternalValue) -> Option<Bytes> {
    (!row.is_tombstone()).then(|| Bytes::from(row.value))
}

/// Returns the value of a key as of batch `seqno`.
pub(crate) fn get(view: &SpaceView, seqno: u64, key: &[u8]) -> Result<Option<Bytes>> {
    if let Some(value) = view.memtables.iter().find_map(|memtable| memtable.get(key, seqno)) {
        return Ok(value);
    }
    let hash = Builder::get_hash(key);
    for table in view.tables.for_key(key) {
        if let Some(row) = table.get(key, SeqNo::MAX, hash)? {
            return Ok(into_value(row));
        }
    }
    Ok(None)
}

/// Writes the value of each of `keys`, as of batch `seqno`, to the same position of `out`.
pub(crate) fn get_many(
    view: &SpaceView,
    seqno: u64,
    keys: &[&[u8]],
    out: &mut [Option<Bytes>],
) -> Result<()> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_unstable_by_key(|at| keys.get(*at));
    let mut finder = Finder::default();
    for at in order {
        let (Some(key), Some(out)) = (keys.get(at), out.get_mut(at)) else { continue };
        if let Some(value) = view.memtables.iter().find_map(|memtable| memtable.get(key, seqno)) {
            *out = value;
            continue;
        }
        let mut tables = view.tables.for_key(key).peekable();
        while let Some(table) = tables.next() {
            // For the last table a filter is not asked: it would mostly confirm that the table has
            // the key.
            let found = if tables.peek().is_some() {
                let row = table.get(key, SeqNo::MAX, Builder::get_hash(key))?;
                row.map_or(Found::Nothing, |row| Found::Decided(into_value(row)))
            } else {
                finder.open(table, |table| OpenTable::new(&view.tables, table))?;
                finder.find(key)?
            };
            if let Found::Decided(value) = found {
                *out = value;
                break;
            }
        }
    }
    Ok(())
}

/// The block of the last lookup.
#[derive(Default)]
struct Finder {
    table: Option<(OpenTable, IndexBlock)>,
    block: BlockRows,
    /// The last key of the block; empty before the first block of a table.
    last_key: Vec<u8>,
    key: Vec<u8>,
}

impl Finder {
    /// Opens a table.
    fn open(&mut self, table: &Table, open: impl Fn(&Table) -> OpenTable) -> Result<()> {
        let is_open = self.table.as_ref().is_some_and(|(at, _)| at.table.id() == table.id());
        if !is_open {
            let open = open(table);
            let top = open.top()?;
            self.table = Some((open, top));
            self.last_key.clear();
        }
        Ok(())
    }

    /// Looks up a key that is not below the key of the last lookup.
    fn find(&mut self, key: &[u8]) -> Result<Found> {
        let Some((open, top)) = &self.table else { return Ok(Found::Nothing) };
        let is_new = self.last_key.is_empty() || self.last_key[..] < *key;
        if is_new {
            let mut block: Option<BlockHandle> = None;
            let last_key = &mut self.last_key;
            open.places(top, key, &mut |place| {
                place.copy_last_key(last_key);
                block = Some(place.block);
                false
            })?;
            let Some(block) = block else { return Ok(Found::Nothing) };
            let block = open.block(&block, BlockType::Data)?;
            self.block = BlockRows::new(Bytes::from(block.data)).map_err(not_rows)?;
        }
        // Documents inserted one after the other are often read in the same order.
        let next = match !is_new && self.key[..] < *key {
            true => self.block.next(&mut self.key).map_err(not_rows)?,
            false => None,
        };
        let row = match next.filter(|_| self.key == key) {
            Some(row) => Some(row),
            None => self.block.seek(key, &mut self.key).map_err(not_rows)?,
        };
        // The first row of a key is its newest.
        let found = row.filter(|_| self.key == key);
        Ok(found.map_or(Found::Nothing, |row| {
            Found::Decided(row.value.map(|range| self.block.data().slice(range)))
        }))
    }
}
