//! Facts about the entries of an index that only grow: which path components are arrays in some
//! document, and whether a key was too long to be stored whole. Writers set them before the commit
//! that makes them true, so a reader who took its snapshot first sees at least what holds in it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::RwLock;

/// The largest number of array paths that a wildcard index keeps by name. Beyond it every path
/// counts as an array ([`MultikeyPaths::ANY_PATH`]), which costs speed and keeps answers right.
pub const ARRAY_PATHS_MAX: usize = 1000;

/// The facts about one index.
#[derive(Debug, Default)]
pub struct Multikey {
    /// What readers rely on.
    known: Known,
    /// What a commit that has ended stored; what is only in `known` may still fail.
    stored: Known,
}

/// Facts that are shared by threads.
#[derive(Debug, Default)]
struct Known {
    /// For each field the components that are arrays.
    paths: Box<[AtomicU64]>,
    long_keys: AtomicBool,
    /// At most [`ARRAY_PATHS_MAX`] names.
    arrays: RwLock<BTreeSet<String>>,
}

/// Facts about the keys of one document, borrowed from what generated them.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'f> {
    /// For each field the components of its path that are arrays.
    pub paths: &'f [u64],
    /// True if a key is too long to be stored whole.
    pub long_keys: bool,
    /// The paths of arrays in a wildcard index (`GeneratedKeys::arrays`).
    pub arrays: &'f BTreeSet<&'f str>,
}

/// The facts about an index that a commit stores: those of all documents so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FactsBuf {
    /// As [`Facts::paths`], owned.
    pub paths: Vec<u64>,
    /// As [`Facts::long_keys`]; once set it stays.
    pub long_keys: bool,
    /// As [`Facts::arrays`], owned.
    pub arrays: BTreeSet<String>,
}

/// For each field of an index a set of path components that are arrays in some document: bit 0
/// for the first component, bit 63 for the 64th and all after it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MultikeyPaths(pub Vec<u64>);

impl FactsBuf {
    /// Adds facts. More than [`ARRAY_PATHS_MAX`] array paths become the one bit that stands for all.
    pub fn merge(&mut self, facts: &Facts<'_>) {
        for (bits, more) in self.paths.iter_mut().zip(facts.paths) {
            *bits |= more;
        }
        self.long_keys |= facts.long_keys;
        if MultikeyPaths::names_any(&self.paths) {
            return;
        }
        self.arrays.extend(facts.arrays.iter().map(|path| (*path).to_owned()));
        if self.arrays.len() > ARRAY_PATHS_MAX {
            self.arrays.clear();
            self.paths.iter_mut().for_each(|bits| *bits |= MultikeyPaths::ANY_PATH);
        }
    }
}

impl Known {
    fn new(fields: usize) -> Self {
        Known { paths: (0..fields).map(|_| AtomicU64::new(0)).collect(), ..Known::default() }
    }

    fn paths(&self) -> MultikeyPaths {
        MultikeyPaths(self.paths.iter().map(|bits| bits.load(Ordering::Acquire)).collect())
    }

    fn grow(&self, facts: &FactsBuf) {
        if !facts.arrays.is_empty() {
            let mut arrays = self.arrays.write();
            arrays.extend(facts.arrays.iter().cloned());
            if arrays.len() > ARRAY_PATHS_MAX {
                // The facts of commits that failed are among them. The bit is set before the lock
                // of the names is released: a reader that does not find a name finds the bit.
                self.paths.iter().for_each(|bits| {
                    bits.fetch_or(MultikeyPaths::ANY_PATH, Ordering::AcqRel);
                });
                arrays.clear();
            }
        }
        for (bits, more) in self.paths.iter().zip(&facts.paths) {
            if *more != 0 {
                bits.fetch_or(*more, Ordering::AcqRel);
            }
        }
        if facts.long_keys {
            self.long_keys.store(true, Ordering::Release);
        }
    }

    fn names_any(&self) -> bool {
        self.paths.iter().any(|bits| bits.load(Ordering::Acquire) & MultikeyPaths::ANY_PATH != 0)
    }

    fn covers(&self, facts: &Facts<'_>) -> bool {
        let paths = self.paths.iter().zip(facts.paths);
        (!facts.long_keys || self.long_keys.load(Ordering::Acquire))
            && paths.into_iter().all(|(bits, more)| bits.load(Ordering::Acquire) & more == *more)
            && (facts.arrays.is_empty() || self.names_all(facts.arrays.iter().copied()))
    }

    /// Returns true if every one of these paths is known as an array. Looks at the names before the
    /// bit that replaces them, the reverse of the order in which [`grow`](Self::grow) writes.
    fn names_all<'p>(&self, mut paths: impl Iterator<Item = &'p str>) -> bool {
        let arrays = self.arrays.read();
        paths.all(|path| arrays.contains(path)) || self.names_any()
    }
}

impl Multikey {
    /// Nothing but scalars and short keys so far.
    pub fn new(fields: usize) -> Self {
        Multikey { known: Known::new(fields), stored: Known::new(fields) }
    }

    /// With the facts that were stored.
    pub fn restored(fields: usize, facts: &FactsBuf) -> Self {
        let this = Multikey::new(fields);
        this.grow(facts);
        this.mark_stored(facts);
        this
    }

    /// True if any field has met an array.
    pub fn any(&self) -> bool {
        self.known.paths.iter().any(|bits| bits.load(Ordering::Acquire) != 0)
    }

    /// A copy of the bits.
    pub fn paths(&self) -> MultikeyPaths {
        self.known.paths()
    }

    /// True if a wildcard index may have met an array at this path.
    pub fn is_array(&self, path: &str) -> bool {
        self.known.names_all([path].into_iter())
    }

    /// True if a key was too long to be stored whole.
    pub fn long_keys(&self) -> bool {
        self.known.long_keys.load(Ordering::Acquire)
    }

    /// Adds facts. Only the write path does, before it commits.
    pub fn grow(&self, facts: &FactsBuf) {
        self.known.grow(facts);
    }

    /// Notes that a commit which stored these facts has ended.
    pub fn mark_stored(&self, facts: &FactsBuf) {
        self.stored.grow(facts);
    }

    /// Whether these facts are stored for certain.
    pub fn stored_covers(&self, facts: &Facts<'_>) -> bool {
        self.stored.covers(facts)
    }

    /// Returns true if readers are told more than these facts.
    pub fn exceeds(&self, facts: &FactsBuf) -> bool {
        let mut paths = self.known.paths.iter().zip(&facts.paths);
        paths.any(|(bits, needed)| bits.load(Ordering::Acquire) & !needed != 0)
            || self.long_keys() && !facts.long_keys
            || self.known.arrays.read().iter().any(|path| !facts.arrays.contains(path))
    }

    /// Whether readers are told these facts.
    pub fn covers(&self, facts: &Facts<'_>) -> bool {
        self.known.covers(facts)
    }
}

impl MultikeyPaths {
    /// The bit of a wildcard index whose array paths were too many to be kept by name.
    pub const ANY_PATH: u64 = 1 << 63;

    /// The bit of a path component, counted from 0.
    pub const fn bit(component: usize) -> u64 {
        1 << if component < 63 { component } else { 63 }
    }

    fn names_any(paths: &[u64]) -> bool {
        paths.iter().any(|bits| bits & Self::ANY_PATH != 0)
    }

    /// True if any field has met an array.
    pub fn any(&self) -> bool {
        self.0.iter().any(|bits| *bits != 0)
    }

    /// True if some component of this field's path is an array.
    pub fn field(&self, field: usize) -> bool {
        self.0.get(field).is_some_and(|bits| *bits != 0)
    }

    /// Whether everything in `other` is in here.
    pub fn covers(&self, other: &MultikeyPaths) -> bool {
        other
            .0
            .iter()
            .enumerate()
            .all(|(field, bits)| self.0.get(field).unwrap_or(&0) & bits == *bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts<'f>(paths: &'f [u64], long_keys: bool, arrays: &'f BTreeSet<&'f str>) -> Facts<'f> {
        Facts { paths, long_keys, arrays }
    }

    fn grown(facts: &Facts<'_>) -> FactsBuf {
        let mut all = FactsBuf { paths: vec![0; facts.paths.len()], ..FactsBuf::default() };
        all.merge(facts);
        all
    }

    #[test]
    fn multikey_bits_grow() {
        let none = BTreeSet::new();
        let multikey = Multikey::new(2);
        assert!(!multikey.any() && multikey.covers(&facts(&[0, 0], false, &none)));
        multikey.grow(&grown(&facts(&[0, 2], true, &none)));
        assert!(multikey.any() && multikey.long_keys());
        assert!(multikey.covers(&facts(&[0, 2], true, &none)));
        assert!(!multikey.covers(&facts(&[1, 2], true, &none)));
        assert_eq!(multikey.paths(), MultikeyPaths(vec![0, 2]));
        assert!(multikey.paths().covers(&MultikeyPaths(vec![0, 0])));
        assert_eq!(MultikeyPaths::bit(70), 1 << 63);
    }

    #[test]
    fn array_paths_of_failed_commits_are_bounded_too() {
        let (multikey, paths) = (Multikey::new(2), [0, 1]);
        for at in 0..=ARRAY_PATHS_MAX {
            let name = format!("x{at}");
            assert!(!multikey.is_array(&name));
            multikey.grow(&grown(&facts(&paths, false, &BTreeSet::from([name.as_str()]))));
            assert!(multikey.is_array(&name));
        }
        assert!(multikey.is_array("anything") && multikey.known.arrays.read().is_empty());
        let one = BTreeSet::from(["x0"]);
        assert!(!multikey.stored_covers(&facts(&paths, false, &one)));
    }

    #[test]
    fn array_paths_are_kept_until_they_are_too_many() {
        let multikey = Multikey::new(2);
        let one = BTreeSet::from(["a.b"]);
        multikey.grow(&grown(&facts(&[0, 1], false, &one)));
        assert!(multikey.is_array("a.b") && !multikey.is_array("a"));
        assert!(multikey.covers(&facts(&[0, 1], false, &one)));
        let names: Vec<String> = (0..=ARRAY_PATHS_MAX).map(|at| format!("x{at}")).collect();
        let many: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let all = grown(&facts(&[0, 1], false, &many));
        assert!(all.arrays.is_empty());
        multikey.grow(&all);
        assert!(multikey.is_array("anything") && multikey.covers(&facts(&[0, 1], false, &many)));
    }
}
