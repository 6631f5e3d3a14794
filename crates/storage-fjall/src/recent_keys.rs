//! Which keys are in no memtable. A new key of a unique index is looked up before it is written, and is in
//! no table and no memtable. The filters of the tables say so at once, but a memtable has none: fjall
//! searches its list, which costs as much as inserting the key does. Here each memtable has a filter,
//! which is filled as batches are written.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use lsm_tree::table::filter::standard_bloom::Builder;
use lsm_tree::{AbstractTree, InternalValue, SeqNo, Tree};
use parking_lot::RwLock;

use crate::open_table::Result;

/// Words of a filter. A memtable of 16 MiB has at most 170,000 keys, of which a filter takes one in a
/// hundred that are not there for one that is.
const WORDS: usize = 1 << 15;
/// Memtables whose filters are kept. More wait for their flush only while writers wait for it, too.
const MEMTABLES_MAX: usize = 4;

/// A hash of a key, which the filters of tables use as well.
#[derive(Clone, Copy)]
pub(crate) struct KeyHash(u64);

impl KeyHash {
    pub fn of(key: &[u8]) -> Self {
        Self(Builder::get_hash(key))
    }

    /// The word of a filter that tells of the key, and four of its bits.
    fn place(self) -> (usize, u64) {
        let word = usize::try_from(self.0 >> 32).unwrap_or_default() % WORDS;
        let bit = |shift: u32| 1 << (self.0 >> shift & 63);
        (word, bit(0) | bit(6) | bit(12) | bit(18))
    }
}

/// The keys that were written while a memtable was the one that is written.
struct Written {
    memtable: u64,
    /// Batches that had begun before the first of them.
    epoch: u64,
    /// The memtable has no other keys.
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

/// The filters of a keyspace's memtables, by rising number.
#[derive(Default)]
pub(crate) struct RecentKeys(RwLock<VecDeque<Arc<Written>>>);

impl RecentKeys {
    /// Notes the keys of a batch that is about to be written. `epoch` is the number of batches begun before
    /// it. Returns the number of the memtable that was the one to be written.
    pub fn note(&self, tree: &Tree, epoch: u64, hashes: &[KeyHash]) -> u64 {
        let memtable = tree.active_memtable();
        let last = self.0.read().back().cloned();
        let known = last.as_ref().filter(|last| last.memtable == memtable.id());
        let written = known.cloned().unwrap_or_else(|| {
            // The first memtable may have been read from the log. A later one is empty before a batch,
            // and has nothing but that batch after it.
            self.add(memtable.id(), epoch, memtable.is_empty() || last.is_some())
        });
        hashes.iter().for_each(|hash| written.add(*hash));
        memtable.id()
    }

    /// Notes the keys again once the batch is written, if it may have gone to another memtable than
    /// [`note`](Self::note) has returned.
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

    /// What a snapshot needs to look up keys that are in no memtable. `epoch` is the number of batches
    /// begun before the snapshot, which is open. `None` if it is not known what is in the memtables.
    pub fn tables(&self, tree: &Tree, epoch: u64) -> Option<Tables> {
        let memtable = tree.active_memtable();
        let active = memtable.id();
        // A memtable that is flushed after this is in the tables as well.
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

/// The filters of the memtables from the `oldest` to the `active` one and of those that were written since
/// the snapshot with this epoch: tables need not have what the snapshot sees of a key that was written
/// after it. `None` if there are not all of them.
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
    // One that nothing was written to has no filter yet.
    let is_complete = (oldest..=last).all(is_known) && active <= last + 1;
    is_complete.then_some(written)
}

/// Looks a key with this hash up in one list of tables. fjall does not name the type of its lists.
type Find = dyn Fn(&[u8], SeqNo, u64) -> Result<Option<InternalValue>> + Send + Sync;

/// The tables of a keyspace, and what was not in them when they were looked at.
pub(crate) struct Tables {
    find: Box<Find>,
    written: Vec<Arc<Written>>,
}

impl Tables {
    /// Returns the value of a key in the tables, as a snapshot with the number `seqno` sees it; `None` if
    /// the key may be in a memtable.
    pub fn get(&self, key: &[u8], seqno: SeqNo) -> Result<Option<Option<Bytes>>> {
        let hash = KeyHash::of(key);
        if self.written.iter().any(|written| written.may_have(hash)) {
            return Ok(None);
        }
        let row = (self.find)(key, seqno, hash.0)?;
        Ok(Some(row.filter(|row| !row.is_tombstone()).map(|row| Bytes::from(row.value))))
    }
}
