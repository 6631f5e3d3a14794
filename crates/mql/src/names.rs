//! A table of names with numbers. A few names are searched linearly, many in a hash table. It is
//! used for every field of every document.

use std::collections::HashMap;

/// Up to this number of names a linear search is used; beyond it a hash table.
const LINEAR_NAMES_MAX: usize = 12;

/// Distinct names, numbered from 0 in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub(crate) struct NumberedNames {
    list: Vec<Box<[u8]>>,
    /// A digest of each name, in one vector. Different names rarely have the same digest.
    digests: Vec<u32>,
    /// The numbers of all names, once there are many.
    table: HashMap<Box<[u8]>, usize, foldhash::fast::RandomState>,
}

impl NumberedNames {
    /// Returns the number of names.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the names in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|name| std::str::from_utf8(name).unwrap_or_default())
    }

    /// Returns the name, if there is exactly one.
    #[inline]
    pub(crate) fn only(&self) -> Option<&[u8]> {
        match self.list.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Returns the number of a name.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        if self.list.len() > LINEAR_NAMES_MAX {
            return self.table.get(name).copied();
        }
        let digest = digest(name);
        let mut places = self.digests.iter().zip(&self.list);
        places.position(|(known, other)| *known == digest && **other == *name)
    }

    /// Returns the number of a name, which is a new one if it has none.
    pub(crate) fn number(&mut self, name: &str) -> usize {
        self.find(name.as_bytes()).unwrap_or_else(|| self.push(name))
    }

    fn push(&mut self, name: &str) -> usize {
        let at = self.list.len();
        self.list.push(name.as_bytes().into());
        self.digests.push(digest(name.as_bytes()));
        if self.list.len() > LINEAR_NAMES_MAX {
            let missing = if self.table.is_empty() { 0 } else { at };
            let added = self.list.iter().enumerate().skip(missing);
            self.table.extend(added.map(|(at, name)| (name.clone(), at)));
        }
        at
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
