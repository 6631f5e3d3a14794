//! The rows of a space that are in no table yet: a B-tree that one writer fills and any number of
//! snapshots read.
//!
//! Every version of a key stays until the memtable is flushed, so that each snapshot sees its own.
//! Keys lie side by side in the nodes: a search touches a few cache lines, where a skip list
//! touches two for each comparison. Keys that rise, as those of new documents do, fill the last
//! leaf without a search. Readers copy a few rows at a time under the lock of the tree, so that the
//! writer waits for microseconds at most; it lets waiting readers pass every few rows.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};

use bytes::Bytes;
use lsm_tree::table::filter::standard_bloom::Builder;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use quire_storage::Direction;

use crate::memory::key_filter::KeyFilter;
use crate::memory::row_tree::{Row, RowTree, WIDTH};

/// The bytes that a row occupies beside its key and value.
const ROW_BYTES: u64 = 80;
/// The number of rows after which the writer lets waiting readers pass.
const ROWS_AT_ONCE: usize = 64;
/// The number of keys too new for its snapshot after which a reader lets a waiting writer pass.
const SKIPPED_AT_ONCE: usize = 256;
/// The number of leaves from which a memtable has a filter.
const FILTERED_LEAVES: usize = 8;
/// The rows that a reader copies out at first, and at most, at a time.
const AHEAD_FIRST: usize = 4;
const AHEAD_MAX: usize = 256;

/// The rows that were written while this was the active memtable of its space, and late rows
/// (`Store::cut`).
pub(crate) struct Memtable {
    /// The order of the space's memtables; later ones have greater numbers.
    number: u64,
    bytes: AtomicU64,
    /// The number of the log file that has the first row; `u64::MAX` while there is none.
    first_log: AtomicU64,
    /// The number of the first batch with a row; `u64::MAX` while there is none.
    first_seqno: AtomicU64,
    rows: RwLock<RowTree>,
    /// The keys of the rows, once there are many; `None` without a filter.
    filter: Option<OnceLock<KeyFilter>>,
}

/// Returns the hash of a key for [`Memtable::get`], which is the one of the tables' filters.
pub(crate) fn hash_of(key: &[u8]) -> u64 {
    Builder::get_hash(key)
}

/// A row that a reader has copied out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemtableRow {
    pub key: Bytes,
    /// The number of the batch that wrote it.
    pub seqno: u64,
    /// `None` if the batch deleted the key.
    pub value: Option<Bytes>,
}

impl MemtableRow {
    /// Returns a copy of a row without its key.
    fn of(row: &Row<'_>) -> Self {
        Self { key: Bytes::new(), seqno: row.seqno, value: row.value.clone() }
    }
}

impl Memtable {
    /// Returns an empty memtable.
    pub fn new(number: u64) -> Self {
        Self {
            number,
            bytes: AtomicU64::new(0),
            first_log: AtomicU64::new(u64::MAX),
            first_seqno: AtomicU64::new(u64::MAX),
            rows: RwLock::new(RowTree::new()),
            filter: None,
        }
    }

    /// Returns an empty memtable of a space in which most keys are looked up before they are
    /// written, and are not there: those of unique indexes.
    pub fn filtered(number: u64) -> Self {
        Self { filter: Some(OnceLock::new()), ..Self::new(number) }
    }

    /// Returns the place of the memtable in the order of its space.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the memory of the rows, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Atomic::Relaxed)
    }

    /// Returns true if no row was written.
    pub fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// Returns the number of the first log file that a replay of these rows needs; `u64::MAX` for
    /// an empty memtable.
    pub fn first_log(&self) -> u64 {
        self.first_log.load(Atomic::Acquire)
    }

    /// Returns the number of the first batch with a row here; `u64::MAX` for an empty memtable.
    pub fn first_seqno(&self) -> u64 {
        self.first_seqno.load(Atomic::Acquire)
    }

    /// Returns about `count` samples of the values, at equal distances in bytes, each of up to
    /// `bytes` bytes of values that lie side by side.
    pub fn samples(&self, count: usize, bytes: usize) -> Vec<Vec<u8>> {
        let rows = self.rows.read();
        let all: usize = (0..rows.leaves()).map(|leaf| rows.value_bytes(leaf)).sum();
        let distance = (all / count).max(bytes);
        let mut samples: Vec<Vec<u8>> = Vec::new();
        let mut at = 0;
        for leaf in 0..rows.leaves() {
            let (place, length) = (at % distance, rows.value_bytes(leaf));
            if place >= bytes && place + length <= distance {
                at += length;
                continue;
            }
            for mut value in rows.rows_of(leaf).filter_map(|row| row.value.as_deref()) {
                while !value.is_empty() {
                    let place = at % distance;
                    if place == 0 {
                        samples.push(Vec::with_capacity(bytes));
                    }
                    let until = if place < bytes { bytes } else { distance };
                    let (part, after) = value.split_at(value.len().min(until - place));
                    if let Some(sample) = samples.last_mut().filter(|_| place < bytes) {
                        sample.extend_from_slice(part);
                    }
                    at += part.len();
                    value = after;
                }
            }
        }
        samples
    }

    /// Returns about `count` keys at equal distances, and the number of all keys, by an estimate.
    pub fn sample_keys(&self, count: usize) -> (Vec<Vec<u8>>, u64) {
        let rows = self.rows.read();
        let step = rows.leaves().div_ceil(count).max(1);
        let (mut sample, mut keys) = (Vec::new(), 0);
        for leaf in (0..rows.leaves()).step_by(step) {
            let mut last: Option<&[u8]> = None;
            for key in rows.rows_of(leaf).map(|row| row.key) {
                // The versions of a key lie side by side.
                keys += u64::from(last != Some(key));
                last = Some(key);
            }
            sample.extend(last.map(<[u8]>::to_vec));
        }
        (sample, keys * step as u64)
    }

    /// Adds the changes of batch `seqno`, whose record is in the log file `log`: each key with its
    /// value, or without one if it is deleted. Only one thread may write at a time, and no snapshot
    /// may see the batch before the call returns.
    pub fn write<'k>(
        &self,
        changes: impl Iterator<Item = (&'k [u8], Option<Bytes>)>,
        seqno: u64,
        log: u64,
    ) {
        self.first_log.fetch_min(log, Atomic::AcqRel);
        self.first_seqno.fetch_min(seqno, Atomic::AcqRel);
        let mut rows = self.rows.write();
        let mut bytes = 0;
        for (number, (key, value)) in changes.enumerate() {
            if number % ROWS_AT_ONCE == ROWS_AT_ONCE - 1 {
                RwLockWriteGuard::bump(&mut rows);
            }
            bytes += ROW_BYTES + (key.len() + value.as_ref().map_or(0, Bytes::len)) as u64;
            rows.insert(key, seqno, value);
            if let Some(filter) = self.filter() {
                filter.add(hash_of(key));
            }
        }
        if let Some(cell) = &self.filter
            && cell.get().is_none()
            && rows.leaves() >= FILTERED_LEAVES
        {
            let filter = KeyFilter::new();
            rows.keys().for_each(|key| filter.add(hash_of(key)));
            let _ = cell.set(filter);
        }
        self.bytes.fetch_add(bytes, Atomic::Relaxed);
    }

    fn filter(&self) -> Option<&KeyFilter> {
        self.filter.as_ref()?.get()
    }

    /// Returns the newest row of `key` that batch `seqno` or an earlier one wrote. `hash` is the
    /// key's hash.
    pub fn get(&self, key: &[u8], hash: u64, seqno: u64) -> Option<Option<Bytes>> {
        let is_absent = self.filter().is_some_and(|filter| !filter.may_have(hash));
        if is_absent || self.is_empty() {
            return None;
        }
        let rows = self.rows.read();
        let place = rows.search(key, seqno)?;
        let row = rows.row(place)?;
        (row.key == key).then(|| row.value.clone())
    }

    /// Appends to `found` the newest row of each key from `start` on, as of batch `seqno`, at most
    /// `count` of them. Returns false if these were the last.
    pub fn read(
        &self,
        start: &[u8],
        seqno: u64,
        count: usize,
        found: &mut Vec<MemtableRow>,
    ) -> bool {
        let mut rows = self.rows.read();
        let mut place = rows.search(start, u64::MAX);
        let mut keys = SharedKeys::new(count);
        let mut skipped = 0;
        while let Some(at) = place {
            if keys.len() == count {
                keys.share(found);
                return true;
            }
            let Some(row) = rows.row(at) else { break };
            if row.seqno > seqno {
                skipped += 1;
                place = match skipped % SKIPPED_AT_ONCE {
                    0 => {
                        let key = row.key.to_vec();
                        RwLockReadGuard::bump(&mut rows);
                        rows.search(&key, seqno)
                    }
                    _ => rows.search(row.key, seqno),
                };
                continue;
            }
            keys.push(row.key);
            found.push(MemtableRow::of(&row));
            place = rows.next_key(at, row.key);
        }
        keys.share(found);
        false
    }

    /// Calls `take` with the newest row of each key, in ascending order, until it fails. For a
    /// memtable that is no longer written to: a writer would wait until the end.
    pub fn try_for_each<E>(
        &self,
        mut take: impl FnMut(&Row<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let rows = self.rows.read();
        let mut place = rows.search(&[], u64::MAX);
        while let Some(at) = place
            && let Some(row) = rows.row(at)
        {
            take(&row)?;
            place = rows.next_key(at, row.key);
        }
        Ok(())
    }

    /// Appends to `found` the newest row of each key below `end`, in descending order, as of batch
    /// `seqno`, at most `count` of them. An empty `end` is above all keys. Returns false if these
    /// were the last.
    pub fn read_back(
        &self,
        end: &[u8],
        seqno: u64,
        count: usize,
        found: &mut Vec<MemtableRow>,
    ) -> bool {
        let mut rows = self.rows.read();
        let mut place = match end.is_empty() {
            true => rows.last(),
            false => rows.before(rows.search(end, u64::MAX)),
        };
        let mut keys = SharedKeys::new(count);
        let mut skipped = 0;
        while let Some(at) = place {
            if keys.len() == count {
                keys.share(found);
                return true;
            }
            // This is the oldest version of its key.
            let Some(mut row) = rows.row(at) else { break };
            place = rows.before(Some(at));
            if place.and_then(|before| rows.key(before)) == Some(row.key) {
                place = rows.before(rows.search(row.key, u64::MAX));
                let newest = rows.search(row.key, seqno).and_then(|newest| rows.row(newest));
                row = newest.filter(|newest| newest.key == row.key).unwrap_or(row);
            }
            if row.seqno <= seqno {
                keys.push(row.key);
                found.push(MemtableRow::of(&row));
                continue;
            }
            skipped += 1;
            if skipped % SKIPPED_AT_ONCE == 0 {
                let key = row.key.to_vec();
                RwLockReadGuard::bump(&mut rows);
                place = rows.before(rows.search(&key, u64::MAX));
            }
        }
        keys.share(found);
        false
    }
}

/// The rows of a memtable as one snapshot sees them, in ascending or in descending order. They are
/// copied out a few at a time, each time more.
pub(crate) struct MemtableRows<'m> {
    memtable: &'m Memtable,
    seqno: u64,
    direction: Direction,
    read: std::vec::IntoIter<MemtableRow>,
    /// Where the next read begins, see [`Memtable::read`] and [`Memtable::read_back`]; `None` after
    /// the last one.
    bound: Option<Vec<u8>>,
    /// The number of rows of the next read.
    ahead: usize,
}

impl<'m> MemtableRows<'m> {
    /// Returns the rows from the key `bound` on, or in reverse those below it. In reverse an empty
    /// bound is above all keys.
    pub fn new(memtable: &'m Memtable, seqno: u64, direction: Direction, bound: &[u8]) -> Self {
        let bound = (!memtable.is_empty()).then(|| bound.to_vec());
        let read = Vec::new().into_iter();
        Self { memtable, seqno, direction, read, bound, ahead: AHEAD_FIRST }
    }

    fn refill(&mut self, mut bound: Vec<u8>) {
        let mut rows = Vec::with_capacity(self.ahead);
        let (count, seqno) = (self.ahead, self.seqno);
        let has_more = match self.direction {
            Direction::Forward => self.memtable.read(&bound, seqno, count, &mut rows),
            Direction::Reverse => self.memtable.read_back(&bound, seqno, count, &mut rows),
        };
        self.ahead = (self.ahead * 4).min(AHEAD_MAX);
        if has_more && let Some(last) = rows.last() {
            bound.clear();
            bound.extend_from_slice(&last.key);
            if self.direction == Direction::Forward {
                bound.push(0);
            }
            self.bound = Some(bound);
        }
        self.read = rows.into_iter();
    }
}

impl Iterator for MemtableRows<'_> {
    type Item = MemtableRow;

    fn next(&mut self) -> Option<MemtableRow> {
        if self.read.as_slice().is_empty()
            && let Some(bound) = self.bound.take()
        {
            self.refill(bound);
        }
        self.read.next()
    }
}

/// The keys of the rows that one read copies. They share an allocation.
struct SharedKeys {
    keys: Vec<u8>,
    ends: Vec<usize>,
}

impl SharedKeys {
    fn new(count: usize) -> Self {
        Self { keys: Vec::new(), ends: Vec::with_capacity(count.min(WIDTH)) }
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn push(&mut self, key: &[u8]) {
        self.keys.extend_from_slice(key);
        self.ends.push(self.keys.len());
    }

    /// Gives the keys to the last rows of `found`.
    fn share(self, found: &mut [MemtableRow]) {
        let keys = Bytes::from(self.keys);
        let first = found.len().saturating_sub(self.ends.len());
        let mut from = 0;
        for (row, end) in found.iter_mut().skip(first).zip(self.ends) {
            row.key = keys.slice(from..end);
            from = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_storage::rng::Rng;
    use std::cmp::Reverse;
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    #[test]
    fn samples_are_parts_of_the_values_at_equal_distances() {
        let memtable = Memtable::new(0);
        let sizes = [10, 300, 0, 5000, 7, 120_000, 64].into_iter().cycle().take(300);
        let mut all = Vec::new();
        for (number, size) in sizes.enumerate() {
            let value: Vec<u8> = (all.len()..all.len() + size).map(|at| (at / 7) as u8).collect();
            all.extend_from_slice(&value);
            let key = number.to_be_bytes();
            memtable.write([(&key[..], Some(Bytes::from(value)))].into_iter(), 1, 1);
        }
        let samples = memtable.samples(16, 1000);
        let distance = all.len() / 16;
        assert!(samples.len() >= 16);
        for (number, sample) in samples.iter().enumerate() {
            let from = number * distance;
            assert_eq!(sample, &all[from..all.len().min(from + 1000)]);
        }
        assert!(Memtable::new(0).samples(16, 1000).is_empty());
    }

    type Model = BTreeMap<(Vec<u8>, Reverse<u64>), Option<Bytes>>;

    fn key(rng: &mut Rng, range: u64) -> Vec<u8> {
        let number = rng.below(range);
        let mut key = format!("{number:05}").into_bytes();
        key.extend(std::iter::repeat_n(b'x', (number % 7) as usize));
        key
    }

    fn filled(seed: u64, batches: u64, range: u64, rising: bool) -> (Memtable, Model) {
        let (mut rng, table, mut model) = (Rng::new(seed), Memtable::filtered(0), Model::new());
        let mut record = 0_u64;
        for seqno in 1..=batches {
            let changes: Vec<(Vec<u8>, Option<Bytes>)> = (0..=rng.below(150))
                .map(|_| {
                    record += 1;
                    let rises = rising && rng.below(10) > 0;
                    let key =
                        if rises { format!("r{record:09}").into() } else { key(&mut rng, range) };
                    let value = (rng.below(5) > 0).then(|| Bytes::from(record.to_string()));
                    model.insert((key.clone(), Reverse(seqno)), value.clone());
                    (key, value)
                })
                .collect();
            let changes = changes.iter().map(|(key, value)| (&key[..], value.clone()));
            table.write(changes, seqno, seqno + 10);
        }
        (table, model)
    }

    /// Returns the newest rows as of `seqno`, in ascending order.
    fn seen(model: &Model, seqno: u64) -> Vec<MemtableRow> {
        let mut rows: Vec<MemtableRow> = Vec::new();
        for ((key, Reverse(at)), value) in model {
            if *at <= seqno && rows.last().is_none_or(|last| last.key[..] != key[..]) {
                let key = Bytes::from(key.clone());
                rows.push(MemtableRow { key, seqno: *at, value: value.clone() });
            }
        }
        rows
    }

    #[test]
    fn every_snapshot_reads_its_own_versions() {
        for (seed, range, rising) in [(1, 40, false), (2, 20_000, false), (3, 5_000, true)] {
            let batches = 120;
            let (table, model) = filled(seed, batches, range, rising);
            let mut rng = Rng::new(seed);
            for seqno in [0, 1, 7, batches / 2, batches, batches + 9] {
                let rows = seen(&model, seqno);
                for _ in 0..50 {
                    let key = key(&mut rng, range);
                    let wanted = rows.iter().find(|row| row.key[..] == key[..]);
                    assert_eq!(
                        table.get(&key, hash_of(&key), seqno),
                        wanted.map(|row| row.value.clone())
                    );
                    let from = rows.partition_point(|row| row.key[..] < key[..]);
                    let count = 1 + rng.below(200) as usize;
                    let (mut ahead, mut back) = (Vec::new(), Vec::new());
                    let more = table.read(&key, seqno, count, &mut ahead);
                    let wanted: Vec<_> = rows[from..].iter().take(count).cloned().collect();
                    assert_eq!(ahead, wanted);
                    assert!(more || from + count >= rows.len());
                    let more = table.read_back(&key, seqno, count, &mut back);
                    let wanted: Vec<_> = rows[..from].iter().rev().take(count).cloned().collect();
                    assert_eq!(back, wanted);
                    assert!(more || from <= count);
                }
                let mut all = Vec::new();
                table.read_back(&[], seqno, usize::MAX, &mut all);
                all.reverse();
                assert_eq!(all, rows);
            }
        }
    }

    /// Readers must not walk over all versions of a key, because the writer waits for them.
    #[test]
    fn a_key_with_many_versions_is_read_at_once() {
        let table = Memtable::new(0);
        let value = |n: u64| Some(Bytes::from(n.to_string()));
        for seqno in 1..=200_000 {
            table.write([(&b"k"[..], value(seqno))].into_iter(), seqno, 0);
        }
        for seqno in (0..200_000).step_by(20) {
            for read in [Memtable::read, Memtable::read_back] {
                let mut rows = Vec::new();
                read(&table, &[], seqno, 10, &mut rows);
                let wanted = (seqno > 0).then(|| value(seqno));
                assert_eq!(rows.pop().map(|row| row.value), wanted);
            }
        }
    }

    /// A reader of an old snapshot may have to pass many keys that are newer.
    #[test]
    fn a_reader_that_finds_nothing_lets_the_writer_pass() {
        let (table, written) = (Memtable::new(0), AtomicU64::new(0));
        let keys: Vec<[u8; 4]> = (0..200_000_u32).map(u32::to_be_bytes).collect();
        table.write(keys.iter().map(|key| (&key[..], Some(Bytes::new()))), 2, 0);
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for seqno in 3.. {
                    table.write([(&b"w"[..], None)].into_iter(), seqno, 0);
                    written.store(seqno, Atomic::Relaxed);
                    if ended.load(Atomic::Relaxed) {
                        return;
                    }
                    // So that few writes pass before the reader has the lock.
                    std::thread::sleep(Duration::from_micros(50));
                }
            });
            while written.load(Atomic::Relaxed) < 10 {
                std::thread::yield_now();
            }
            // On a busy machine the writer may not run during one read.
            let passed = [Memtable::read, Memtable::read_back].map(|read| {
                let mut reads = (0..20).map(|_| {
                    let before = written.load(Atomic::Relaxed);
                    let mut rows = Vec::new();
                    assert!(!read(&table, &[], 1, 10, &mut rows) && rows.is_empty());
                    written.load(Atomic::Relaxed) - before
                });
                reads.any(|writes| writes > 20)
            });
            ended.store(true, Atomic::Relaxed);
            assert_eq!(passed, [true; 2]);
        });
    }

    #[test]
    fn rising_keys_leave_full_leaves() {
        let table = Memtable::new(0);
        let keys: Vec<[u8; 4]> = (0..64_000_u32).map(u32::to_be_bytes).collect();
        table.write(keys.iter().map(|key| (&key[..], Some(Bytes::new()))), 1, 0);
        assert_eq!(table.rows.read().leaves(), 1_000);
        let mut rows = Vec::new();
        assert!(!table.read(&[], 1, usize::MAX, &mut rows));
        assert_eq!(rows.len(), 64_000);
    }

    #[test]
    fn it_knows_its_first_log_file() {
        let table = Memtable::new(3);
        assert!(table.is_empty() && table.first_log() == u64::MAX);
        for (seqno, log) in [(1, 7), (2, 8)] {
            table.write([(&b"k"[..], None)].into_iter(), seqno, log);
        }
        assert_eq!((table.number(), table.first_log(), table.first_seqno()), (3, 7, 1));
        assert_eq!(table.get(b"k", hash_of(b"k"), 2), Some(None));
    }
}
