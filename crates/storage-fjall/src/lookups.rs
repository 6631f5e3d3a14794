//! Looks up many keys straight in the blocks of the newest tables. fjall's own lookup builds an
//! iterator over the index and one over the block for each key. Here keys are looked up in
//! ascending order: keys in the same block cost one search in it, and keys in the same table share
//! its index. For a single key this would save a tenth of a lookup, and the insert of a new key
//! would lose more than that.
//!
//! It works for the snapshots of `newest.rs`.

use bytes::Bytes;
use lsm_tree::table::block::BlockType;
use lsm_tree::table::filter::standard_bloom::Builder;
use lsm_tree::table::{BlockHandle, IndexBlock};
use lsm_tree::{AbstractTree, InternalValue, SeqNo, Table, Tree};

use crate::block_rows::BlockRows;
use crate::open_table::{OpenTable, Result, files, not_rows, stable};

/// The result of a search in one table.
enum Found {
    /// The key has this value, or is deleted.
    Decided(Option<Bytes>),
    Nothing,
    /// The next block may contain the key.
    Unknown,
}

fn into_value(row: InternalValue) -> Option<Bytes> {
    (!row.is_tombstone()).then(|| Bytes::from(row.value))
}

/// Writes the value of each of `keys`, as the snapshot `seqno` sees it, to the same position of
/// `out`. Returns false if it cannot decide; `is_current` returns true if nothing has been written
/// since the snapshot.
pub(crate) fn get_many(
    tree: &Tree,
    seqno: SeqNo,
    is_current: impl Fn() -> bool,
    keys: &[&[u8]],
    out: &mut [Option<Bytes>],
) -> Result<bool> {
    let Some(files) = files(tree) else { return Ok(false) };
    let Some((version, memtable)) = stable(tree, Tree::current_version, |version| version.id())
    else {
        return Ok(false);
    };
    if !is_current() {
        return Ok(false);
    }
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_unstable_by_key(|at| keys.get(*at));
    let mut finder = Finder::default();
    let has_memtable = !memtable.is_empty();
    for at in order {
        let (Some(key), Some(out)) = (keys.get(at), out.get_mut(at)) else { return Ok(false) };
        if has_memtable && let Some(row) = memtable.get(key, seqno) {
            *out = into_value(row);
            continue;
        }
        let runs = version.iter_levels().flat_map(|level| level.iter());
        let mut tables = runs.filter_map(|run| run.get_for_key(key)).peekable();
        while let Some(table) = tables.next() {
            // For the last table a filter is not asked: it would mostly confirm that the table has
            // the key.
            let found = if tables.peek().is_some() {
                let row = table.get(key, seqno, Builder::get_hash(key))?;
                row.map_or(Found::Nothing, |row| Found::Decided(into_value(row)))
            } else {
                finder.open(table, |table| OpenTable::new(tree, table, &files))?;
                finder.find(key, seqno)?
            };
            match found {
                Found::Nothing => {}
                Found::Decided(value) => {
                    *out = value;
                    break;
                }
                Found::Unknown => return Ok(false),
            }
        }
    }
    Ok(true)
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
    fn find(&mut self, key: &[u8], seqno: SeqNo) -> Result<Found> {
        let Some((open, top)) = &self.table else { return Ok(Found::Unknown) };
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
        let newest = open.table.global_seqno();
        // Documents inserted one after the other are often read in the same order.
        let next = match !is_new && self.key[..] < *key {
            true => self.block.next(&mut self.key).map_err(not_rows)?,
            false => None,
        };
        let mut row = match next.filter(|_| self.key == key) {
            Some(row) => Some(row),
            None => self.block.seek(key, &mut self.key).map_err(not_rows)?,
        };
        while let Some(found) = row.filter(|_| self.key == key) {
            if found.seqno + newest < seqno {
                let value = found.value.map(|range| self.block.data().slice(range));
                return Ok(Found::Decided(value));
            }
            row = self.block.next(&mut self.key).map_err(not_rows)?;
        }
        // Older versions of a block's last key can be in the next block.
        Ok(if self.last_key == key { Found::Unknown } else { Found::Nothing })
    }
}
