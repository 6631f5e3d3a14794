//! An index in the catalog.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quire_document::{Doc, DocBuf};

use crate::key::KeySpec;
use crate::{IndexId, IndexSpec, Multikey, MultikeyPaths};

/// Whether readers may use an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexState {
    /// The index is being built: every write maintains it, no reader uses it.
    WriteOnly,
    /// The index is complete: readers may use it.
    Ready,
}

/// An index: its id, its specification, and its state.
#[derive(Debug, Clone)]
pub struct Index {
    /// The id, which is in all keys of the index.
    pub id: IndexId,
    /// The name of the index.
    pub name: String,
    /// The key specification: which keys a document has in the index.
    pub keys: Arc<KeySpec>,
    /// True for the `_id` index.
    is_id: bool,
    /// Two documents may not have the same key.
    pub unique: bool,
    /// A write may not add a second document with the same key. Duplicates that exist already are
    /// allowed.
    pub prepare_unique: bool,
    /// Writers maintain the index, but the planner does not use it.
    pub hidden: bool,
    /// Seconds after the date in the field at which a document expires (TTL).
    pub expire_after_seconds: Option<i64>,
    /// The index version, 1 or 2.
    pub version: i32,
    /// Whether readers may use it.
    pub state: IndexState,
    /// The build is adding the entries of existing documents. Meanwhile writers only record what
    /// they change and do not touch the entries. Not stored.
    pub loading: bool,
    /// The whole specification.
    pub spec: IndexSpec,
    /// What is known about the entries: array paths and truncated keys.
    pub multikey: Arc<Multikey>,
    /// The number of operations that used the index since the server started. Not stored.
    pub uses: Arc<AtomicU64>,
}

impl Index {
    /// Returns an index with this specification.
    pub fn new(id: IndexId, spec: IndexSpec, state: IndexState) -> Self {
        let keys = Arc::new(KeySpec::new(&spec));
        let multikey = Arc::new(Multikey::new(keys.fields().len()));
        let is_id = spec.is_id();
        Index {
            keys,
            is_id,
            id,
            name: spec.name.clone(),
            unique: spec.unique || is_id,
            prepare_unique: spec.prepare_unique,
            hidden: spec.hidden,
            expire_after_seconds: spec.expire_after_seconds,
            version: spec.version,
            state,
            loading: state == IndexState::WriteOnly,
            spec,
            multikey,
            uses: Arc::default(),
        }
    }

    /// Returns true for the index that defines the natural order, of a clustered collection and of a
    /// time-series collection.
    pub fn is_clustered(&self) -> bool {
        self.spec.clustered
    }

    /// Returns true for the index on the time of a time-series collection, which users do not see.
    pub fn is_internal(&self) -> bool {
        self.spec.is_time_order()
    }

    /// Returns the same index in another state.
    pub fn in_state(&self, state: IndexState) -> Self {
        let mut index = self.clone();
        index.state = state;
        index.loading &= state == IndexState::WriteOnly;
        index
    }

    /// Returns true for the `_id` index.
    pub fn is_id(&self) -> bool {
        self.is_id
    }

    /// Counts an operation that uses the index.
    pub fn note_use(&self) {
        self.uses.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the key pattern as the user wrote it.
    pub fn key(&self) -> Doc<'_> {
        self.spec.key.as_doc()
    }

    /// Returns true if the key pattern is the same: the same fields in the same order, with equal
    /// directions.
    pub fn has_key(&self, key: Doc<'_>) -> bool {
        crate::index_pattern::same_pattern(self.key(), key)
    }

    /// Returns the filter of a partial index.
    pub fn partial_filter(&self) -> Option<Doc<'_>> {
        self.spec.partial_filter.as_ref().map(DocBuf::as_doc)
    }

    /// Returns true if a document may have an array at the path of one of the fields.
    pub fn is_multikey(&self) -> bool {
        self.multikey.any()
    }

    /// Returns for each field the components of its path that are arrays in some document.
    pub fn multikey_paths(&self) -> MultikeyPaths {
        self.multikey.paths()
    }

    /// Returns true if an entry may have a truncated key, which a reader must check against the
    /// document.
    pub fn has_long_keys(&self) -> bool {
        self.multikey.long_keys()
    }

    /// Returns the index as `listIndexes` shows it.
    pub fn to_document(&self) -> DocBuf {
        self.spec.to_document()
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
