//! One index as the catalog knows it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quire_document::{Doc, DocBuf};

use crate::key::KeySpec;
use crate::{CollectionOptions, IndexId, IndexSpec, Multikey, MultikeyPaths};

/// Whether readers may use an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexState {
    /// Being built: every write maintains it, no read uses it.
    WriteOnly,
    /// Complete: readers may use it.
    Ready,
}

/// An index: its number, what it was asked to be, and how far it has got.
#[derive(Debug, Clone)]
pub struct Index {
    /// The number in keys.
    pub id: IndexId,
    /// The name of the index.
    pub name: String,
    /// Which keys documents have in it.
    pub keys: Arc<KeySpec>,
    /// It is the `_id` index.
    is_id: bool,
    /// Two documents may not have the same key.
    pub unique: bool,
    /// A write may not add a second document with the same key; those that were there before
    /// stay.
    pub prepare_unique: bool,
    /// Maintained, and invisible to the planner.
    pub hidden: bool,
    /// Seconds after the date in the field at which a document expires (TTL).
    pub expire_after_seconds: Option<i64>,
    /// The index version, 1 or 2.
    pub version: i32,
    /// Whether readers may use it.
    pub state: IndexState,
    /// Its build is loading the entries of the documents: writers note what they change, and leave the
    /// entries alone. Not stored.
    pub loading: bool,
    /// The whole specification.
    pub spec: IndexSpec,
    /// What the entries have turned out to be.
    pub multikey: Arc<Multikey>,
    /// Operations that have used it since the start; not stored.
    pub uses: Arc<AtomicU64>,
}

impl Index {
    /// An index with this specification.
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

    /// The `_id` index of a collection with these options.
    pub fn id_index(id: IndexId, options: &CollectionOptions) -> Self {
        let (version, collation) = (options.id_index_version(), options.collation().cloned());
        let mut spec = IndexSpec { version, collation, ..IndexSpec::id() };
        if let Some(name) = options.clustered_index() {
            name.clone_into(&mut spec.name);
            (spec.unique, spec.clustered) = (true, true);
        }
        Index::new(id, spec, IndexState::Ready)
    }

    /// True for the `_id` index of a clustered collection, which gives the natural order.
    pub fn is_clustered(&self) -> bool {
        self.spec.clustered
    }

    /// The same index in another state.
    pub fn in_state(&self, state: IndexState) -> Self {
        let mut index = self.clone();
        index.state = state;
        index.loading &= state == IndexState::WriteOnly;
        index
    }

    /// True for the `_id` index.
    pub fn is_id(&self) -> bool {
        self.is_id
    }

    /// Counts an operation that uses the index.
    pub fn note_use(&self) {
        self.uses.fetch_add(1, Ordering::Relaxed);
    }

    /// The key pattern as the user wrote it.
    pub fn key(&self) -> Doc<'_> {
        self.spec.key.as_doc()
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

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
