//! A summary of index entries: their number and the sum of their hashes, independent of their
//! order. If two sums of 128 bits are equal, the entries are equal.

use bytes::Bytes;
use twox_hash::XxHash3_128;

use crate::RecordId;
use crate::entry::{EntryKeys, split_entry};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tally {
    entries: u64,
    hashes: u128,
    /// Malformed rows. No document has such an entry.
    malformed: u64,
}

impl Tally {
    /// Adds the entries of a document.
    pub fn add_document(&mut self, keys: &EntryKeys, id: RecordId) {
        for at in 0..keys.len() {
            self.add(keys.values(at), id, keys.type_bits(at));
        }
    }

    /// Adds an entry as it is stored.
    pub fn add_entry(&mut self, unique: bool, key: &Bytes, value: &Bytes) {
        match split_entry(unique, key, value) {
            Ok((values, id, type_bits)) => self.add(&values, id, &type_bits),
            Err(_) => self.malformed += 1,
        }
    }

    /// Returns the number of entries.
    pub fn count(&self) -> u64 {
        self.entries + self.malformed
    }

    fn add(&mut self, values: &[u8], id: RecordId, type_bits: &[u8]) {
        let mut entry = Vec::with_capacity(16 + values.len() + type_bits.len());
        entry.extend_from_slice(&id.0.to_le_bytes());
        entry.extend_from_slice(&(values.len() as u64).to_le_bytes());
        entry.extend_from_slice(values);
        entry.extend_from_slice(type_bits);
        self.entries += 1;
        self.hashes = self.hashes.wrapping_add(XxHash3_128::oneshot(&entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_an_entry_counts_and_their_order_does_not() {
        let tally = |entries: &[(&[u8], u64, &[u8])]| {
            let mut tally = Tally::default();
            entries.iter().for_each(|(values, id, bits)| tally.add(values, RecordId(*id), bits));
            tally
        };
        let both: [(&[u8], u64, &[u8]); 2] = [(b"a", 1, b""), (b"b", 2, b"x")];
        let [one, two] = both;
        assert_eq!(tally(&both), tally(&[two, one]));
        assert_ne!(tally(&both), tally(&[one]));
        assert_ne!(tally(&both), tally(&[one, (b"c", 2, b"x")]));
        assert_ne!(tally(&both), tally(&[one, (b"b", 3, b"x")]));
        assert_ne!(tally(&both), tally(&[one, (b"b", 2, b"")]));
        assert_ne!(tally(&[one, two, two]), tally(&[one, one, two]));
    }

    #[test]
    fn no_two_short_entries_hash_alike() {
        let mut seen = std::collections::HashSet::new();
        for value in 0..256_u16 {
            for id in 0..256 {
                let mut tally = Tally::default();
                tally.add(&value.to_be_bytes(), RecordId(id), b"");
                assert!(seen.insert(tally.hashes), "{value} {id}");
            }
        }
    }
}
