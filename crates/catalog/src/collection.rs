//! One collection as the catalog knows it.

use std::fmt;
use std::sync::Arc;

use quire_document::Doc;

use crate::{CollectionId, CollectionOptions, Index, IndexFilters, IndexId, IndexState, Namespace};

/// A collection's UUID.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Uuid(pub [u8; 16]);

/// A collection: its numbers, its name, its options and its indexes.
#[derive(Debug, Clone)]
pub struct Collection {
    /// The number in keys.
    pub id: CollectionId,
    /// The UUID, which survives a rename.
    pub uuid: Uuid,
    /// Where it stands.
    pub namespace: Namespace,
    /// What it was created with.
    pub options: CollectionOptions,
    /// All indexes, `_id` first, then in the order of creation; those being built are among
    /// them (`IndexState::WriteOnly`): writers serve all, readers only the ready ones.
    pub indexes: Vec<Arc<Index>>,
    /// Rises with every change of this record. Writes guard the record's key.
    pub epoch: u64,
    /// Refuses writes while it is copied to another database. Not stored.
    pub frozen: bool,
    /// Which indexes the planner may choose from, by the shape of the request. Not stored.
    pub index_filters: Arc<IndexFilters>,
}

impl Collection {
    /// An empty collection with only its `_id` index.
    pub fn new(
        id: CollectionId,
        uuid: Uuid,
        namespace: Namespace,
        options: CollectionOptions,
        id_index: IndexId,
    ) -> Self {
        let indexes = vec![Arc::new(Index::id_index(id_index, &options))];
        let index_filters = Arc::default();
        Collection { id, uuid, namespace, options, indexes, epoch: 1, frozen: false, index_filters }
    }

    /// The `_id` index.
    pub fn id_index(&self) -> Option<&Arc<Index>> {
        self.indexes.first().filter(|index| index.is_id())
    }

    /// The `_id` index, if the collection is clustered: its order is the natural one.
    pub fn clustered_index(&self) -> Option<&Arc<Index>> {
        self.id_index().filter(|index| index.is_clustered())
    }

    /// The number of indexes that commands count: no successors, and no clustered index.
    pub fn index_count(&self) -> usize {
        self.listed_indexes().filter(|index| !index.is_clustered()).count()
    }

    /// The indexes that readers may use, hidden ones included (the planner leaves those out).
    pub fn ready_indexes(&self) -> impl Iterator<Item = &Arc<Index>> {
        self.indexes.iter().filter(|index| index.state == IndexState::Ready)
    }

    /// The index with this name, in whatever state.
    pub fn index_by_name(&self, name: &str) -> Option<&Arc<Index>> {
        self.indexes.iter().find(|index| index.name == name)
    }

    /// The indexes with exactly this key pattern (field order and directions; 1 equals 1.0).
    pub fn indexes_by_key(&self, key: Doc<'_>) -> impl Iterator<Item = &Arc<Index>> {
        self.listed_indexes().filter(move |index| index.has_key(key))
    }

    /// The indexes that users see: all but successors.
    pub fn listed_indexes(&self) -> impl Iterator<Item = &Arc<Index>> {
        self.indexes.iter().filter(|index| !self.is_successor(index))
    }

    /// True for an index that is being built to replace a ready one. It has that one's name and
    /// stands behind it; `collMod` makes one to convert an index to a unique one.
    pub fn is_successor(&self, index: &Index) -> bool {
        index.state == IndexState::WriteOnly
            && self.index_by_name(&index.name).is_some_and(|first| first.id != index.id)
    }

    /// The index with this number.
    pub fn index_by_id(&self, id: IndexId) -> Option<&Arc<Index>> {
        self.indexes.iter().find(|index| index.id == id)
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UUID(\"{self}\")")
    }
}
