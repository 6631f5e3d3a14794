//! Reading on a snapshot: documents by record id and by `_id`.

use std::ops::Range;
use std::sync::Arc;

use quire_catalog::key::Arena;
use quire_catalog::{Catalog, Collection, CollectionId, Index, Namespace};
use quire_document::{Doc, Value};
use quire_error::Result;
use quire_storage::{ClusterTime, Counts, Snapshot, Space, Version};

use crate::entry::EntryKeys;
use crate::failure::from_storage;
use crate::layout::{doc_key, low_water_of, record_id_of};
use crate::{Record, RecordId, Store, StoredDoc};

/// A snapshot with the catalog of the same moment. It is cheap to open. While it is open the engine
/// keeps old versions of all data, so a long operation replaces it by a new one from time to time.
pub struct ReadView {
    store: Arc<Store>,
    catalog: Arc<Catalog>,
    snapshot: Box<dyn Snapshot>,
    settled: Option<Settled>,
}

/// A collection, and the bound of its settled record ids in a view.
type Settled = (CollectionId, RecordId);

/// A readable state: a [`ReadView`], or a [`Writer`](crate::Writer) with its own writes.
#[derive(Clone, Copy)]
pub struct View<'v> {
    store: &'v Arc<Store>,
    catalog: &'v Arc<Catalog>,
    snapshot: &'v dyn Snapshot,
    /// What a writer's own writes add to the counters; empty for a [`ReadView`].
    pending: &'v [Delta],
    settled: Option<Settled>,
}

/// The change of a collection's counters by uncommitted writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delta {
    pub collection: u32,
    pub documents: i64,
    pub bytes: i64,
}

impl Store {
    /// Returns a snapshot with the catalog of the same moment.
    pub fn read_view(self: &Arc<Self>) -> Result<ReadView> {
        let published = self.catalogs.published.read();
        let snapshot = self.engine().snapshot().map_err(from_storage)?;
        let (store, catalog) = (Arc::clone(self), Arc::clone(&published));
        Ok(ReadView { store, catalog, snapshot, settled: None })
    }

    /// Returns a view for a reader that follows the insertions of a collection: it knows
    /// [`View::settled_below`].
    pub fn settled_view(self: &Arc<Self>, collection: &Collection) -> Result<ReadView> {
        // The bound holds for snapshots that are taken later.
        let settled = Some((collection.id, self.record_ids(collection.id)?.settled()));
        Ok(ReadView { settled, ..self.read_view()? })
    }

    /// Returns the state at a cluster time, with the catalog of that time. Every later commit gets
    /// a later time.
    ///
    /// # Errors
    /// 239 SnapshotTooOld if the state at that time is no longer kept.
    pub fn read_view_at(self: &Arc<Self>, time: ClusterTime) -> Result<ReadView> {
        let (snapshot, catalog) = self.snapshot_at(time)?;
        Ok(ReadView { store: Arc::clone(self), catalog, snapshot, settled: None })
    }
}

impl ReadView {
    /// Returns the view for readers.
    pub fn view(&self) -> View<'_> {
        let (snapshot, settled) = (&*self.snapshot, self.settled);
        View { store: &self.store, catalog: &self.catalog, snapshot, pending: &[], settled }
    }

    /// Returns the catalog at this view.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Returns the store of the snapshot.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }
}

impl<'v> View<'v> {
    pub(crate) fn new(
        store: &'v Arc<Store>,
        catalog: &'v Arc<Catalog>,
        snapshot: &'v dyn Snapshot,
        pending: &'v [Delta],
    ) -> Self {
        View { store, catalog, snapshot, pending, settled: None }
    }

    /// Returns the catalog at this view.
    pub fn catalog(&self) -> &'v Arc<Catalog> {
        self.catalog
    }

    /// Returns the snapshot that is read.
    pub fn snapshot(&self) -> &'v dyn Snapshot {
        self.snapshot
    }

    /// Returns the store that is read.
    pub fn store(&self) -> &'v Store {
        self.store
    }

    /// Returns the store that is read, to share it.
    pub fn shared_store(&self) -> &'v Arc<Store> {
        self.store
    }

    /// Returns the last commit that the view contains.
    pub fn version(&self) -> Version {
        self.snapshot.version()
    }

    /// Returns the cluster time of that commit.
    pub fn cluster_time(&self) -> ClusterTime {
        self.snapshot.cluster_time()
    }

    /// Returns the collection, if it exists.
    pub fn collection(&self, namespace: &Namespace) -> Option<&'v Arc<Collection>> {
        self.catalog.lookup(namespace)
    }

    /// Returns the size of a collection: the counters of the last commit plus the view's own
    /// uncommitted writes. Exact for the newest view, an estimate for an older one.
    pub fn counts(&self, collection: &Collection) -> Counts {
        let mut counts = self.store.counts(collection);
        for delta in self.pending.iter().filter(|delta| delta.collection == collection.id.0) {
            counts.documents = counts.documents.saturating_add_signed(delta.documents);
            counts.bytes = counts.bytes.saturating_add_signed(delta.bytes);
        }
        counts
    }

    /// Returns a document by record id.
    pub fn get(&self, collection: &Collection, id: RecordId) -> Result<Option<StoredDoc>> {
        let value =
            self.snapshot.get(Space::Doc, &doc_key(collection.id, id)).map_err(from_storage)?;
        value.map(StoredDoc::decode).transpose()
    }

    /// Appends the documents with these record ids to `out`, in the order of `ids`.
    pub fn get_many(
        &self,
        collection: &Collection,
        ids: &[RecordId],
        out: &mut Vec<Option<StoredDoc>>,
    ) -> Result<()> {
        let keys: Vec<_> = ids.iter().map(|id| doc_key(collection.id, *id)).collect();
        let keys: Vec<&[u8]> = keys.iter().map(<[u8; 12]>::as_slice).collect();
        let mut values = Vec::with_capacity(ids.len());
        self.snapshot.get_many(Space::Doc, &keys, &mut values).map_err(from_storage)?;
        out.reserve(values.len());
        for value in values {
            out.push(value.map(StoredDoc::decode).transpose()?);
        }
        Ok(())
    }

    /// Returns the document with this `_id` (compared as MongoDB compares: 1 finds 1.0).
    pub fn get_by_id(&self, collection: &Collection, id: Value<'_>) -> Result<Option<Record>> {
        let Some(index) = collection.id_index() else { return Ok(None) };
        let mut keys = EntryKeys::default();
        keys.encode_single(index, id)?;
        let key = keys.unique_key(index, 0);
        if let Some(hint) = self.store.id_cache().get(collection.id, key)
            && let Some(doc) = self.get(collection, hint)?
            && doc
                .get("_id")
                .is_some_and(|found| quire_document::equal(found, id, index.keys.collator()))
        {
            return Ok(Some(Record { id: hint, doc }));
        }
        let entry = self.snapshot.get(Space::Idx, key).map_err(from_storage)?;
        let Some(entry) = entry else { return Ok(None) };
        let record_id = crate::entry::record_id_of_unique(&entry)?;
        self.store.id_cache().put(collection.id, key, record_id);
        Ok(self.get(collection, record_id)?.map(|doc| Record { id: record_id, doc }))
    }

    /// Returns the document that has the same key in a unique index as `doc` would have; `None` if
    /// `doc` has no key in the index or more than one.
    ///
    /// # Errors
    /// The errors of key generation and of the engine.
    pub fn get_by_key_of(
        &self,
        collection: &Collection,
        index: &Index,
        doc: Doc<'_>,
    ) -> Result<Option<Record>> {
        let arena = Arena::new();
        let mut keys = EntryKeys::default();
        keys.encode(index, &index.keys.generate(doc, &arena)?)?;
        if keys.len() != 1 {
            return Ok(None);
        }
        let found = self.snapshot.get(Space::Idx, keys.unique_key(index, 0));
        let Some(entry) = found.map_err(from_storage)? else { return Ok(None) };
        let id = crate::entry::record_id_of_unique(&entry)?;
        Ok(self.get(collection, id)?.map(|doc| Record { id, doc }))
    }

    /// Returns an id that is larger than the record ids of all documents of a collection, also of
    /// those that are newer than the view.
    pub fn record_id_bound(&self, collection: &Collection) -> Result<RecordId> {
        Ok(self.store.record_ids(collection.id)?.bound())
    }

    /// Returns the range of the record ids of all documents in the view.
    pub fn record_ids(&self, collection: &Collection) -> Result<Range<u64>> {
        let bound = self.record_id_bound(collection)?.0;
        // The first record id is 1.
        Ok(self.low_water(collection).0.clamp(1, bound.max(1))..bound)
    }

    /// Returns the bound below which no record can be inserted after this view. A record with a
    /// greater id may be in the view, although a writer that took a smaller id commits later; a
    /// reader that continues after the last record that it has seen stops before the bound, so that
    /// it misses none. `None` if the view is not from [`Store::settled_view`] of the collection.
    pub fn settled_below(&self, collection: &Collection) -> Option<RecordId> {
        self.settled.filter(|(id, _)| *id == collection.id).map(|(_, bound)| bound)
    }

    /// Returns the record before which the collection has no documents in this view, as the last
    /// writer stored it.
    pub(crate) fn head(&self, collection: &Collection) -> Result<RecordId> {
        let key = quire_catalog::low_water_key(collection.id);
        let stored = self.snapshot.get(Space::Meta, &key).map_err(from_storage)?;
        let stored = stored.map(|value| low_water_of(&value)).transpose()?;
        Ok(stored.unwrap_or(RecordId(1)).max(self.low_water(collection)))
    }

    /// Returns the smallest record id that a forward scan must read.
    pub(crate) fn low_water(&self, collection: &Collection) -> RecordId {
        match self.store.record_ids_if_known(collection.id) {
            Some(ids) => RecordId(ids.low_water(self.snapshot.version())),
            None => RecordId(0),
        }
    }

    /// Passes the first record of a scan that began at the low-water mark to that mark. A record
    /// that only this view has inserted or deleted is ignored, because it may never be committed.
    pub(crate) fn saw_first(&self, collection: &Collection, first: Option<&[u8]>) -> Result<()> {
        if self.pending.iter().any(|delta| delta.collection == collection.id.0) {
            return Ok(());
        }
        if let Some(ids) = self.store.record_ids_if_known(collection.id) {
            let first = first.map(record_id_of).transpose()?;
            ids.saw_first(self.snapshot.version(), first);
        }
        Ok(())
    }
}
