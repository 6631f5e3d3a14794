//! A filter of keys: it says of most keys that are not in a memtable that they are not, without a
//! search. It is a Bloom filter that has all bits of a key in one word (Putze, Sanders, Singler,
//! "Cache-, Hash- and Space-Efficient Bloom Filters", WEA 2007).

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of words, which together have 256 KiB. With 150,000 keys, more than a full memtable
/// of index entries has, one other key of a hundred is taken for one of them.
const WORDS: usize = 1 << WORD_BITS;
const WORD_BITS: u32 = 15;
/// The bits of a key, each of 64 in its word.
const BITS: u32 = 4;

/// The bits of the keys that were added. One thread adds while others ask.
pub(crate) struct KeyFilter(Box<[AtomicU64]>);

impl KeyFilter {
    pub fn new() -> Self {
        Self((0..WORDS).map(|_| AtomicU64::new(0)).collect())
    }

    /// Adds the key with this hash.
    #[inline]
    pub fn add(&self, hash: u64) {
        let (word, bits) = place(hash);
        if let Some(word) = self.0.get(word) {
            // No other thread writes.
            word.store(word.load(Ordering::Relaxed) | bits, Ordering::Relaxed);
        }
    }

    /// Returns false if no key with this hash was added.
    #[inline]
    pub fn may_have(&self, hash: u64) -> bool {
        let (word, bits) = place(hash);
        self.0.get(word).is_none_or(|word| word.load(Ordering::Relaxed) & bits == bits)
    }
}

/// Returns the number of a key's word, and its bits in the word.
#[inline]
fn place(hash: u64) -> (usize, u64) {
    let bits = (0..BITS).fold(0, |bits, number| bits | 1 << (hash >> (6 * number) & 63));
    ((hash >> (u64::BITS - WORD_BITS)) as usize, bits)
}

#[cfg(test)]
mod tests {
    use lsm_tree::table::filter::standard_bloom::Builder;

    use super::*;

    #[test]
    fn keys_that_were_added_are_found_and_few_others() {
        let filter = KeyFilter::new();
        let hash = |number: u64| Builder::get_hash(&number.to_be_bytes());
        (0..150_000).for_each(|number| filter.add(hash(number)));
        assert!((0..150_000).all(|number| filter.may_have(hash(number))));
        let wrong = (150_000..250_000).filter(|number| filter.may_have(hash(*number))).count();
        assert!(wrong < 2000, "{wrong} of 100,000");
    }
}
