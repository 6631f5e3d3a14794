//! A B-tree of rows in memory: keys with the number of the batch that wrote them, and values. All
//! nodes are in two lists and refer to each other by number.

use std::cmp::Ordering;

use bytes::Bytes;
use smallvec::SmallVec;

/// The most rows of a leaf, and the most children of an inner node; at most 255.
pub(crate) const WIDTH: usize = 64;
/// The number that stands for "no node".
const NONE: u32 = u32::MAX;

/// A row in a leaf.
pub(crate) struct Row<'r> {
    pub key: &'r [u8],
    pub seqno: u64,
    pub value: &'r Option<Bytes>,
}

/// The order of rows: by key, and among equal keys the newest first.
fn order(key: &[u8], seqno: u64, than: (&[u8], u64)) -> Ordering {
    key.cmp(than.0).then(than.1.cmp(&seqno))
}

/// The keys of a node in their order, each with the number of a batch.
///
/// The keys of a node mostly begin alike (`shared`). Eight bytes of each key from there on lie side
/// by side (`heads`), so that a search reads one key in full at most, and not one for each step: a
/// key that it reads is mostly not in the processor's cache.
///
/// Only `heads` and `arrivals` are moved by an insertion: 9 bytes for each key behind the new one.
///
/// All lists but the keys themselves lie in the node. In separate memory each would cost an
/// insertion one more wait for memory.
#[derive(Default)]
struct Keys {
    /// Bytes with which all keys begin.
    shared: SmallVec<[u8; 24]>,
    heads: SmallVec<[u64; WIDTH]>,
    /// The number in `places` of each key.
    arrivals: SmallVec<[u8; WIDTH]>,
    /// The keys in the order of their arrival, one after the other, and where each lies.
    bytes: Vec<u8>,
    places: SmallVec<[KeyPlace; WIDTH]>,
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

/// Returns the number of bytes with which two keys begin alike.
pub(crate) fn alike(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

impl Keys {
    fn len(&self) -> usize {
        self.places.len()
    }

    fn at(&self, number: usize) -> Option<(&[u8], u64)> {
        let place = self.places.get(self.arrival(number)?)?;
        let at = place.at as usize;
        Some((self.bytes.get(at..at + place.length as usize)?, place.seqno))
    }

    /// Returns as which of the node's keys the key with this number arrived.
    fn arrival(&self, number: usize) -> Option<usize> {
        self.arrivals.get(number).copied().map(usize::from)
    }

    fn key(&self, number: usize) -> Option<&[u8]> {
        self.at(number).map(|(key, _)| key)
    }

    /// Returns the number of keys that come before `(key, seqno)`, and with `or_equal` also those
    /// that are equal to it.
    fn rank(&self, key: &[u8], seqno: u64, or_equal: bool) -> usize {
        let Some(rest) = key.strip_prefix(&self.shared[..]) else {
            return if *key < self.shared[..] { 0 } else { self.len() };
        };
        let head = head(rest);
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

    /// Returns true if the key with this number is this one.
    fn is_at(&self, number: usize, key: &[u8], seqno: u64) -> bool {
        let rest = key.strip_prefix(&self.shared[..]);
        let is_head = rest.is_some_and(|rest| self.heads.get(number) == Some(&head(rest)));
        is_head && self.at(number) == Some((key, seqno))
    }

    fn insert(&mut self, rank: usize, key: &[u8], seqno: u64) {
        if self.places.is_empty() {
            self.shared = SmallVec::from_slice(key);
            self.bytes.reserve(WIDTH * key.len());
        }
        let (at, length) = (self.bytes.len() as u32, key.len() as u32);
        self.bytes.extend_from_slice(key);
        self.arrivals.insert(rank, self.places.len() as u8);
        self.places.push(KeyPlace { seqno, at, length });
        match key.strip_prefix(&self.shared[..]) {
            Some(rest) => self.heads.insert(rank, head(rest)),
            None => self.share(alike(&self.shared, key)),
        }
    }

    /// Shortens what all keys begin with to `shared` bytes.
    fn share(&mut self, shared: usize) {
        self.shared.truncate(shared);
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
        let ends = range
            .clone()
            .next()
            .and_then(|first| self.at(first))
            .zip(range.end.checked_sub(1).and_then(|last| self.at(last)));
        let Some(((first, _), (last, _))) = ends else { return part };
        // What the first and the last begin with, all between them begin with.
        part.shared = first.iter().take(alike(first, last)).copied().collect();
        part.bytes.reserve(WIDTH * first.len());
        for number in range {
            let Some((key, seqno)) = self.at(number) else { break };
            let (at, length) = (part.bytes.len() as u32, key.len() as u32);
            part.bytes.extend_from_slice(key);
            part.arrivals.push(part.places.len() as u8);
            part.places.push(KeyPlace { seqno, at, length });
            part.heads.push(head(key.get(part.shared.len()..).unwrap_or_default()));
        }
        part
    }
}

/// Rows in their order: a key and the number of its batch, and a value, or `None` for a deleted
/// key.
struct Leaf {
    keys: Keys,
    before: u32,
    next: u32,
    /// The values in the order of the keys' arrival.
    values: SmallVec<[Option<Bytes>; WIDTH]>,
}

impl Leaf {
    fn new(before: u32, next: u32) -> Self {
        Self { keys: Keys::default(), before, next, values: SmallVec::new() }
    }

    /// Moves the rows from number `from` on into a new leaf.
    fn split(&mut self, from: usize, own: u32) -> Self {
        let mut right = Self::new(own, self.next);
        if from < self.values.len() {
            let keys = std::mem::take(&mut self.keys);
            let mut values = std::mem::take(&mut self.values);
            let mut value = |number| values.get_mut(keys.arrival(number)?).map(Option::take);
            self.values.extend((0..from).map_while(&mut value));
            right.values.extend((from..keys.len()).map_while(value));
            self.keys = keys.part(0..from);
            right.keys = keys.part(from..keys.len());
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
pub(crate) struct RowPlace {
    leaf: u32,
    row: usize,
}

/// The tree. Nodes refer to each other by number; none is ever removed.
pub(crate) struct RowTree {
    #[expect(clippy::vec_box, reason = "a list of whole leaves would copy all of them to grow")]
    leaves: Vec<Box<Leaf>>,
    inners: Vec<Inner>,
    /// The levels of inner nodes; 0 while there is one leaf.
    height: usize,
    /// The highest inner node; the leaf 0 while `height` is 0.
    root: u32,
    last: u32,
    /// The leaf of the last insertion. The next key often belongs there too: several clients each
    /// insert keys that rise.
    latest: u32,
    /// True if the last insertion was into the same leaf as the one before it.
    is_near: bool,
}

impl RowTree {
    pub fn new() -> Self {
        Self {
            leaves: vec![Box::new(Leaf::new(NONE, NONE))],
            inners: Vec::new(),
            height: 0,
            root: 0,
            last: 0,
            latest: 0,
            is_near: false,
        }
    }

    /// Returns all keys, each as often as it has rows.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.leaves
            .iter()
            .flat_map(|leaf| (0..leaf.values.len()).filter_map(|row| leaf.keys.key(row)))
    }

    /// Returns the number of leaves.
    pub fn leaves(&self) -> usize {
        self.leaves.len()
    }

    /// Returns the size of the values of a leaf, in bytes.
    pub fn value_bytes(&self, leaf: usize) -> usize {
        let values = self.leaves.get(leaf).map_or(&[][..], |leaf| &leaf.values);
        values.iter().flatten().map(Bytes::len).sum()
    }

    /// Returns the rows of a leaf. The numbers of leaves are not in the order of their keys.
    pub fn rows_of(&self, leaf: usize) -> impl Iterator<Item = Row<'_>> {
        let leaf = u32::try_from(leaf).unwrap_or(NONE);
        (0..WIDTH).map_while(move |row| self.row(RowPlace { leaf, row }))
    }

    fn leaf(&self, number: u32) -> Option<&Leaf> {
        self.leaves.get(number as usize).map(Box::as_ref)
    }

    pub fn row(&self, place: RowPlace) -> Option<Row<'_>> {
        let leaf = self.leaf(place.leaf)?;
        let (key, seqno) = leaf.keys.at(place.row)?;
        Some(Row { key, seqno, value: leaf.values.get(leaf.keys.arrival(place.row)?)? })
    }

    pub fn key(&self, place: RowPlace) -> Option<&[u8]> {
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

    /// Returns the leaf to which a row belongs. It is found without a search if it is that of the
    /// last two insertions: a leaf begins with the key that separates it from the leaf before it.
    fn leaf_near(&self, key: &[u8], seqno: u64) -> u32 {
        let first = |leaf: &Leaf| leaf.keys.at(0).map(|first| order(key, seqno, first));
        let is_near = self.is_near
            && self.leaf(self.latest).is_some_and(|leaf| {
                let is_below_next = match self.leaf(leaf.next) {
                    Some(next) => first(next).is_some_and(Ordering::is_lt),
                    None => true,
                };
                is_below_next && first(leaf).is_some_and(Ordering::is_ge)
            });
        if is_near { self.latest } else { self.leaf_of(key, seqno) }
    }

    /// Returns the first row that does not come before `(key, seqno)`.
    pub fn search(&self, key: &[u8], seqno: u64) -> Option<RowPlace> {
        let leaf = self.leaf_of(key, seqno);
        let row = self.leaf(leaf)?.keys.rank(key, seqno, false);
        self.existing(RowPlace { leaf, row })
    }

    /// Returns the place, or the first of the next leaf if it is behind the last row of its own.
    fn existing(&self, place: RowPlace) -> Option<RowPlace> {
        let leaf = self.leaf(place.leaf)?;
        if place.row < leaf.values.len() {
            return Some(place);
        }
        let next = RowPlace { leaf: leaf.next, row: 0 };
        self.key(next).map(|_| next)
    }

    pub fn next(&self, place: RowPlace) -> Option<RowPlace> {
        self.existing(RowPlace { row: place.row + 1, ..place })
    }

    /// Returns the place of the newest row of the key after `key`, which the row at `place` has.
    pub fn next_key(&self, place: RowPlace, key: &[u8]) -> Option<RowPlace> {
        let next = self.next(place);
        if next.and_then(|next| self.key(next)) == Some(key) { self.search(key, 0) } else { next }
    }

    /// Returns the place before another one; the last place of all before `None`.
    pub fn before(&self, place: Option<RowPlace>) -> Option<RowPlace> {
        let Some(place) = place else { return self.last() };
        if let Some(row) = place.row.checked_sub(1) {
            return Some(RowPlace { row, ..place });
        }
        let leaf = self.leaf(place.leaf)?.before;
        let row = self.leaf(leaf)?.values.len().checked_sub(1)?;
        Some(RowPlace { leaf, row })
    }

    pub fn last(&self) -> Option<RowPlace> {
        let row = self.leaf(self.last)?.values.len().checked_sub(1)?;
        Some(RowPlace { leaf: self.last, row })
    }

    /// Inserts a row. A row of the same key and batch is replaced.
    pub fn insert(&mut self, key: &[u8], seqno: u64, value: Option<Bytes>) {
        let rises = self.leaf(self.last).is_some_and(|leaf| {
            let last = leaf.values.len().checked_sub(1).and_then(|last| leaf.keys.at(last));
            last.is_some_and(|last| order(key, seqno, last).is_gt())
        });
        let number = if rises { self.last } else { self.leaf_near(key, seqno) };
        self.is_near = number == self.latest;
        self.latest = number;
        let Some(leaf) = self.leaves.get_mut(number as usize) else { return };
        let rank = if rises { leaf.values.len() } else { leaf.keys.rank(key, seqno, false) };
        if leaf.keys.is_at(rank, key, seqno) {
            let arrival = leaf.keys.arrival(rank);
            if let Some(row) = arrival.and_then(|arrival| leaf.values.get_mut(arrival)) {
                *row = value;
            }
            return;
        }
        if leaf.values.len() < WIDTH {
            leaf.keys.insert(rank, key, seqno);
            leaf.values.push(value);
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
        self.leaves.push(Box::new(right));
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
