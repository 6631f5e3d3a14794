//! One index as the catalog knows it, and the facts about its entries that only ever grow.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use quire_document::{Doc, DocBuf};
use quire_mql::collation::Collation;

use crate::key::KeySpec;
use crate::{IndexId, IndexSpec};

/// Whether readers may use an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexState {
    /// Being built: every write maintains it, nobody reads it.
    WriteOnly,
    /// Complete.
    Ready,
}

/// An index: its number, what it was asked to be, and how far it has got.
#[derive(Debug, Clone)]
pub struct Index {
    /// The number in keys.
    pub id: IndexId,
    /// The name.
    pub name: String,
    /// Which keys documents have in it.
    pub keys: Arc<KeySpec>,
    /// Two documents may not have the same key.
    pub unique: bool,
    /// Maintained, and invisible to the planner.
    pub hidden: bool,
    /// Documents expire so many seconds after the date in the field (TTL).
    pub expire_after_seconds: Option<i64>,
    /// The index version, 1 or 2.
    pub version: i32,
    /// Whether readers may use it.
    pub state: IndexState,
    /// The whole specification.
    pub spec: IndexSpec,
    /// What the entries have turned out to be.
    pub multikey: Arc<Multikey>,
    /// Operations that have used it since the start; not stored.
    pub uses: Arc<AtomicU64>,
}

/// Facts about an index's entries that only grow: for each field which components of its path
/// have been arrays, and whether a key was too long to be stored whole. Set before the commit
/// that makes them true, so whoever took a snapshot before reading them sees at least what
/// holds in it.
#[derive(Debug, Default)]
pub struct Multikey {
    paths: Box<[AtomicU64]>,
    long_keys: AtomicBool,
    /// What a commit that has ended stored; what is only in `paths` may still fail.
    stored_paths: Box<[AtomicU64]>,
    stored_long_keys: AtomicBool,
}

/// For each field of an index a set of path components that are arrays in some document: bit 0
/// for the first component, bit 63 for the 64th and all after it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MultikeyPaths(pub Vec<u64>);

impl Index {
    /// An index with this specification.
    pub fn new(id: IndexId, spec: IndexSpec, state: IndexState) -> Self {
        let keys = Arc::new(KeySpec::new(&spec));
        let multikey = Arc::new(Multikey::new(keys.fields().len()));
        Index {
            keys,
            id,
            name: spec.name.clone(),
            unique: spec.unique || spec.is_id(),
            hidden: spec.hidden,
            expire_after_seconds: spec.expire_after_seconds,
            version: spec.version,
            state,
            spec,
            multikey,
            uses: Arc::default(),
        }
    }

    /// The `_id` index.
    pub fn id_index(id: IndexId, version: i32, collation: Option<Arc<Collation>>) -> Self {
        let spec = IndexSpec { version, collation, ..IndexSpec::id() };
        Index::new(id, spec, IndexState::Ready)
    }

    /// Counts an operation that uses the index.
    pub fn note_use(&self) {
        self.uses.fetch_add(1, Ordering::Relaxed);
    }

    /// The key pattern as the user wrote it.
    pub fn key(&self) -> Doc<'_> {
        self.spec.key.as_doc()
    }

    /// True for the `_id` index.
    pub fn is_id(&self) -> bool {
        self.spec.is_id()
    }

    /// Whether the pattern is the same: fields in the same order with equal directions.
    pub fn has_key(&self, key: Doc<'_>) -> bool {
        crate::index_pattern::same_pattern(self.key(), key)
    }

    /// The filter of a partial index.
    pub fn partial_filter(&self) -> Option<Doc<'_>> {
        self.spec.partial_filter.as_ref().map(DocBuf::as_doc)
    }

    /// True if some document has an array under a field's path.
    pub fn is_multikey(&self) -> bool {
        self.multikey.any()
    }

    /// Which fields have met arrays, and where in their paths.
    pub fn multikey_paths(&self) -> MultikeyPaths {
        self.multikey.paths()
    }

    /// True if some entry holds a shortened key, which must be checked against its document.
    pub fn has_long_keys(&self) -> bool {
        self.multikey.long_keys()
    }

    /// What `listIndexes` shows.
    pub fn to_document(&self) -> DocBuf {
        self.spec.to_document()
    }
}

impl Multikey {
    /// Nothing but scalars and short keys so far.
    pub fn new(fields: usize) -> Self {
        let bits = || (0..fields).map(|_| AtomicU64::new(0)).collect();
        Multikey {
            paths: bits(),
            long_keys: AtomicBool::new(false),
            stored_paths: bits(),
            stored_long_keys: AtomicBool::new(false),
        }
    }

    /// With the facts that were stored.
    pub fn restored(fields: usize, paths: &[u64], long_keys: bool) -> Self {
        let this = Multikey::new(fields);
        this.grow(paths, long_keys);
        this.mark_stored(paths, long_keys);
        this
    }

    /// True if any field has met an array.
    pub fn any(&self) -> bool {
        self.paths.iter().any(|bits| bits.load(Ordering::Acquire) != 0)
    }

    /// A copy of the bits.
    pub fn paths(&self) -> MultikeyPaths {
        MultikeyPaths(self.paths.iter().map(|bits| bits.load(Ordering::Acquire)).collect())
    }

    /// True if a key was too long to be stored whole.
    pub fn long_keys(&self) -> bool {
        self.long_keys.load(Ordering::Acquire)
    }

    /// Adds facts. Only the write path does, before it commits.
    pub fn grow(&self, paths: &[u64], long_keys: bool) {
        for (bits, more) in self.paths.iter().zip(paths) {
            if *more != 0 {
                bits.fetch_or(*more, Ordering::AcqRel);
            }
        }
        if long_keys {
            self.long_keys.store(true, Ordering::Release);
        }
    }

    /// Notes that a commit which stored these facts has ended.
    pub fn mark_stored(&self, paths: &[u64], long_keys: bool) {
        for (bits, more) in self.stored_paths.iter().zip(paths) {
            bits.fetch_or(*more, Ordering::AcqRel);
        }
        if long_keys {
            self.stored_long_keys.store(true, Ordering::Release);
        }
    }

    /// Whether these facts are stored for certain.
    pub fn stored_covers(&self, paths: &[u64], long_keys: bool) -> bool {
        (!long_keys || self.stored_long_keys.load(Ordering::Acquire))
            && self
                .stored_paths
                .iter()
                .zip(paths)
                .all(|(bits, more)| bits.load(Ordering::Acquire) & more == *more)
    }

    /// Whether readers are told these facts.
    pub fn covers(&self, paths: &[u64], long_keys: bool) -> bool {
        (!long_keys || self.long_keys())
            && self
                .paths
                .iter()
                .zip(paths)
                .all(|(bits, more)| bits.load(Ordering::Acquire) & more == *more)
    }
}

impl MultikeyPaths {
    /// The bit of a path component, counted from 0.
    pub const fn bit(component: usize) -> u64 {
        1 << if component < 63 { component } else { 63 }
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

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multikey_bits_grow() {
        let multikey = Multikey::new(2);
        assert!(!multikey.any() && multikey.covers(&[0, 0], false));
        multikey.grow(&[0, 2], true);
        assert!(multikey.any() && multikey.long_keys());
        assert!(multikey.covers(&[0, 2], true) && !multikey.covers(&[1, 2], true));
        assert_eq!(multikey.paths(), MultikeyPaths(vec![0, 2]));
        assert!(multikey.paths().covers(&MultikeyPaths(vec![0, 0])));
        assert_eq!(MultikeyPaths::bit(70), 1 << 63);
    }
}
