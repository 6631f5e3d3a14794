//! Foreign documents in memory, with an index by the bytes of their keys.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::row::Row;

/// The end of a chain.
const NONE: u32 = u32::MAX;

/// The bytes that a key takes besides its own: the entry and its slot in the hash table.
const ENTRY_BYTES: usize = std::mem::size_of::<Entry>() + 8;
/// The bytes that a row takes for each of its keys.
const LINK_BYTES: usize = std::mem::size_of::<Link>();

/// A key with the chain of its rows.
struct Entry {
    hash: u64,
    /// The offset of the key's bytes.
    start: usize,
    length: u32,
    /// The first and the last link of the chain.
    first: u32,
    last: u32,
}

/// A row in the chain of a key.
struct Link {
    place: u32,
    next: u32,
}

/// Rows with their keys. A row may have several keys, and a key may have no row.
#[derive(Default)]
pub(super) struct KeyedRows {
    rows: Vec<Row>,
    /// The bytes of all keys, concatenated.
    key_bytes: Vec<u8>,
    entries: Vec<Entry>,
    links: Vec<Link>,
    /// The numbers of the entries, by the hashes of their keys.
    index: HashTable<u32>,
    state: RandomState,
    bytes: usize,
}

impl KeyedRows {
    /// Returns an estimate of the bytes that it holds in memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns all rows in the order in which they were added.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the number of keys, which is the number of the next new key.
    pub fn keys(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if one more row, key and link can be numbered.
    pub fn has_room(&self) -> bool {
        [self.rows.len(), self.entries.len(), self.links.len()]
            .iter()
            .all(|len| *len < NONE as usize)
    }

    /// Adds a row. Returns its position.
    pub fn push(&mut self, row: Row) -> u32 {
        self.bytes += row.size();
        self.rows.push(row);
        self.rows.len() as u32 - 1
    }

    /// Returns the number of a key; `None` if it is not present.
    pub fn find(&self, key: &[u8]) -> Option<u32> {
        self.find_hashed(self.state.hash_one(key), key)
    }

    fn find_hashed(&self, hash: u64, key: &[u8]) -> Option<u32> {
        let same = |at: &u32| {
            self.entries
                .get(*at as usize)
                .is_some_and(|entry| entry.hash == hash && self.key(entry) == key)
        };
        self.index.find(hash, same).copied()
    }

    fn key(&self, entry: &Entry) -> &[u8] {
        let end = entry.start + entry.length as usize;
        self.key_bytes.get(entry.start..end).unwrap_or_default()
    }

    /// Returns the number of a key; adds the key if it is new.
    pub fn find_or_add(&mut self, key: &[u8]) -> u32 {
        let hash = self.state.hash_one(key);
        if let Some(found) = self.find_hashed(hash, key) {
            return found;
        }
        let (at, start, length) =
            (self.entries.len() as u32, self.key_bytes.len(), key.len() as u32);
        self.key_bytes.extend_from_slice(key);
        self.entries.push(Entry { hash, start, length, first: NONE, last: NONE });
        self.bytes += ENTRY_BYTES + key.len();
        let entries = &self.entries;
        let hash_at = |at: &u32| entries.get(*at as usize).map_or(0, |entry| entry.hash);
        self.index.insert_unique(hash, at, hash_at);
        at
    }

    /// Adds a key. Returns false if it is present already.
    pub fn add_key(&mut self, key: &[u8]) -> bool {
        let known = self.keys();
        self.find_or_add(key);
        self.keys() > known
    }

    /// Keeps only these keys and their rows. Numbers the keys in the order in which they are given.
    pub fn keep(&mut self, keys: &[u32]) {
        let mut kept = KeyedRows::default();
        let mut moved: HashMap<u32, u32> = HashMap::new();
        for key in keys {
            let Some(entry) = self.entries.get(*key as usize) else { continue };
            let number = kept.find_or_add(self.key(entry));
            for place in self.places(*key) {
                let Some(row) = self.rows.get(place as usize) else { continue };
                let place = *moved.entry(place).or_insert_with(|| kept.push(row.clone()));
                kept.link(number, place);
            }
        }
        *self = kept;
    }

    /// Links the row at a position to a key, unless it is the last row of that key already.
    pub fn link(&mut self, key: u32, place: u32) {
        let Some(entry) = self.entries.get_mut(key as usize) else { return };
        let new = self.links.len() as u32;
        match self.links.get_mut(entry.last as usize) {
            Some(last) if last.place == place => return,
            Some(last) => last.next = new,
            None => entry.first = new,
        }
        entry.last = new;
        self.links.push(Link { place, next: NONE });
        self.bytes += LINK_BYTES;
    }

    /// Returns the positions of the rows of a key, in the order in which they were added.
    pub fn places(&self, key: u32) -> impl Iterator<Item = u32> {
        let first = self.entries.get(key as usize).map_or(NONE, |entry| entry.first);
        let mut next = self.links.get(first as usize);
        std::iter::from_fn(move || {
            let link = next?;
            next = self.links.get(link.next as usize);
            Some(link.place)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_collections::RecordId;

    #[test]
    fn a_key_has_its_rows_in_input_order() {
        let mut table = KeyedRows::default();
        for number in 0..1000_u32 {
            let place = table.push(Row { record: RecordId(number.into()), doc: None, extra: None });
            for key in [number % 7, number % 11] {
                let key = table.find_or_add(&key.to_be_bytes());
                table.link(key, place);
            }
        }
        for key in 0..11_u32 {
            let entry = table.find(&key.to_be_bytes()).unwrap();
            let found: Vec<u32> = table.places(entry).collect();
            let wanted =
                (0..1000).filter(|number| number % 11 == key || key < 7 && number % 7 == key);
            assert_eq!(found, wanted.collect::<Vec<u32>>());
        }
        assert_eq!(table.find(&11_u32.to_be_bytes()), None);
        let kept = [5_u32, 8].map(|key| table.find(&key.to_be_bytes()).unwrap());
        let places = kept.map(|key| table.places(key).collect::<Vec<_>>());
        let rows = |table: &KeyedRows, places: &[u32]| -> Vec<u64> {
            places.iter().map(|place| table.rows()[*place as usize].record.0).collect()
        };
        let wanted = places.map(|places| rows(&table, &places));
        table.keep(&kept);
        for (number, key) in [5_u32, 8].iter().enumerate() {
            assert_eq!(table.find(&key.to_be_bytes()), Some(number as u32));
            let places: Vec<u32> = table.places(number as u32).collect();
            assert_eq!(rows(&table, &places), wanted[number]);
        }
        assert_eq!(table.keys(), 2);
        let both = wanted.concat().into_iter().collect::<std::collections::HashSet<_>>();
        assert_eq!(table.rows().len(), both.len());
    }

    #[test]
    fn a_key_is_added_once() {
        let mut table = KeyedRows::default();
        assert!(table.add_key(b"a") && !table.add_key(b"a") && table.add_key(b"b"));
        assert_eq!(table.keys(), 2);
    }
}
