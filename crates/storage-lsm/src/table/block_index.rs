//! Reads the index of a table in place: a block with an entry for each block of rows, or for each
//! part of a partitioned index.
//!
//! An entry of lsm-tree 3.1 has the byte 0, the offset and the size of its block, a sequence number,
//! and the last key of the block (length, bytes). All keys are whole.

use bytes::Bytes;
use lsm_tree::table::{BlockHandle, BlockOffset};

use crate::table::block_fields::{Fields, NotRows, WholeKeys};

/// The block of an index.
pub(crate) struct BlockIndex {
    data: Bytes,
    heads: WholeKeys,
}

/// A block, from an entry of an index.
pub(crate) struct Entry<'i> {
    pub block: BlockHandle,
    pub last_key: &'i [u8],
}

impl BlockIndex {
    pub fn new(data: Bytes) -> Result<Self, NotRows> {
        let heads = WholeKeys::read(&data)?;
        if heads.interval == 1 { Ok(Self { data, heads }) } else { Err(NotRows) }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.heads.count()
    }

    pub fn entry(&self, number: usize) -> Result<Entry<'_>, NotRows> {
        let mut fields = Fields { data: &self.data, at: self.heads.at(&self.data, number)? };
        if fields.byte()? != 0 {
            return Err(NotRows);
        }
        let (offset, size) = (fields.number()?, fields.length()?);
        fields.number()?;
        let length = fields.length()?;
        let size = u32::try_from(size).map_err(|_| NotRows)?;
        let block = BlockHandle::new(BlockOffset(offset), size);
        Ok(Entry { block, last_key: fields.take(length)? })
    }

    /// Returns the number of the first block whose last key is not below `key`; the number of
    /// blocks if there is none.
    ///
    /// Documents lie in the order of numbers with few gaps, at the end of their keys. So the search
    /// begins where the block would be if each had as many keys, and goes on in growing steps: it
    /// reads few entries, which are neighbours. A binary search waits for memory in most steps.
    pub fn search(&self, key: &[u8]) -> Result<usize, NotRows> {
        let is_below = |number: usize| Ok(self.entry(number)?.last_key < key);
        let (mut low, mut high) = (0, self.len());
        if high == 0 {
            return Ok(0);
        }
        let mut step = 1;
        let mut next = self.guess(key)?;
        while low < high {
            if is_below(next)? {
                low = next + 1;
                next = low + step - 1;
            } else {
                high = next;
                next = high.saturating_sub(step);
            }
            // Both ends are near once the search has turned.
            let is_between = low > 0 && high < self.len();
            if is_between || !(low..high).contains(&next) {
                next = usize::midpoint(low, high);
            }
            step *= 2;
        }
        Ok(low)
    }

    /// Returns the number of the first block whose last key is above `until`: no later one has a
    /// key up to it. The last block if there is none, or if `until` is empty.
    pub fn last_until(&self, until: &[u8]) -> Result<usize, NotRows> {
        let last = self.len().checked_sub(1).ok_or(NotRows)?;
        if until.is_empty() {
            return Ok(last);
        }
        self.search(&[until, &[0]].concat()).map(|number| number.min(last))
    }

    /// Calls `take` with the blocks whose last key is not below `from`, in ascending order, until it
    /// returns false. Returns true if it wants more.
    pub fn entries(
        &self,
        from: &[u8],
        take: &mut dyn FnMut(Entry<'_>) -> bool,
    ) -> Result<bool, NotRows> {
        for number in self.search(from)?..self.len() {
            if !take(self.entry(number)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Calls `take` with the blocks from [`BlockIndex::last_until`] on, in descending order, until
    /// it returns false. Returns true if it wants more.
    pub fn entries_back(
        &self,
        until: &[u8],
        take: &mut dyn FnMut(Entry<'_>) -> bool,
    ) -> Result<bool, NotRows> {
        for number in (0..=self.last_until(until)?).rev() {
            if !take(self.entry(number)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the number of the block that probably has a key.
    fn guess(&self, key: &[u8]) -> Result<usize, NotRows> {
        let last = self.len() - 1;
        let number = |of: &[u8]| of.split_last_chunk().map(|(_, end)| u64::from_be_bytes(*end));
        let start = |of: &[u8]| of.len().saturating_sub(size_of::<u64>());
        let (from, to) = (self.entry(0)?.last_key, self.entry(last)?.last_key);
        let is_alike = from.get(..start(from)) == key.get(..start(key))
            && to.get(..start(to)) == key.get(..start(key));
        match (number(from), number(to), number(key)) {
            (Some(from), Some(to), Some(key)) if is_alike && from <= key && key <= to => {
                let (part, whole) = (u128::from(key - from), u128::from((to - from).max(1)));
                let guess = part * last as u128 / whole;
                Ok(usize::try_from(guess).map_or(last, |guess| guess.min(last)))
            }
            _ => Ok(last / 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use lsm_tree::table::{IndexBlock, KeyedBlockHandle};
    use quire_storage::rng::Rng;

    use super::*;

    fn key(start: u8, number: u64) -> Vec<u8> {
        [&[start][..], &number.to_be_bytes()].concat()
    }

    #[test]
    fn searches_of_indexes_of_lsm_tree_find_the_first_block_that_can_have_a_key() {
        let mut rng = Rng::new(5);
        for round in 0..200 {
            let mut keys: Vec<Vec<u8>> = (0..1 + rng.below(100))
                .map(|_| match round % 4 {
                    0 => key(1, rng.below(1000)),
                    1 => key(rng.below(3) as u8, rng.below(50) * rng.below(50) * rng.below(50)),
                    2 => key(7, u64::MAX - rng.below(500)),
                    _ => vec![rng.below(256) as u8; rng.below(12) as usize],
                })
                .collect();
            keys.sort();
            let handles: Vec<KeyedBlockHandle> = keys
                .iter()
                .zip(1_u32..)
                .map(|(key, number)| {
                    let block = BlockHandle::new(BlockOffset(u64::from(number) * 300), number);
                    KeyedBlockHandle::new(key[..].into(), 9, block)
                })
                .collect();
            let bytes = IndexBlock::encode_into_vec(&handles).unwrap();
            let index = BlockIndex::new(Bytes::from(bytes)).unwrap();
            assert_eq!(index.len(), keys.len());
            for (number, handle) in handles.iter().enumerate() {
                let entry = index.entry(number).unwrap();
                assert_eq!(entry.last_key, &handle.end_key()[..]);
                assert_eq!(entry.block.offset(), handle.offset());
                assert_eq!(entry.block.size(), handle.size());
            }
            let others = (0..50).map(|_| key(rng.below(9) as u8, rng.below(1200)));
            for wanted in keys.iter().cloned().chain(others).chain([vec![], vec![255; 20]]) {
                let expected = keys.partition_point(|key| *key < wanted);
                assert_eq!(index.search(&wanted).unwrap(), expected);
            }
        }
    }

    #[test]
    fn bytes_that_are_not_an_index_are_an_error() {
        let mut rng = Rng::new(6);
        for _ in 0..2000 {
            let bytes: Vec<u8> = (0..rng.below(120)).map(|_| rng.below(256) as u8).collect();
            let Ok(index) = BlockIndex::new(Bytes::from(bytes)) else { continue };
            let _ = index.search(b"a key");
            let _ = index.entry(0);
        }
    }
}
