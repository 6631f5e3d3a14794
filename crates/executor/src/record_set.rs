//! A set of record ids: those that a scan has returned, or those that a statement has written, so
//! that a scan of an index that the writes change does not return them again (the Halloween
//! problem: Astrahan and others, "System R", 1976). It has blocks of 65,536 ids as sorted lists or
//! bitmaps (Chambi, Lemire, Kaser, Godin: "Better bitmap performance with Roaring bitmaps", 2016):
//! at most two bytes an id, an eighth of a byte for dense blocks. Beyond a limit the blocks go to
//! disk as pages, which are read back when needed.

use std::collections::BTreeMap;

use quire_collections::RecordId;
use quire_error::Result;

use crate::env::Env;
use quire_collections::SpillPages;

/// The bytes of blocks that a set holds in memory if it may use the disk: enough for 67 million
/// consecutive ids.
const MEMORY_BYTES_MAX: usize = 8 << 20;

/// A set of record ids.
#[derive(Debug, Default)]
pub(crate) struct RecordSet {
    blocks: BTreeMap<u64, Slot>,
    /// The bytes of the blocks in memory.
    bytes: usize,
    /// The block at which the next eviction starts.
    hand: u64,
    pages: Option<SpillPages>,
}

/// A block in memory, on disk, or in both places.
#[derive(Debug, Default)]
struct Slot {
    block: Option<Block>,
    page: Option<u64>,
    /// True if the block has ids that the page lacks.
    changed: bool,
}

#[derive(Debug)]
enum Block {
    Sparse(Vec<u16>),
    Dense(Box<[u64; WORDS]>),
}

const BLOCK_BITS: u32 = 16;
const WORDS: usize = 1 << (BLOCK_BITS - 6);
const PAGE_BYTES: usize = WORDS * 8;
/// A list with this many ids is as large as a bitmap.
const SPARSE_MAX: usize = 4096;

impl RecordSet {
    /// Adds an id. Returns false if it was in the set.
    ///
    /// # Errors
    /// 292 if the memory is exceeded and the execution must not spill; the errors of the disk.
    pub fn insert(&mut self, id: RecordId, env: &Env) -> Result<bool> {
        let number = id.0 >> BLOCK_BITS;
        let slot = self.blocks.entry(number).or_default();
        let before = slot.bytes();
        let new = slot.block(self.pages.as_mut())?.insert(id.0 as u16);
        slot.changed |= new;
        self.bytes = self.bytes + slot.bytes() - before;
        self.make_room(number, env)?;
        Ok(new)
    }

    /// Returns true if the id is in the set.
    ///
    /// # Errors
    /// Those of [`insert`](Self::insert).
    pub fn contains(&mut self, id: RecordId, env: &Env) -> Result<bool> {
        let number = id.0 >> BLOCK_BITS;
        let Some(slot) = self.blocks.get_mut(&number) else { return Ok(false) };
        let before = slot.bytes();
        let found = slot.block(self.pages.as_mut())?.contains(id.0 as u16);
        self.bytes = self.bytes + slot.bytes() - before;
        self.make_room(number, env)?;
        Ok(found)
    }

    /// Evicts blocks other than `kept` until half of the allowed memory is free.
    fn make_room(&mut self, kept: u64, env: &Env) -> Result<()> {
        let limit = match env.may_spill {
            true => MEMORY_BYTES_MAX.min(env.params.stage_bytes_max),
            false => env.params.stage_bytes_max,
        };
        if self.bytes <= limit {
            return Ok(());
        }
        let Some(directory) = env.spill_directory() else {
            return Err(env.memory_error("Remembering record ids"));
        };
        let pages = match &mut self.pages {
            Some(pages) => pages,
            none => none.insert(SpillPages::create(directory, PAGE_BYTES)?),
        };
        let from = self.hand;
        for around in [from..u64::MAX, 0..from] {
            for (number, slot) in self.blocks.range_mut(around) {
                if self.bytes <= limit / 2 {
                    self.hand = *number;
                    return Ok(());
                }
                if *number != kept {
                    self.bytes -= slot.bytes();
                    slot.evict(pages)?;
                }
            }
        }
        Ok(())
    }
}

impl Slot {
    fn bytes(&self) -> usize {
        match &self.block {
            None => 0,
            Some(Block::Sparse(ids)) => ids.capacity() * 2,
            Some(Block::Dense(_)) => PAGE_BYTES,
        }
    }

    /// Returns the block; reads it back if it is only on disk.
    fn block(&mut self, pages: Option<&mut SpillPages>) -> Result<&mut Block> {
        if self.block.is_none()
            && let (Some(page), Some(pages)) = (self.page, pages)
        {
            let mut bytes = vec![0; PAGE_BYTES];
            pages.read(page, &mut bytes)?;
            let mut words = Box::new([0; WORDS]);
            for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            self.block = Some(Block::Dense(words));
        }
        Ok(self.block.get_or_insert(Block::Sparse(Vec::new())))
    }

    fn evict(&mut self, pages: &mut SpillPages) -> Result<()> {
        let Some(block) = self.block.take() else { return Ok(()) };
        if self.changed {
            let bytes: Vec<u8> = block.words().iter().flat_map(|word| word.to_le_bytes()).collect();
            self.page = Some(pages.write(self.page, &bytes)?);
            self.changed = false;
        }
        Ok(())
    }
}

impl Block {
    fn contains(&self, low: u16) -> bool {
        match self {
            Block::Sparse(ids) => ids.binary_search(&low).is_ok(),
            Block::Dense(words) => {
                let (word, bit) = place(low);
                words.get(word).is_some_and(|word| word & bit != 0)
            }
        }
    }

    fn insert(&mut self, low: u16) -> bool {
        match self {
            Block::Sparse(ids) => match ids.binary_search(&low) {
                Ok(_) => false,
                Err(at) if ids.len() < SPARSE_MAX => {
                    ids.insert(at, low);
                    true
                }
                Err(_) => {
                    *self = Block::Dense(self.words());
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

    fn words(&self) -> Box<[u64; WORDS]> {
        match self {
            Block::Dense(words) => words.clone(),
            Block::Sparse(ids) => {
                let mut words = Box::new([0; WORDS]);
                for id in ids {
                    let (word, bit) = place(*id);
                    words[word] |= bit;
                }
                words
            }
        }
    }
}

fn place(low: u16) -> (usize, u64) {
    (usize::from(low) / 64, 1 << (low % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use quire_document::Doc;
    use quire_error::ErrorCode;
    use quire_storage::Interrupt;

    use super::*;
    use crate::params::ExecParams;

    fn env(bytes: usize, may_spill: bool) -> Env {
        let mut params = ExecParams::new(Interrupt::new(), 0);
        params.stage_bytes_max = bytes;
        Env::new(params, None, Doc::empty(), may_spill).unwrap()
    }

    #[test]
    fn remembers_sparse_and_dense_ids() {
        let env = env(1 << 20, true);
        let mut set = RecordSet::default();
        for id in (0..20_000).map(|n| RecordId(n * 3)) {
            assert!(set.insert(id, &env).unwrap());
            assert!(!set.insert(id, &env).unwrap());
        }
        assert!(set.insert(RecordId(u64::MAX), &env).unwrap());
        let mut has = |id| set.contains(RecordId(id), &env).unwrap();
        assert!((0..60_000).all(|n| has(n) == (n % 3 == 0)));
        assert!(has(u64::MAX) && !has(u64::MAX - 1));
        assert!(set.pages.is_none());
    }

    #[test]
    fn goes_on_on_disk() {
        const LIMIT: usize = 64 << 10;
        let env = env(LIMIT, true);
        let (mut set, mut model) = (RecordSet::default(), HashSet::new());
        let mut state = 7_u64;
        for step in 0..60_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step | 1);
            // Some blocks become bitmaps, others stay lists.
            let id = if state >> 63 == 0 { (state >> 40) % 150_000 } else { (state >> 40) * 5 };
            assert_eq!(set.insert(RecordId(id), &env).unwrap(), model.insert(id));
            assert!(set.bytes <= LIMIT, "{} bytes after {step}", set.bytes);
        }
        assert!(set.pages.is_some());
        for id in (0..150_000).chain(model.clone()) {
            assert_eq!(set.contains(RecordId(id), &env).unwrap(), model.contains(&id), "{id}");
        }
    }

    #[test]
    fn without_a_disk_memory_ends() {
        let env = env(16 << 10, false);
        let mut set = RecordSet::default();
        let failed = (0..1 << 20).find_map(|id| set.insert(RecordId(id), &env).err()).unwrap();
        assert_eq!(failed.code(), ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed);
    }
}
