//! Facts about the entries of an index that are only ever added: which path components are arrays
//! in a document, and whether a key was too long to be stored whole. A writer adds them before the
//! commit that makes them true, so a reader sees at least the facts that hold in its snapshot.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::RwLock;

/// The most array paths that a wildcard index keeps by name. Beyond it every path counts as an
/// array ([`MultikeyPaths::ANY_PATH`]), which makes queries slower but not wrong.
pub const ARRAY_PATHS_MAX: usize = 1000;

/// The facts about one index.
#[derive(Debug, Default)]
pub struct Multikey {
    /// The facts that readers use.
    known: SharedFacts,
    /// The facts that are certainly stored. A fact that is only in `known` belongs to a commit that
    /// may still fail.
    stored: SharedFacts,
}

/// Facts that threads share.
#[derive(Debug, Default)]
struct SharedFacts {
    /// For each field, the components that are arrays.
    paths: Box<[AtomicU64]>,
    long_keys: AtomicBool,
    /// At most [`ARRAY_PATHS_MAX`] names.
    arrays: RwLock<BTreeSet<String>>,
}

/// Facts about the keys of one document, borrowed from the generated keys.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'f> {
    /// For each field, the components of its path that are arrays.
    pub paths: &'f [u64],
    /// True if a key is too long to be stored whole.
    pub long_keys: bool,
    /// The paths of arrays in a wildcard index (`GeneratedKeys::arrays`).
    pub arrays: &'f BTreeSet<&'f str>,
}

/// The facts about an index that a commit stores, for all documents so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FactsBuf {
    /// The same as [`Facts::paths`], owned.
    pub paths: Vec<u64>,
    /// The same as [`Facts::long_keys`].
    pub long_keys: bool,
    /// The same as [`Facts::arrays`], owned.
    pub arrays: BTreeSet<String>,
}

/// For each field of an index, the path components that are arrays in a document: bit 0 is the
/// first component, bit 63 the 64th and all after it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MultikeyPaths(pub Vec<u64>);

impl FactsBuf {
    /// Adds facts. With more than [`ARRAY_PATHS_MAX`] array paths, sets the bit that stands for all
    /// paths.
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

impl SharedFacts {
    fn new(fields: usize) -> Self {
        SharedFacts {
            paths: (0..fields).map(|_| AtomicU64::new(0)).collect(),
            ..SharedFacts::default()
        }
    }

    fn paths(&self) -> MultikeyPaths {
        MultikeyPaths(self.paths.iter().map(|bits| bits.load(Ordering::Acquire)).collect())
    }

    fn grow(&self, facts: &FactsBuf) {
        if !facts.arrays.is_empty() {
            let mut arrays = self.arrays.write();
            arrays.extend(facts.arrays.iter().cloned());
            if arrays.len() > ARRAY_PATHS_MAX {
                // The names include facts of commits that failed. The bit is set before the lock of
                // the names is released, so a reader that does not find a name finds the bit.
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

    /// Returns true if every one of these paths is known to be an array. Reads the names before the
    /// bit that replaces them, because [`grow`](Self::grow) writes them in the reverse order.
    fn names_all<'p>(&self, mut paths: impl Iterator<Item = &'p str>) -> bool {
        let arrays = self.arrays.read();
        paths.all(|path| arrays.contains(path)) || self.names_any()
    }
}

impl Multikey {
    /// Returns facts without arrays and without long keys.
    pub fn new(fields: usize) -> Self {
        Multikey { known: SharedFacts::new(fields), stored: SharedFacts::new(fields) }
    }

    /// Returns the stored facts.
    pub fn restored(fields: usize, facts: &FactsBuf) -> Self {
        let this = Multikey::new(fields);
        this.grow(facts);
        this.mark_stored(facts);
        this
    }

    /// Returns true if any field has an array in a document.
    pub fn any(&self) -> bool {
        self.known.paths.iter().any(|bits| bits.load(Ordering::Acquire) != 0)
    }

    /// Returns a copy of the array components of each field.
    pub fn paths(&self) -> MultikeyPaths {
        self.known.paths()
    }

    /// Returns true if a wildcard index may have an array at this path.
    pub fn is_array(&self, path: &str) -> bool {
        self.known.names_all([path].into_iter())
    }

    /// Returns true if a key was too long to be stored whole.
    pub fn long_keys(&self) -> bool {
        self.known.long_keys.load(Ordering::Acquire)
    }

    /// Adds facts. A writer calls it before its commit.
    pub fn grow(&self, facts: &FactsBuf) {
        self.known.grow(facts);
    }

    /// Records that a commit has stored these facts.
    pub fn mark_stored(&self, facts: &FactsBuf) {
        self.stored.grow(facts);
    }

    /// Returns true if these facts are certainly stored.
    pub fn stored_covers(&self, facts: &Facts<'_>) -> bool {
        self.stored.covers(facts)
    }

    /// Returns true if readers see facts beyond these.
    pub fn exceeds(&self, facts: &FactsBuf) -> bool {
        let mut paths = self.known.paths.iter().zip(&facts.paths);
        paths.any(|(bits, needed)| bits.load(Ordering::Acquire) & !needed != 0)
            || self.long_keys() && !facts.long_keys
            || self.known.arrays.read().iter().any(|path| !facts.arrays.contains(path))
    }

    /// Returns true if readers already see these facts.
    pub fn covers(&self, facts: &Facts<'_>) -> bool {
        self.known.covers(facts)
    }
}

impl MultikeyPaths {
    /// The bit of a wildcard index with too many array paths to keep them by name.
    pub const ANY_PATH: u64 = 1 << 63;

    /// Returns the bit of a path component, counted from 0.
    pub const fn bit(component: usize) -> u64 {
        1 << if component < 63 { component } else { 63 }
    }

    fn names_any(paths: &[u64]) -> bool {
        paths.iter().any(|bits| bits & Self::ANY_PATH != 0)
    }

    /// Returns true if any field has an array in a document.
    pub fn any(&self) -> bool {
        self.0.iter().any(|bits| *bits != 0)
    }

    /// Returns true if a component of this field's path is an array in a document.
    pub fn field(&self, field: usize) -> bool {
        self.0.get(field).is_some_and(|bits| *bits != 0)
    }

    /// Returns true if `self` includes all bits of `other`.
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
