//! A collection in the catalog.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use quire_document::Doc;
use quire_error::{Error, ErrorCode, Result};

use crate::patterns::Patterns;
use crate::{
    CollectionId, CollectionOptions, Index, IndexFilters, IndexId, IndexSpec, IndexState,
    Namespace, PlanCache, Uuid,
};

/// A collection: its id, its name, its options and its indexes.
#[derive(Debug, Clone)]
pub struct Collection {
    /// The id, which is in all keys of the collection.
    pub id: CollectionId,
    /// The UUID, which survives a rename.
    pub uuid: Uuid,
    /// The database and the name.
    pub namespace: Namespace,
    /// The options, from `create` and `collMod`.
    pub options: CollectionOptions,
    /// All indexes: `_id` first, then in the order of creation. Includes indexes that are being
    /// built (`IndexState::WriteOnly`): writers maintain every index, readers use only the ready
    /// ones.
    pub indexes: Vec<Arc<Index>>,
    /// The number under which the buckets of a time-series collection are stored; `None` while none was
    /// ever closed.
    pub buckets: Option<IndexId>,
    /// Increases with every change of this record. Each write guards the record's key.
    pub epoch: u64,
    /// Refuses writes while the collection is copied to another database. Not stored.
    pub frozen: bool,
    /// The indexes that the planner may choose from, by the shape of the request. Not stored.
    pub index_filters: Arc<IndexFilters>,
    /// The planner's choices for earlier requests. A copy has none. Not stored.
    pub plan_cache: PlanCache,
    /// The declared patterns, and those that read the collection.
    pub patterns: Patterns,
    /// The compiled rules of the collection's writes. Not stored.
    pub rules: RulesSlot,
}

/// The place for the rules that `collections` compiles from the record at the first write. The type
/// of the rules belongs to that crate, so the slot does not know it. A copy of a collection is made
/// to be changed, so its slot is empty.
#[derive(Default)]
pub struct RulesSlot(OnceLock<Option<Box<dyn Any + Send + Sync>>>);

impl RulesSlot {
    /// Returns the value in the slot. The first call stores what `compile` returns.
    #[inline]
    pub fn get_or_compile<T: Any + Send + Sync>(
        &self,
        compile: impl FnOnce() -> Option<T>,
    ) -> Option<&T> {
        let stored = self.0.get_or_init(|| compile().map(|rules| Box::new(rules) as _));
        stored.as_deref()?.downcast_ref()
    }
}

impl Clone for RulesSlot {
    fn clone(&self) -> Self {
        RulesSlot::default()
    }
}

impl fmt::Debug for RulesSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.0.get() {
            None => "not compiled",
            Some(None) => "none",
            Some(Some(_)) => "some",
        };
        f.write_str(state)
    }
}

impl Collection {
    /// Returns an empty collection that has only its `_id` index, or the index on the time of a
    /// time-series collection in its place.
    pub fn new(
        id: CollectionId,
        uuid: Uuid,
        namespace: Namespace,
        options: CollectionOptions,
        id_index: IndexId,
    ) -> Self {
        let indexes = first_index(id_index, &options).map(Arc::new).into_iter().collect();
        Collection {
            id,
            uuid,
            namespace,
            options,
            indexes,
            buckets: None,
            epoch: 1,
            frozen: false,
            index_filters: Arc::default(),
            plan_cache: PlanCache::default(),
            patterns: Patterns::default(),
            rules: RulesSlot::default(),
        }
    }

    /// Refuses a validator on a collection of a system database, and on a system collection.
    ///
    /// # Errors
    /// 72 InvalidOptions.
    pub fn check_validator(&self) -> Result<()> {
        let Collection { namespace, uuid, .. } = self;
        let refused = |text: String| Err(Error::new(ErrorCode::InvalidOptions, text));
        match namespace.db() {
            _ if self.options.validation().validator().is_none() => Ok(()),
            _ if namespace.is_system() => refused(format!(
                "Document validators not allowed on system collection {namespace} with UUID {uuid}"
            )),
            db @ ("admin" | "local" | "config") => refused(format!(
                "Document validators are not allowed on collection {namespace} with UUID {uuid} in the {db} internal database"
            )),
            _ => Ok(()),
        }
    }

    /// Returns the `_id` index.
    pub fn id_index(&self) -> Option<&Arc<Index>> {
        self.indexes.first().filter(|index| index.is_id())
    }

    /// Returns the index whose order is the natural order: the `_id` index of a clustered collection,
    /// or the index on the time of a time-series collection.
    pub fn clustered_index(&self) -> Option<&Arc<Index>> {
        self.indexes.first().filter(|index| index.is_clustered())
    }

    /// Returns true for a time-series collection.
    #[inline]
    pub fn is_time_series(&self) -> bool {
        self.options.time_series().is_some()
    }

    /// Returns the number of indexes that commands report: without successors, and without a
    /// clustered index.
    pub fn index_count(&self) -> usize {
        self.listed_indexes().filter(|index| !index.is_clustered()).count()
    }

    /// Returns the indexes that readers may use. Includes hidden ones, which the planner skips.
    pub fn ready_indexes(&self) -> impl Iterator<Item = &Arc<Index>> {
        self.indexes.iter().filter(|index| index.state == IndexState::Ready)
    }

    /// Returns the index with this name, in any state.
    pub fn index_by_name(&self, name: &str) -> Option<&Arc<Index>> {
        self.indexes.iter().find(|index| index.name == name && !index.is_internal())
    }

    /// Returns the indexes with exactly this key pattern: the same fields in the same order, with
    /// equal directions (1 equals 1.0).
    pub fn indexes_by_key(&self, key: Doc<'_>) -> impl Iterator<Item = &Arc<Index>> {
        self.listed_indexes().filter(move |index| index.has_key(key))
    }

    /// Returns the indexes that users see: all except successors and the index on the time of a
    /// time-series collection.
    pub fn listed_indexes(&self) -> impl Iterator<Item = &Arc<Index>> {
        self.indexes.iter().filter(|index| !index.is_internal() && !self.is_successor(index))
    }

    /// Returns true for an index that is being built to replace a ready one of the same name, which
    /// precedes it in `indexes`. `collMod` builds one to convert an index to a unique index.
    pub fn is_successor(&self, index: &Index) -> bool {
        index.state == IndexState::WriteOnly
            && self.index_by_name(&index.name).is_some_and(|first| first.id != index.id)
    }

    /// Returns the index with this id.
    pub fn index_by_id(&self, id: IndexId) -> Option<&Arc<Index>> {
        self.indexes.iter().find(|index| index.id == id)
    }
}

/// Returns the index that a collection with these options has from its beginning.
fn first_index(id: IndexId, options: &CollectionOptions) -> Option<Index> {
    if let Some(series) = options.time_series() {
        let spec = crate::time_series::time_index(series, options.collation())?;
        return Some(Index::new(id, spec, IndexState::Ready));
    }
    let (version, collation) = (options.id_index_version(), options.collation().cloned());
    let mut spec = IndexSpec { version, collation, ..IndexSpec::id() };
    if let Some(name) = options.clustered_index() {
        name.clone_into(&mut spec.name);
        (spec.unique, spec.clustered) = (true, true);
    }
    Some(Index::new(id, spec, IndexState::Ready))
}
