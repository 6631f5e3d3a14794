//! A table of names with numbers. A few names are searched linearly, many in a hash table. It is
//! used for every field of every document.

use hashbrown::HashTable;
use smallvec::SmallVec;
use std::hash::BuildHasher;

/// Up to this number of names a linear search is used; beyond it a hash table.
const LINEAR_NAMES_MAX: usize = 12;

/// Distinct names, numbered from 0 in the order in which they were added. A request may have
/// hundreds of thousands of names, so a name has no allocation of its own. Most have one or two,
/// which fit in the vectors themselves; these are as large as a `Vec`.
#[derive(Clone, Debug, Default)]
pub(crate) struct NumberedNames {
    /// The bytes of all names. A request is not long enough for offsets of more than 32 bits.
    bytes: SmallVec<[u8; 16]>,
    /// Where each name begins and ends in `bytes`.
    spans: SmallVec<[(u32, u32); 2]>,
    /// A digest of each name, in one vector. Different names rarely have the same digest.
    digests: SmallVec<[u32; 4]>,
    /// The numbers of all names by the names' hashes, once there are many.
    table: HashTable<u32>,
    state: foldhash::fast::RandomState,
}

impl NumberedNames {
    /// Returns the number of names.
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns the names in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.spans.iter().map(|span| std::str::from_utf8(self.name(*span)).unwrap_or_default())
    }

    /// Returns the name, if there is exactly one.
    #[inline]
    pub(crate) fn only(&self) -> Option<&[u8]> {
        match self.spans.as_slice() {
            [only] => Some(self.name(*only)),
            _ => None,
        }
    }

    /// Returns the number of a name.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        if self.spans.len() > LINEAR_NAMES_MAX {
            let known = |at: &u32| self.name(self.spans[*at as usize]) == name;
            return self.table.find(self.state.hash_one(name), known).map(|at| *at as usize);
        }
        let digest = digest(name);
        let mut places = self.digests.iter().zip(&self.spans);
        places.position(|(known, span)| *known == digest && self.name(*span) == name)
    }

    /// Returns the number of a name, which is a new one if it has none.
    pub(crate) fn number(&mut self, name: &str) -> usize {
        self.find(name.as_bytes()).unwrap_or_else(|| self.push(name.as_bytes()))
    }

    fn push(&mut self, name: &[u8]) -> usize {
        let (at, begin) = (self.spans.len(), self.bytes.len() as u32);
        self.bytes.extend_from_slice(name);
        self.spans.push((begin, self.bytes.len() as u32));
        self.digests.push(digest(name));
        if at >= LINEAR_NAMES_MAX {
            let Self { bytes, spans, table, state, .. } = self;
            let hash = |at: &u32| {
                let (begin, end) = spans[*at as usize];
                state.hash_one(&bytes[begin as usize..end as usize])
            };
            // The first table also takes the names that were searched linearly.
            let first = if at == LINEAR_NAMES_MAX { 0 } else { at };
            for at in first as u32..=at as u32 {
                table.insert_unique(hash(&at), at, hash);
            }
        }
        at
    }

    #[inline]
    fn name(&self, (begin, end): (u32, u32)) -> &[u8] {
        &self.bytes[begin as usize..end as usize]
    }
}

/// Returns the length, the first and the last byte of a name.
#[inline]
fn digest(name: &[u8]) -> u32 {
    match (name.first(), name.last()) {
        (Some(first), Some(last)) => {
            (name.len() as u32) << 16 | u32::from(*first) << 8 | u32::from(*last)
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_numbers_however_many_there_are() {
        let mut names = NumberedNames::default();
        for count in 0..100 {
            assert_eq!(names.number(&format!("n{count}")), count);
            for known in 0..=count {
                assert_eq!(names.find(format!("n{known}").as_bytes()), Some(known));
                assert_eq!(names.number(&format!("n{known}")), known);
            }
            assert_eq!(names.find(format!("n{}", count + 1).as_bytes()), None);
        }
        assert_eq!(names.len(), 100);
        assert_eq!(names.iter().nth(42), Some("n42"));
    }

    #[test]
    fn names_with_the_same_digest_are_distinguished() {
        let mut names = NumberedNames::default();
        assert_eq!((names.number("abc"), names.number("axc"), names.number("")), (0, 1, 2));
        assert_eq!(names.find(b"axc"), Some(1));
        assert_eq!(names.find(b"ayc"), None);
        assert_eq!(names.find(b""), Some(2));
    }
}
