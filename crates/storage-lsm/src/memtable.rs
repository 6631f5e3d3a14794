//! The rows of a space that are in no table yet: a B-tree that one writer fills and any number of
//! snapshots read.
//!
//! Every version of a key stays until the memtable is flushed, so that each snapshot sees its own.
//! Keys lie side by side in the nodes: a search touches a few cache lines, where a skip list touches
//! two for each comparison. Keys that rise, as those of new documents do, fill the last
//! leaf without a search. Readers copy a few rows at a time under the lock of the tree, so that the
//! writer waits for microseconds at most; it lets waiting readers pass every few rows.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};

use bytes::Bytes;
use parking_lot::{RwLock, RwLockWriteGuard};
use quire_storage::Direction;
use smallvec::SmallVec;

/// The most rows of a leaf, and the most children of an inner node.
const WIDTH: usize = 64;
/// The bytes that a row occupies beside its key and value.
const ROW_BYTES: u64 = 80;
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

    /// Adds the changes of batch `seqno`, whose record is in the log file `log`: each key with its
    /// value, or without one if it is deleted. Only one thread may
    /// write at a time, and no snapshot may see the batch before the call returns.
    pub fn write<'k>(
        &self,
        changes: impl Iterator<Item = (&'k [u8], Option<Bytes>)>,
        seqno: u64,
        log: u64,
    ) {
        self.first_log.fetch_min(log, Atomic::AcqRel);
        let mut rows = self.rows.write();
        let mut bytes = 0;
        for (number, (key, value)) in changes.enumerate() {
            if number % ROWS_AT_ONCE == ROWS_AT_ONCE - 1 {
                RwLockWriteGuard::bump(&mut rows);
            }
            bytes += ROW_BYTES + (key.len() + value.as_ref().map_or(0, Bytes::len)) as u64;
            rows.insert(key, seqno, value);
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
        let rows = self.rows.read();
        let mut place = rows.search(start, u64::MAX);
        let mut keys = SharedKeys::new(count);
        while let Some(at) = place {
            if keys.len() == count {
                keys.share(found);
                return true;
            }
            let Some(row) = rows.row(at) else { break };
            if row.seqno > seqno {
                place = rows.search(row.key, seqno);
                continue;
            }
            keys.push(row.key);
            found.push(row.copied());
            place = rows.next(at);
            if place.and_then(|next| rows.key(next)) == Some(row.key) {
                place = rows.search(row.key, 0);
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
                found.push(row.copied());
            }
        }
        keys.share(found);
        false
    }
}

/// A row in a leaf.
struct Row<'r> {
    key: &'r [u8],
    seqno: u64,
    value: &'r Option<Bytes>,
}

impl Row<'_> {
    /// Returns a copy without its key.
    fn copied(&self) -> MemtableRow {
        MemtableRow { key: Bytes::new(), seqno: self.seqno, value: self.value.clone() }
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

/// The order of rows: by key, and among equal keys the newest first.
fn order(key: &[u8], seqno: u64, than: (&[u8], u64)) -> Ordering {
    key.cmp(than.0).then(than.1.cmp(&seqno))
}

/// The keys of a node in their order, each with the number of a batch.
///
/// The keys of a node mostly begin alike. Eight bytes of each key from there on lie side by side
/// (`heads`), so that a search reads one or two keys in full, and not one for each step.
#[derive(Default)]
struct Keys {
    /// The keys, in the order of their arrival.
    bytes: Vec<u8>,
    places: Vec<KeyPlace>,
    heads: Vec<u64>,
    /// The number of bytes with which all keys begin alike, or less.
    shared: usize,
}

/// The place of a key in the bytes of its node.
#[derive(Clone, Copy)]
struct KeyPlace {
    seqno: u64,
    at: u32,
    length: u32,
}

/// Returns the first eight bytes as a number. Its order is that of the keys, as far as it differs.
fn head(rest: &[u8]) -> u64 {
    match rest.first_chunk::<8>() {
        Some(head) => u64::from_be_bytes(*head),
        None => {
            let mut head = [0; 8];
            head.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            u64::from_be_bytes(head)
        }
    }
}

impl Keys {
    fn len(&self) -> usize {
        self.places.len()
    }

    fn at(&self, number: usize) -> Option<(&[u8], u64)> {
        let place = self.places.get(number)?;
        let at = place.at as usize;
        Some((self.bytes.get(at..at + place.length as usize)?, place.seqno))
    }

    /// Returns the number of keys that come before `(key, seqno)`, and with `or_equal` also those
    /// that are equal to it.
    fn rank(&self, key: &[u8], seqno: u64, or_equal: bool) -> usize {
        let (Some((first, _)), shared) = (self.at(0), self.shared) else { return 0 };
        if key.get(..shared) != first.get(..shared) {
            return if *key < *first { 0 } else { self.len() };
        }
        let head = head(key.get(shared..).unwrap_or_default());
        let from = self.heads.partition_point(|other| *other < head);
        let alike = self.heads.get(from..).unwrap_or_default();
        let alike = match alike.get(1) {
            Some(second) if *second == head => alike.partition_point(|other| *other == head),
            _ => usize::from(alike.first() == Some(&head)),
        };
        let (mut low, mut high) = (from, from + alike);
        while low < high {
            let middle = usize::midpoint(low, high);
            let Some((other, at)) = self.at(middle) else { break };
            match order(other, at, (key, seqno)) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal if or_equal => low = middle + 1,
                Ordering::Equal | Ordering::Greater => high = middle,
            }
        }
        low
    }

    fn insert(&mut self, rank: usize, key: &[u8], seqno: u64) {
        let alike = match self.at(0) {
            None => key.len(),
            Some((first, _)) => {
                let pairs = first.iter().zip(key).take(self.shared);
                pairs.take_while(|(one, other)| one == other).count()
            }
        };
        let (at, length) = (self.bytes.len() as u32, key.len() as u32);
        self.bytes.extend_from_slice(key);
        self.places.insert(rank, KeyPlace { seqno, at, length });
        if alike == self.shared {
            self.heads.insert(rank, head(key.get(alike..).unwrap_or_default()));
        } else {
            self.set_shared(alike);
        }
    }

    fn set_shared(&mut self, shared: usize) {
        self.shared = shared;
        let numbers = 0..self.len();
        let heads = numbers.map(|number| {
            let key = self.at(number).map_or(&[][..], |(key, _)| key);
            head(key.get(shared..).unwrap_or_default())
        });
        self.heads = heads.collect();
    }

    /// Returns a copy of the keys in a range.
    fn part(&self, range: std::ops::Range<usize>) -> Self {
        let mut part = Self::default();
        part.heads.reserve(WIDTH);
        part.places.reserve(WIDTH);
        let ends = range
            .clone()
            .next()
            .and_then(|first| self.at(first))
            .zip(range.end.checked_sub(1).and_then(|last| self.at(last)));
        let Some(((first, _), (last, _))) = ends else { return part };
        // What the first and the last begin with, all between them begin with.
        part.shared = first.iter().zip(last).take_while(|(one, other)| one == other).count();
        for number in range {
            let Some((key, seqno)) = self.at(number) else { break };
            let (at, length) = (part.bytes.len() as u32, key.len() as u32);
            part.bytes.extend_from_slice(key);
            part.places.push(KeyPlace { seqno, at, length });
            part.heads.push(head(key.get(part.shared..).unwrap_or_default()));
        }
        part
    }
}

/// Rows in their order: a key and the number of its batch, and a value, or `None` for a deleted key.
struct Leaf {
    keys: Keys,
    values: Vec<Option<Bytes>>,
    before: u32,
    next: u32,
}

impl Leaf {
    fn new(before: u32, next: u32) -> Self {
        Self { keys: Keys::default(), values: Vec::with_capacity(WIDTH), before, next }
    }

    /// Moves the rows from number `from` on into a new leaf.
    fn split(&mut self, from: usize, own: u32) -> Self {
        let mut right = Self::new(own, self.next);
        if from < self.values.len() {
            right.keys = self.keys.part(from..self.keys.len());
            right.values.extend(self.values.drain(from..));
            self.keys = self.keys.part(0..from);
        }
        right
    }
}

/// Children in the order of their rows. Child number `n + 1` begins with separator `n`.
struct Inner {
    separators: Keys,
    children: Vec<u32>,
}

impl Inner {
    /// Returns the number of the child to which a row belongs.
    fn rank(&self, key: &[u8], seqno: u64) -> usize {
        self.separators.rank(key, seqno, true)
    }

    fn insert(&mut self, rank: usize, key: &[u8], seqno: u64, child: u32) {
        self.separators.insert(rank, key, seqno);
        self.children.insert(rank + 1, child);
    }

    /// Moves the upper half into a new node. Returns it with the separator between the two.
    fn split(&mut self) -> (Self, Vec<u8>, u64) {
        let middle = self.separators.len() / 2;
        let right = Self {
            separators: self.separators.part(middle + 1..self.separators.len()),
            children: self.children.split_off(middle + 1),
        };
        let (key, seqno) = self.separators.at(middle).unwrap_or_default();
        let (key, seqno) = (key.to_vec(), seqno);
        self.separators = self.separators.part(0..middle);
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

    fn row(&self, place: Place) -> Option<Row<'_>> {
        let leaf = self.leaf(place.leaf)?;
        let (key, seqno) = leaf.keys.at(place.row)?;
        Some(Row { key, seqno, value: leaf.values.get(place.row)? })
    }

    fn key(&self, place: Place) -> Option<&[u8]> {
        self.leaf(place.leaf)?.keys.at(place.row).map(|(key, _)| key)
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
        let row = self.leaf(leaf)?.keys.rank(key, seqno, false);
        self.existing(Place { leaf, row })
    }

    /// Returns the place, or the first of the next leaf if it is behind the last row of its own.
    fn existing(&self, place: Place) -> Option<Place> {
        let leaf = self.leaf(place.leaf)?;
        if place.row < leaf.values.len() {
            return Some(place);
        }
        let next = Place { leaf: leaf.next, row: 0 };
        self.key(next).map(|_| next)
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
        let row = self.leaf(leaf)?.values.len().checked_sub(1)?;
        Some(Place { leaf, row })
    }

    fn last(&self) -> Option<Place> {
        let row = self.leaf(self.last)?.values.len().checked_sub(1)?;
        Some(Place { leaf: self.last, row })
    }

    /// Inserts a row. A row of the same key and batch is replaced.
    fn insert(&mut self, key: &[u8], seqno: u64, value: Option<Bytes>) {
        let rises = self.leaf(self.last).is_some_and(|leaf| {
            let last = leaf.values.len().checked_sub(1).and_then(|last| leaf.keys.at(last));
            last.is_some_and(|last| order(key, seqno, last).is_gt())
        });
        let number = if rises { self.last } else { self.leaf_of(key, seqno) };
        let Some(leaf) = self.leaves.get_mut(number as usize) else { return };
        let rank = if rises { leaf.values.len() } else { leaf.keys.rank(key, seqno, false) };
        if leaf.keys.at(rank) == Some((key, seqno)) {
            if let Some(row) = leaf.values.get_mut(rank) {
                *row = value;
            }
            return;
        }
        if leaf.values.len() < WIDTH {
            leaf.keys.insert(rank, key, seqno);
            leaf.values.insert(rank, value);
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
        let (key, seqno) = right.keys.at(0).unwrap_or(next);
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
        let mut root = Inner { separators: Keys::default(), children: vec![left] };
        root.insert(0, &key, seqno, right);
        self.root = self.inners.len() as u32;
        self.inners.push(root);
        self.height += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[test]
    fn rising_keys_leave_full_leaves() {
        let table = Memtable::new(0);
        let keys: Vec<[u8; 4]> = (0..64_000_u32).map(u32::to_be_bytes).collect();
        table.write(keys.iter().map(|key| (&key[..], Some(Bytes::new()))), 1, 0);
        assert_eq!(table.rows.read().leaves.len(), 1_000);
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
        assert_eq!((table.number(), table.first_log()), (3, 7));
        assert_eq!(table.get(b"k", 2), Some(None));
    }
}
