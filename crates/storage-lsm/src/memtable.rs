//! The rows of a space that are in no table yet: a B-tree that one writer fills and any number of
//! snapshots read.
//!
//! Every version of a key stays until the memtable is flushed, so that each snapshot sees its own.
//! Keys lie side by side in the leaves: a search touches a few cache lines, where a list of nodes
//! would touch two for each comparison. Keys that rise, as those of new documents do, fill the last
//! leaf without a search. Readers copy a few rows at a time under the lock of the tree, so that the
//! writer waits for microseconds at most; it lets waiting readers pass every few rows.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};

use bytes::Bytes;
use parking_lot::{RwLock, RwLockWriteGuard};
use quire_storage::{Direction, Op};
use smallvec::SmallVec;

/// The most rows of a leaf, and the most children of an inner node.
const WIDTH: usize = 64;
/// The bytes that a row occupies beside its key and value.
const ROW_BYTES: u64 = 64;
/// The number of rows after which the writer lets waiting readers pass.
const ROWS_AT_ONCE: usize = 64;
/// The rows that a reader copies out at first, and at most, at a time.
const AHEAD_FIRST: usize = 4;
const AHEAD_MAX: usize = 256;
/// The number that stands for "no node".
const NONE: u32 = u32::MAX;

/// The rows that were written while this was the active memtable of its space.
pub(crate) struct Memtable {
    /// The order of the space's memtables; later ones have greater numbers.
    number: u64,
    bytes: AtomicU64,
    /// The number of the log file that has the first row; `u64::MAX` while there is none.
    first_log: AtomicU64,
    rows: RwLock<Rows>,
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

impl Memtable {
    /// Returns an empty memtable.
    pub fn new(number: u64) -> Self {
        Self {
            number,
            bytes: AtomicU64::new(0),
            first_log: AtomicU64::new(u64::MAX),
            rows: RwLock::new(Rows::new()),
        }
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

    /// Adds the rows of batch `seqno`, whose record is in the log file `log`. Only one thread may
    /// write at a time, and no snapshot may see the batch before the call returns.
    pub fn write(&self, ops: impl Iterator<Item = Op>, seqno: u64, log: u64) {
        self.first_log.fetch_min(log, Atomic::AcqRel);
        let mut rows = self.rows.write();
        let mut bytes = 0;
        for (number, op) in ops.enumerate() {
            if number % ROWS_AT_ONCE == ROWS_AT_ONCE - 1 {
                RwLockWriteGuard::bump(&mut rows);
            }
            let value = op.value.as_ref().map_or(0, Bytes::len);
            bytes += ROW_BYTES + (op.key.len() + value) as u64;
            rows.insert(&op.key, seqno, op.value);
        }
        self.bytes.fetch_add(bytes, Atomic::Relaxed);
    }

    /// Returns the newest row of `key` that batch `seqno` or an earlier one wrote.
    pub fn get(&self, key: &[u8], seqno: u64) -> Option<Option<Bytes>> {
        if self.is_empty() {
            return None;
        }
        let rows = self.rows.read();
        let place = rows.search(key, seqno)?;
        let row = rows.row(place)?;
        (rows.key(place)? == key).then(|| row.value.clone())
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
        let rows = self.rows.read();
        let mut place = rows.search(start, u64::MAX);
        let mut keys = SharedKeys::new(count);
        while let Some(at) = place {
            if keys.len() == count {
                keys.share(found);
                return true;
            }
            let (Some(key), Some(row)) = (rows.key(at), rows.row(at)) else { break };
            place = rows.next(at);
            if row.seqno > seqno {
                continue;
            }
            keys.push(key);
            found.push(row.copied());
            while let Some(other) = place
                && rows.key(other) == Some(key)
            {
                place = rows.next(other);
            }
        }
        keys.share(found);
        false
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
        let rows = self.rows.read();
        let mut place = match end.is_empty() {
            true => rows.last(),
            false => rows.before(rows.search(end, u64::MAX)),
        };
        let mut keys = SharedKeys::new(count);
        while let Some(at) = place {
            if keys.len() == count {
                keys.share(found);
                return true;
            }
            let Some(key) = rows.key(at) else { break };
            // The versions of a key come oldest first here: the last that is seen is the newest.
            let mut newest = None;
            while let Some(other) = place
                && rows.key(other) == Some(key)
            {
                newest = rows.row(other).filter(|row| row.seqno <= seqno).or(newest);
                place = rows.before(Some(other));
            }
            if let Some(row) = newest {
                keys.push(key);
                found.push(row.copied());
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

/// A row in a leaf. Its key lies in the leaf's bytes.
struct Row {
    seqno: u64,
    value: Option<Bytes>,
    key: KeyPlace,
}

impl Row {
    /// Returns a copy without its key.
    fn copied(&self) -> MemtableRow {
        MemtableRow { key: Bytes::new(), seqno: self.seqno, value: self.value.clone() }
    }
}

/// The place of a key in the bytes of a node.
#[derive(Clone, Copy)]
struct KeyPlace {
    at: u32,
    length: u32,
}

impl KeyPlace {
    fn add(keys: &mut Vec<u8>, key: &[u8]) -> Self {
        let at = keys.len() as u32;
        keys.extend_from_slice(key);
        Self { at, length: key.len() as u32 }
    }

    fn of(self, keys: &[u8]) -> &[u8] {
        let at = self.at as usize;
        keys.get(at..at + self.length as usize).unwrap_or_default()
    }
}

/// The order of rows: by key, and among equal keys the newest first.
fn order(key: &[u8], seqno: u64, than: (&[u8], u64)) -> Ordering {
    key.cmp(than.0).then(than.1.cmp(&seqno))
}

/// Rows in their order.
struct Leaf {
    /// The keys, in the order of their arrival.
    keys: Vec<u8>,
    rows: Vec<Row>,
    before: u32,
    next: u32,
}

impl Leaf {
    fn new(before: u32, next: u32) -> Self {
        Self { keys: Vec::new(), rows: Vec::with_capacity(WIDTH), before, next }
    }

    fn at(&self, number: usize) -> Option<(&[u8], u64)> {
        self.rows.get(number).map(|row| (row.key.of(&self.keys), row.seqno))
    }

    /// Returns the number of rows that come before the row `(key, seqno)`.
    fn rank(&self, key: &[u8], seqno: u64) -> usize {
        self.rows
            .partition_point(|row| order(row.key.of(&self.keys), row.seqno, (key, seqno)).is_lt())
    }

    /// Moves the rows from number `from` on into a new leaf.
    fn split(&mut self, from: usize, own: u32) -> Self {
        let mut right = Self::new(own, self.next);
        if from == self.rows.len() {
            return right;
        }
        let moved: Vec<Row> = self.rows.drain(from..).collect();
        for row in moved {
            let key = KeyPlace::add(&mut right.keys, row.key.of(&self.keys));
            right.rows.push(Row { key, ..row });
        }
        let mut keys = Vec::with_capacity(self.keys.len());
        for row in &mut self.rows {
            row.key = KeyPlace::add(&mut keys, row.key.of(&self.keys));
        }
        self.keys = keys;
        right
    }
}

/// Children in the order of their rows. Child number `n + 1` begins with separator `n`.
struct Inner {
    keys: Vec<u8>,
    separators: Vec<(KeyPlace, u64)>,
    children: Vec<u32>,
}

impl Inner {
    fn rank(&self, key: &[u8], seqno: u64) -> usize {
        self.separators.partition_point(|(separator, at)| {
            order(separator.of(&self.keys), *at, (key, seqno)).is_le()
        })
    }

    fn insert(&mut self, rank: usize, key: &[u8], seqno: u64, child: u32) {
        let separator = KeyPlace::add(&mut self.keys, key);
        self.separators.insert(rank, (separator, seqno));
        self.children.insert(rank + 1, child);
    }

    /// Moves the upper half into a new node. Returns it with the separator between the two.
    fn split(&mut self) -> (Self, Vec<u8>, u64) {
        let middle = self.separators.len() / 2;
        let mut right = Self { keys: Vec::new(), separators: Vec::new(), children: Vec::new() };
        right.children = self.children.split_off(middle + 1);
        for (separator, seqno) in self.separators.split_off(middle + 1) {
            let separator = KeyPlace::add(&mut right.keys, separator.of(&self.keys));
            right.separators.push((separator, seqno));
        }
        let (key, seqno) = match self.separators.pop() {
            Some((separator, seqno)) => (separator.of(&self.keys).to_vec(), seqno),
            None => (Vec::new(), 0),
        };
        let mut keys = Vec::with_capacity(self.keys.len());
        for (separator, _) in &mut self.separators {
            *separator = KeyPlace::add(&mut keys, separator.of(&self.keys));
        }
        self.keys = keys;
        (right, key, seqno)
    }
}

/// The place of a row: its leaf, and its number there.
#[derive(Clone, Copy)]
struct Place {
    leaf: u32,
    row: usize,
}

/// The tree. Nodes refer to each other by number; none is ever removed.
struct Rows {
    leaves: Vec<Leaf>,
    inners: Vec<Inner>,
    /// The levels of inner nodes; 0 while there is one leaf.
    height: usize,
    /// The highest inner node; the leaf 0 while `height` is 0.
    root: u32,
    last: u32,
}

impl Rows {
    fn new() -> Self {
        Self {
            leaves: vec![Leaf::new(NONE, NONE)],
            inners: Vec::new(),
            height: 0,
            root: 0,
            last: 0,
        }
    }

    fn leaf(&self, number: u32) -> Option<&Leaf> {
        self.leaves.get(number as usize)
    }

    fn row(&self, place: Place) -> Option<&Row> {
        self.leaf(place.leaf)?.rows.get(place.row)
    }

    fn key(&self, place: Place) -> Option<&[u8]> {
        self.leaf(place.leaf)?.at(place.row).map(|(key, _)| key)
    }

    /// Returns the leaf to which a row belongs.
    fn leaf_of(&self, key: &[u8], seqno: u64) -> u32 {
        let mut node = self.root;
        for _ in 0..self.height {
            let Some(inner) = self.inners.get(node as usize) else { return node };
            node = inner.children.get(inner.rank(key, seqno)).copied().unwrap_or(NONE);
        }
        node
    }

    /// Returns the first row that does not come before `(key, seqno)`.
    fn search(&self, key: &[u8], seqno: u64) -> Option<Place> {
        let leaf = self.leaf_of(key, seqno);
        let row = self.leaf(leaf)?.rank(key, seqno);
        self.existing(Place { leaf, row })
    }

    /// Returns the place, or the first of the next leaf if it is behind the last row of its own.
    fn existing(&self, place: Place) -> Option<Place> {
        let leaf = self.leaf(place.leaf)?;
        if place.row < leaf.rows.len() {
            return Some(place);
        }
        let next = Place { leaf: leaf.next, row: 0 };
        self.row(next).map(|_| next)
    }

    fn next(&self, place: Place) -> Option<Place> {
        self.existing(Place { row: place.row + 1, ..place })
    }

    /// Returns the place before another one; the last place of all before `None`.
    fn before(&self, place: Option<Place>) -> Option<Place> {
        let Some(place) = place else { return self.last() };
        if let Some(row) = place.row.checked_sub(1) {
            return Some(Place { row, ..place });
        }
        let leaf = self.leaf(place.leaf)?.before;
        let row = self.leaf(leaf)?.rows.len().checked_sub(1)?;
        Some(Place { leaf, row })
    }

    fn last(&self) -> Option<Place> {
        let row = self.leaf(self.last)?.rows.len().checked_sub(1)?;
        Some(Place { leaf: self.last, row })
    }

    /// Inserts a row. A row of the same key and batch is replaced.
    fn insert(&mut self, key: &[u8], seqno: u64, value: Option<Bytes>) {
        let rises = self.leaf(self.last).is_some_and(|leaf| {
            let last = leaf.rows.len().checked_sub(1).and_then(|last| leaf.at(last));
            last.is_some_and(|last| order(key, seqno, last).is_gt())
        });
        let number = if rises { self.last } else { self.leaf_of(key, seqno) };
        let Some(leaf) = self.leaves.get_mut(number as usize) else { return };
        let rank = if rises { leaf.rows.len() } else { leaf.rank(key, seqno) };
        if leaf.at(rank) == Some((key, seqno)) {
            if let Some(row) = leaf.rows.get_mut(rank) {
                row.value = value;
            }
            return;
        }
        if leaf.rows.len() < WIDTH {
            let place = KeyPlace::add(&mut leaf.keys, key);
            leaf.rows.insert(rank, Row { seqno, value, key: place });
            return;
        }
        self.split_leaf(number, if rises { WIDTH } else { WIDTH / 2 }, (key, seqno));
        self.insert(key, seqno, value);
    }

    /// Splits a full leaf before row `from`. With `from` at its end, an empty leaf follows that
    /// begins with `next`.
    fn split_leaf(&mut self, number: u32, from: usize, next: (&[u8], u64)) {
        let own = self.leaves.len() as u32;
        let Some(leaf) = self.leaves.get_mut(number as usize) else { return };
        let right = leaf.split(from, number);
        let after = std::mem::replace(&mut leaf.next, own);
        let (key, seqno) = right.at(0).unwrap_or(next);
        let (key, seqno) = (SmallVec::<[u8; 64]>::from_slice(key), seqno);
        match self.leaves.get_mut(after as usize) {
            Some(leaf) => leaf.before = own,
            None => self.last = own,
        }
        self.leaves.push(right);
        self.add_child(&key, seqno, number, own);
    }

    /// Makes leaf `right` the neighbour of leaf `left` in the inner nodes.
    fn add_child(&mut self, key: &[u8], seqno: u64, left: u32, right: u32) {
        let mut path: SmallVec<[(u32, usize); 8]> = SmallVec::new();
        let mut node = self.root;
        for _ in 0..self.height {
            let Some(inner) = self.inners.get(node as usize) else { return };
            let rank = inner.rank(key, seqno);
            path.push((node, rank));
            node = inner.children.get(rank).copied().unwrap_or(NONE);
        }
        let (mut key, mut seqno) = (key.to_vec(), seqno);
        let (mut left, mut right) = (left, right);
        while let Some((number, rank)) = path.pop() {
            let Some(inner) = self.inners.get_mut(number as usize) else { return };
            inner.insert(rank, &key, seqno, right);
            if inner.children.len() <= WIDTH {
                return;
            }
            let (upper, between, at) = inner.split();
            (key, seqno, left, right) = (between, at, number, self.inners.len() as u32);
            self.inners.push(upper);
        }
        let mut root = Inner { keys: Vec::new(), separators: Vec::new(), children: vec![left] };
        root.insert(0, &key, seqno, right);
        self.root = self.inners.len() as u32;
        self.inners.push(root);
        self.height += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_storage::Space;
    use quire_storage::rng::Rng;
    use std::cmp::Reverse;
    use std::collections::BTreeMap;

    type Model = BTreeMap<(Vec<u8>, Reverse<u64>), Option<Bytes>>;

    fn key(rng: &mut Rng, range: u64) -> Vec<u8> {
        let number = rng.below(range);
        let mut key = format!("{number:05}").into_bytes();
        key.extend(std::iter::repeat_n(b'x', (number % 7) as usize));
        key
    }

    fn filled(seed: u64, batches: u64, range: u64, rising: bool) -> (Memtable, Model) {
        let (mut rng, table, mut model) = (Rng::new(seed), Memtable::new(0), Model::new());
        let mut record = 0_u64;
        for seqno in 1..=batches {
            let ops: Vec<Op> = (0..=rng.below(150))
                .map(|_| {
                    record += 1;
                    let rises = rising && rng.below(10) > 0;
                    let key =
                        if rises { format!("r{record:09}").into() } else { key(&mut rng, range) };
                    let value = (rng.below(5) > 0).then(|| Bytes::from(record.to_string()));
                    model.insert((key.clone(), Reverse(seqno)), value.clone());
                    Op { space: Space::Doc, key: key.into(), value }
                })
                .collect();
            table.write(ops.into_iter(), seqno, seqno + 10);
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
                    assert_eq!(table.get(&key, seqno), wanted.map(|row| row.value.clone()));
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

    #[test]
    fn rising_keys_leave_full_leaves() {
        let table = Memtable::new(0);
        let op = |n: u32| Op {
            space: Space::Doc,
            key: Bytes::copy_from_slice(&n.to_be_bytes()),
            value: Some(Bytes::new()),
        };
        table.write((0..64_000).map(op), 1, 0);
        assert_eq!(table.rows.read().leaves.len(), 1_000);
        let mut rows = Vec::new();
        assert!(!table.read(&[], 1, usize::MAX, &mut rows));
        assert_eq!(rows.len(), 64_000);
    }

    #[test]
    fn it_knows_its_first_log_file() {
        let table = Memtable::new(3);
        assert!(table.is_empty() && table.first_log() == u64::MAX);
        let op = Op { space: Space::Doc, key: Bytes::from_static(b"k"), value: None };
        table.write([op.clone()].into_iter(), 1, 7);
        table.write([op].into_iter(), 2, 8);
        assert_eq!((table.number(), table.first_log()), (3, 7));
        assert_eq!(table.get(b"k", 2), Some(None));
    }
}
