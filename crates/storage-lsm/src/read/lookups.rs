//! Looks up many keys straight in the blocks of the tables. lsm-tree's own lookup builds an
//! iterator over the index and one over the block for each key. Here keys are looked up in
//! ascending order: keys in the same block cost one search for it, and keys in the same table share
//! its index.
//!
//! A lookup mostly waits for memory: the blocks are in the cache, but not in the processor's. So
//! the same step is done for many keys before the next step: first their blocks are found, then
//! where in its block a key probably is, then its row. The processor then waits for several keys at
//! once, as in the interleaved lookups of Kocberber et al., "Asynchronous Memory Access Chaining",
//! VLDB 2015.
//!
//! For a single key this would save a tenth of a lookup, and the insert of a new key would lose
//! more than that.

use bytes::Bytes;
use lsm_tree::table::BlockHandle;
use lsm_tree::table::block::BlockType;
use lsm_tree::{InternalValue, SeqNo, Table};

use crate::memory::memtable::hash_of;
use crate::store::view::SpaceView;
use crate::table::block_index::BlockIndex;
use crate::table::block_rows::{BlockRow, BlockRows};
use crate::table::opened::{OpenTable, Result, not_rows};

fn into_value(row: InternalValue) -> Option<Bytes> {
    (!row.is_tombstone()).then(|| Bytes::from(row.value))
}

/// Returns the value of a key as of batch `seqno`.
pub(crate) fn get(view: &SpaceView, seqno: u64, key: &[u8]) -> Result<Option<Bytes>> {
    let hash = hash_of(key);
    if let Some(value) = view.memtables.iter().find_map(|memtable| memtable.get(key, hash, seqno)) {
        return Ok(value);
    }
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
        let (Some(key), Some(value)) = (keys.get(at), out.get_mut(at)) else { continue };
        match search(view, seqno, key)? {
            KeyPlace::Known(found) => *value = found,
            KeyPlace::LastTable(table) => {
                finder.open(table, |table| OpenTable::new(&view.tables, table))?;
                finder.find_block(at, key)?;
            }
        }
        if finder.blocks.len() == BLOCKS_MAX {
            finder.read(keys, out)?;
        }
    }
    finder.read(keys, out)
}

/// Where a key is.
enum KeyPlace<'v> {
    /// The key has this value, or is deleted, or is nowhere.
    Known(Option<Bytes>),
    /// If the key exists, it is in this table.
    LastTable(&'v Table),
}

/// Looks up a key everywhere but in the last table that can have it. The filter of that table is
/// not asked either: it would mostly confirm that the table has the key.
fn search<'v>(view: &'v SpaceView, seqno: u64, key: &'v [u8]) -> Result<KeyPlace<'v>> {
    let hash = hash_of(key);
    if let Some(value) = view.memtables.iter().find_map(|memtable| memtable.get(key, hash, seqno)) {
        return Ok(KeyPlace::Known(value));
    }
    let mut tables = view.tables.for_key(key).peekable();
    while let Some(table) = tables.next() {
        if tables.peek().is_none() {
            return Ok(KeyPlace::LastTable(table));
        }
        if let Some(row) = table.get(key, SeqNo::MAX, hash)? {
            return Ok(KeyPlace::Known(into_value(row)));
        }
    }
    Ok(KeyPlace::Known(None))
}

/// The number of blocks that are found before the rows in them are read.
const BLOCKS_MAX: usize = 32;

/// A key whose block is found.
struct Sought {
    /// The position of the key in the list of keys.
    at: usize,
    /// The position of its block in [`Finder::blocks`].
    block: usize,
    /// The difference between the last key of the block and this key, as numbers.
    distance: Option<usize>,
    /// The number in its block of the row that probably has this key.
    guess: Option<usize>,
    row: Option<BlockRow>,
}

/// Finds the blocks and the rows of ascending keys.
#[derive(Default)]
struct Finder {
    table: Option<(OpenTable, BlockIndex)>,
    /// The last key of the last block; empty before the first block of a table.
    last_key: Vec<u8>,
    blocks: Vec<Bytes>,
    sought: Vec<Sought>,
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

    /// Finds the block of a key that is not below the last one. `at` is the key's position.
    fn find_block(&mut self, at: usize, key: &[u8]) -> Result<()> {
        let Some((open, top)) = &self.table else { return Ok(()) };
        if self.last_key.is_empty() || self.last_key[..] < *key {
            let mut found: Option<BlockHandle> = None;
            let last_key = &mut self.last_key;
            open.entries(top, key, &mut |entry| {
                last_key.clear();
                last_key.extend_from_slice(entry.last_key);
                found = Some(entry.block);
                false
            })?;
            let Some(place) = found else { return Ok(()) };
            self.blocks.push(Bytes::from(open.block(&place, BlockType::Data)?.data));
        }
        let (block, distance) = (self.blocks.len() - 1, distance(key, &self.last_key));
        self.sought.push(Sought { at, block, distance, guess: None, row: None });
        Ok(())
    }

    /// Writes the values of the keys whose blocks are found.
    fn read(&mut self, keys: &[&[u8]], out: &mut [Option<Bytes>]) -> Result<()> {
        self.last_key.clear();
        let blocks: std::result::Result<Vec<_>, _> =
            self.blocks.drain(..).map(BlockRows::new).collect();
        let mut blocks = blocks.map_err(not_rows)?;
        for sought in &mut self.sought {
            let Some(block) = blocks.get(sought.block) else { continue };
            sought.guess = sought.distance.and_then(|distance| block.number_from_end(distance));
        }
        for sought in &mut self.sought {
            let (Some(block), Some(key)) = (blocks.get_mut(sought.block), keys.get(sought.at))
            else {
                continue;
            };
            if let Some(number) = sought.guess {
                sought.row = block.newest_at(number, key).map_err(not_rows)?;
            }
            if sought.row.is_none() {
                let row = block.seek(key, &mut self.key).map_err(not_rows)?;
                // The first row of a key is its newest.
                sought.row = row.filter(|_| self.key == *key);
            }
        }
        for sought in self.sought.drain(..) {
            let (Some(block), Some(out)) = (blocks.get(sought.block), out.get_mut(sought.at))
            else {
                continue;
            };
            let value = sought.row.and_then(|row| row.value);
            *out = value.map(|range| block.data().slice(range));
        }
        Ok(())
    }
}

/// Returns how many keys there can be between `key` and `last_key`, if both end in a number of eight
/// bytes. Few documents are deleted, so this is mostly the number of rows between them.
fn distance(key: &[u8], last_key: &[u8]) -> Option<usize> {
    let (start, number) = key.split_last_chunk()?;
    let (last_start, last_number) = last_key.split_last_chunk()?;
    let distance = u64::from_be_bytes(*last_number).checked_sub(u64::from_be_bytes(*number))?;
    if start == last_start { usize::try_from(distance).ok() } else { None }
}
