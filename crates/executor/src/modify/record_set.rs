//! The records that a statement has written, so that a scan of an index that the writes change
//! does not bring them up again (the Halloween problem: Astrahan and others, "System R", 1976).
//! Blocks of 65,536 ids as sorted lists or bitmaps (Chambi, Lemire, Kaser, Godin: "Better bitmap
//! performance with Roaring bitmaps", 2016): two bytes an id at most, an eighth where dense.

use std::collections::BTreeMap;

use quire_collections::RecordId;

/// A set of record ids.
#[derive(Debug, Default)]
pub(crate) struct RecordSet {
    blocks: BTreeMap<u64, Block>,
}

#[derive(Debug)]
enum Block {
    Sparse(Vec<u16>),
    Dense(Box<[u64]>),
}

const BLOCK_BITS: u32 = 16;
const WORDS: usize = 1 << (BLOCK_BITS - 6);
/// A list of this many ids is as large as a bitmap.
const SPARSE_MAX: usize = 4096;

impl RecordSet {
    /// Adds an id. False if it was there.
    pub fn insert(&mut self, id: RecordId) -> bool {
        let block = self.blocks.entry(id.0 >> BLOCK_BITS).or_insert(Block::Sparse(Vec::new()));
        block.insert(id.0 as u16)
    }

    /// Whether the id is in it.
    pub fn contains(&self, id: RecordId) -> bool {
        match self.blocks.get(&(id.0 >> BLOCK_BITS)) {
            None => false,
            Some(Block::Sparse(ids)) => ids.binary_search(&(id.0 as u16)).is_ok(),
            Some(Block::Dense(words)) => {
                let (word, bit) = place(id.0 as u16);
                words.get(word).is_some_and(|word| word & bit != 0)
            }
        }
    }
}

impl Block {
    fn insert(&mut self, low: u16) -> bool {
        match self {
            Block::Sparse(ids) => match ids.binary_search(&low) {
                Ok(_) => false,
                Err(at) if ids.len() < SPARSE_MAX => {
                    ids.insert(at, low);
                    true
                }
                Err(_) => {
                    let mut words = vec![0; WORDS].into_boxed_slice();
                    for id in ids.iter() {
                        let (word, bit) = place(*id);
                        words[word] |= bit;
                    }
                    *self = Block::Dense(words);
                    self.insert(low)
                }
            },
            Block::Dense(words) => {
                let (word, bit) = place(low);
                let new = words[word] & bit == 0;
                words[word] |= bit;
                new
            }
        }
    }
}

fn place(low: u16) -> (usize, u64) {
    (usize::from(low) / 64, 1 << (low % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_sparse_and_dense_ids() {
        let mut set = RecordSet::default();
        for id in (0..20_000).map(|n| RecordId(n * 3)) {
            assert!(set.insert(id));
            assert!(!set.insert(id));
        }
        assert!(set.insert(RecordId(u64::MAX)));
        assert!((0..60_000).all(|n| set.contains(RecordId(n)) == (n % 3 == 0)));
        assert!(set.contains(RecordId(u64::MAX)) && !set.contains(RecordId(u64::MAX - 1)));
    }
}
