//! Filters that tell which keys are in no memtable. A new key of a unique index is looked up before
//! it is written, and is in no table and no memtable. The filters of the tables show that at once,
//! but fjall's memtables have no filter: fjall searches the skip list, which costs as much as an
//! insert. Here each memtable has a filter, which is filled as batches are written.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use lsm_tree::table::filter::standard_bloom::Builder;
use lsm_tree::{AbstractTree, InternalValue, SeqNo, Tree};
use parking_lot::RwLock;

use crate::open_table::Result;

/// The number of words of a filter. A memtable of 16 MiB has at most 170,000 keys; with these the
/// filter has one false positive in a hundred look-ups.
const WORDS: usize = 1 << 15;
/// The number of memtables whose filters are kept. More memtables wait for a flush only while
/// writers wait too.
const MEMTABLES_MAX: usize = 4;

/// A hash of a key, the same as in the filters of tables.
#[derive(Clone, Copy)]
pub(crate) struct KeyHash(u64);

impl KeyHash {
    pub fn of(key: &[u8]) -> Self {
        Self(Builder::get_hash(key))
    }

    /// Returns the position of the key's word in a filter, and its four bits in that word.
    fn place(self) -> (usize, u64) {
        let word = usize::try_from(self.0 >> 32).unwrap_or_default() % WORDS;
        let bit = |shift: u32| 1 << (self.0 >> shift & 63);
        (word, bit(0) | bit(6) | bit(12) | bit(18))
    }
}

/// The filter of the keys that were written while one memtable was active.
struct Written {
    memtable: u64,
    /// The number of batches that had begun before its first one.
    epoch: u64,
    /// True if the memtable has no keys that are missing here.
    is_whole: bool,
    words: Box<[AtomicU64]>,
}

impl Written {
    fn add(&self, hash: KeyHash) {
        let (word, bits) = hash.place();
        if let Some(word) = self.words.get(word) {
            // Only one batch is written at a time.
            word.store(word.load(Ordering::Relaxed) | bits, Ordering::Relaxed);
        }
    }

    fn may_have(&self, hash: KeyHash) -> bool {
        let (word, bits) = hash.place();
        self.words.get(word).is_none_or(|word| word.load(Ordering::Relaxed) & bits == bits)
    }
}

/// The filters of a keyspace's memtables, by ascending memtable number.
#[derive(Default)]
pub(crate) struct RecentKeys(RwLock<VecDeque<Arc<Written>>>);

impl RecentKeys {
    /// Notes the keys of a batch before it is written. `epoch` is the number of batches begun
    /// before it. Returns the number of the active memtable.
    pub fn note(&self, tree: &Tree, epoch: u64, hashes: &[KeyHash]) -> u64 {
        let memtable = tree.active_memtable();
        let last = self.0.read().back().cloned();
        let known = last.as_ref().filter(|last| last.memtable == memtable.id());
        let written = known.cloned().unwrap_or_else(|| {
            // The first memtable may contain keys that were replayed from the log. A later one is
            // empty before its first batch.
            self.add(memtable.id(), epoch, memtable.is_empty() || last.is_some())
        });
        hashes.iter().for_each(|hash| written.add(*hash));
        memtable.id()
    }

    /// Notes the keys again after the batch was written, if it may have gone to a later memtable
    /// than the one that [`note`](Self::note) returned.
    pub fn note_written(&self, tree: &Tree, epoch: u64, hashes: &[KeyHash], noted: u64) {
        if tree.active_memtable().id() != noted {
            self.note(tree, epoch, hashes);
        }
    }

    fn add(&self, memtable: u64, epoch: u64, is_whole: bool) -> Arc<Written> {
        let words = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        let written = Arc::new(Written { memtable, epoch, is_whole, words });
        let mut all = self.0.write();
        if all.len() == MEMTABLES_MAX {
            all.pop_front();
        }
        all.push_back(Arc::clone(&written));
        written
    }

    /// Returns what a snapshot needs to look up keys that are in no memtable. `epoch` is the number
    /// of batches begun before the snapshot, which is open. `None` if the memtables' keys are not
    /// known.
    pub fn tables(&self, tree: &Tree, epoch: u64) -> Option<Tables> {
        let memtable = tree.active_memtable();
        let active = memtable.id();
        // A memtable that is flushed after this line is in the tables as well.
        let oldest = active.checked_sub(tree.sealed_memtable_count() as u64)?;
        let version = tree.current_version();
        let all = self.0.read();
        let written = match all.is_empty() && memtable.is_empty() && oldest == active {
            true => Vec::new(),
            false => unflushed(&all, oldest, active, epoch)?,
        };
        let find = move |key: &[u8], seqno: SeqNo, hash: u64| {
            let runs = version.iter_levels().flat_map(|level| level.iter());
            let mut tables = runs.filter_map(|run| run.get_for_key(key));
            tables.find_map(|table| table.get(key, seqno, hash).transpose()).transpose()
        };
        Some(Tables { find: Box::new(find), written })
    }
}

/// Returns the filters of the memtables from number `oldest` to `active`, and of those that were
/// written since the snapshot of this epoch: a key written after the snapshot may no longer have
/// the snapshot's version in the tables. `None` if a filter is missing.
fn unflushed(
    all: &VecDeque<Arc<Written>>,
    oldest: u64,
    active: u64,
    epoch: u64,
) -> Option<Vec<Arc<Written>>> {
    let since = all.iter().rposition(|written| written.epoch <= epoch)?;
    let unflushed = all.iter().position(|written| written.memtable >= oldest);
    let unflushed = unflushed.unwrap_or(all.len());
    let last = all.back()?.memtable;
    let written: Vec<_> = all.iter().skip(since.min(unflushed)).cloned().collect();
    let is_known = |memtable| {
        let mut written = written.iter();
        written.any(|written| written.memtable == memtable && written.is_whole)
    };
    // A memtable without writes has no filter yet.
    let is_complete = (oldest..=last).all(is_known) && active <= last + 1;
    is_complete.then_some(written)
}

/// Looks up a key with its hash in one list of tables. fjall does not export the type of its lists.
type Find = dyn Fn(&[u8], SeqNo, u64) -> Result<Option<InternalValue>> + Send + Sync;

/// The tables of a keyspace, and filters of the keys that were not in them at that time.
pub(crate) struct Tables {
    find: Box<Find>,
    written: Vec<Arc<Written>>,
}

impl Tables {
    /// Returns the value of a key in the tables, as the snapshot `seqno` sees it; `None` if the key
    /// may be in a memtable.
    pub fn get(&self, key: &[u8], seqno: SeqNo) -> Result<Option<Option<Bytes>>> {
        let hash = KeyHash::of(key);
        if self.written.iter().any(|written| written.may_have(hash)) {
            return Ok(None);
        }
        let row = (self.find)(key, seqno, hash.0)?;
        Ok(Some(row.filter(|row| !row.is_tombstone()).map(|row| Bytes::from(row.value))))
    }
}
