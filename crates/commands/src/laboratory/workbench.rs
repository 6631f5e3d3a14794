//! The database in memory in which a request tries indexes: the copies of collections and their
//! indexes. One request at a time has it.

use crate::frame::context::Context;
use crate::frame::laboratory_gate::LaboratoryTurn;
use crate::laboratory::bounded_store::BoundedStore;
use crate::laboratory::copying::{self, Copied, CopyEnd};
use quire_access::Action::{CollStats, Find};
use quire_access::Target;
use quire_advisor::SampleSize;
use quire_catalog::key::Arena;
use quire_catalog::{
    Collection, CollectionOptions, FactsBuf, Index, IndexSpec, Namespace, ViewDefinition,
};
use quire_collections::{
    CollectionCursor, CollectionSizes, CreateIndexes, DropIndexes, IndexChoice, ModifyCollection,
    ModifyIndex, Store, collection_sizes,
};
use quire_document::{DocBuf, Value};
use quire_error::Result;
use quire_executor::{ExecParams, FreshViews, OpenViews, Views};
use quire_storage::rng::Rng;
use quire_storage::{CommitOptions, Direction};
use std::sync::Arc;

/// How often a copy begins again with fewer documents, because the indexes took more memory than was
/// expected.
const ATTEMPTS_MAX: usize = 6;
/// The bytes that are expected for a document beside itself, and for an entry of an index.
const DOCUMENT_BYTES: u64 = 260;
const ENTRY_BYTES: u64 = 260;
/// The options of a collection that its copy has too: those that plans depend on.
const COPIED_OPTIONS: &[&str] = &["collation", "clusteredIndex"];

/// A collection to be copied.
pub struct CopyOf {
    /// The collection to copy.
    pub collection: Arc<Collection>,
    /// The specifications of the indexes that the copy has beside `_id`, in order.
    pub indexes: Vec<IndexSpec>,
    /// The number of indexes that are built later, for which memory is left.
    pub more_indexes: u64,
    /// The greatest number of documents in the copy; `None` for as many as the memory allows.
    pub documents_max: Option<u64>,
}

/// What the requests in the laboratory need: the copies to make, and how to draw samples.
pub struct Wanted {
    /// The collections. The first gets the memory that the others leave.
    pub copies: Vec<CopyOf>,
    /// The views that the requests read.
    pub views: Vec<Arc<ViewDefinition>>,
    /// The seed of the random samples.
    pub seed: u64,
}

/// A database in memory with copies of collections.
pub struct Workbench<'c> {
    bounded: BoundedStore<'c>,
    copies: Vec<Copied>,
    /// The last field, which is dropped last, so that the memory is free when the next request has its turn.
    _turn: LaboratoryTurn<'c>,
}

/// Requires the rights to copy a collection and to show the size of the copy. Rights on a view are not
/// enough: an index on the collection tells what the view hides.
///
/// # Errors
/// 13 Unauthorized.
pub fn require_copy(cx: &Context<'_>, namespace: &Namespace) -> Result<()> {
    let target = Target::Collection(namespace.db(), namespace.collection());
    [Find, CollStats].into_iter().try_for_each(|action| cx.require(target, action))
}

impl<'c> Workbench<'c> {
    /// Waits until the laboratory is free, and copies what is wanted. If it does not fit into the
    /// memory, the copies are random samples.
    ///
    /// # Errors
    /// 13 Unauthorized if the client may not read one of the collections, or see its size; the errors
    /// of building the indexes, such as 11000 for two documents with the same key in a
    /// unique one; 146 ExceededMemoryLimit if not even a small sample fits; the error of an interrupt.
    pub fn open(cx: &'c Context<'c>, views: &mut dyn Views, wanted: &Wanted) -> Result<Self> {
        for copy in &wanted.copies {
            require_copy(cx, &copy.collection.namespace)?;
        }
        let turn = cx.service.laboratory.enter(&cx.interrupt)?;
        views.renew()?;
        let mut bench =
            Workbench { bounded: BoundedStore::new(cx)?, copies: Vec::new(), _turn: turn };
        let mut fraction = 1.0;
        for _ in 0..ATTEMPTS_MAX {
            match bench.try_copy(views, wanted, fraction)? {
                None => return Ok(bench),
                Some(fits) => fraction *= fits,
            }
            bench.bounded.clear()?;
        }
        Err(bench.bounded.too_small())
    }

    /// Copies with `fraction` of the documents that are expected to fit. Returns the fraction of them
    /// that does fit if it is less than 1.
    fn try_copy(
        &mut self,
        views: &mut dyn Views,
        wanted: &Wanted,
        fraction: f64,
    ) -> Result<Option<f64>> {
        let mut copies = Vec::new();
        let mut left = self.memory().1;
        // The first collection comes last, because it takes what is left.
        for (at, copy) in wanted.copies.iter().enumerate().rev() {
            let share = if at == 0 { left } else { left / 4 };
            let counts = views.view().counts(&copy.collection);
            let entries = (copy.indexes.len() as u64 + copy.more_indexes + 1) * ENTRY_BYTES;
            let expected = counts.bytes + counts.documents * (DOCUMENT_BYTES + entries);
            let fits = (share as f64 / expected.max(1) as f64).min(1.0) * fraction;
            let fits = match fits {
                fits if fits < 1.0 => (counts.documents as f64 * fits) as u64,
                _ => u64::MAX,
            };
            let most = copy.documents_max.unwrap_or(u64::MAX).min(fits);
            let collection = self.create(copy)?;
            let mut random = Rng::new(wanted.seed ^ at as u64);
            let reached = self.memory().0 + share;
            let ended = copying::copy(
                &mut self.bounded,
                views,
                (&copy.collection, &collection),
                most,
                &mut random,
                reached,
            )?;
            match ended {
                CopyEnd::Copied(copied) => copies.push(copied),
                CopyEnd::NoRoom(done) => return Ok(Some(done.clamp(0.05, 0.9) * 0.8)),
            }
            left = self.memory().1.saturating_sub(self.memory().0);
        }
        for view in &wanted.views {
            self.store().create_view(view, &CommitOptions::buffered())?;
        }
        copies.reverse();
        self.copies = copies;
        Ok(None)
    }

    /// Creates the empty copy of a collection with its indexes.
    fn create(&self, copy: &CopyOf) -> Result<Arc<Collection>> {
        let commit = CommitOptions::buffered();
        let source = &copy.collection;
        let namespace = &source.namespace;
        self.store().create_collection(namespace, copied_options(&source.options)?, &commit)?;
        if !copy.indexes.is_empty() {
            let create =
                CreateIndexes { namespace: namespace.clone(), specs: copy.indexes.clone() };
            self.store().create_indexes(&create, self.bounded.interrupt(), &commit)?;
        }
        let collection = self.collection(namespace)?;
        for index in &collection.indexes {
            index.multikey.grow(&known_facts(index, source));
        }
        for filter in source.index_filters.all() {
            collection.index_filters.set((*filter).clone())?;
        }
        Ok(collection)
    }

    /// Returns a copy of a collection as the laboratory has it now.
    ///
    /// # Errors
    /// 26 NamespaceNotFound if it was not copied.
    pub fn collection(&self, namespace: &Namespace) -> Result<Arc<Collection>> {
        self.store().catalog().require(namespace).cloned()
    }

    /// Hides an index from the planner, or shows it again.
    ///
    /// # Errors
    /// 27 IndexNotFound.
    pub fn hide(&self, namespace: &Namespace, name: &str, hidden: bool) -> Result<()> {
        let index = ModifyIndex {
            index: IndexChoice::Name(name.to_owned()),
            hidden: Some(hidden),
            prepare_unique: None,
            expire_after_seconds: None,
        };
        let change = ModifyCollection { index: Some(index), ..ModifyCollection::default() };
        self.store().modify_collection(namespace, &change, &CommitOptions::buffered())?;
        Ok(())
    }

    /// Returns true if the laboratory holds no more memory than it may.
    pub fn has_room(&mut self) -> bool {
        let (_, most) = self.memory();
        self.bounded.charge(most)
    }

    /// Drops an index of a copy.
    ///
    /// # Errors
    /// 27 IndexNotFound.
    pub fn drop_index(&self, namespace: &Namespace, name: &str) -> Result<()> {
        let drop = DropIndexes::Names(vec![name.to_owned()]);
        self.store().drop_indexes(namespace, &drop, &CommitOptions::buffered())?;
        Ok(())
    }

    /// Returns the copies, in the order in which they were wanted.
    pub fn copies(&self) -> &[Copied] {
        &self.copies
    }

    /// Returns the copy of a collection.
    pub fn copy_of(&self, namespace: &Namespace) -> Option<&Copied> {
        self.copies.iter().find(|copied| copied.namespace == *namespace)
    }

    /// Returns the sizes of a copy and its indexes.
    ///
    /// # Errors
    /// 26 NamespaceNotFound.
    pub fn sizes(&self, namespace: &Namespace) -> Result<CollectionSizes> {
        collection_sizes(self.store(), &*self.collection(namespace)?)
    }

    /// Returns the greatest number of keys that a document of the copy has in one of its indexes.
    ///
    /// # Errors
    /// 26 NamespaceNotFound; the errors of the engine.
    pub fn most_keys(&mut self, namespace: &Namespace) -> Result<u64> {
        self.most_keys_of(namespace, None)
    }

    /// Returns the greatest number of keys that a document of the copy has in the index with this name,
    /// or in any.
    ///
    /// # Errors
    /// 26 NamespaceNotFound; the errors of the engine.
    pub fn most_keys_of(&mut self, namespace: &Namespace, name: Option<&str>) -> Result<u64> {
        let collection = self.collection(namespace)?;
        let is_asked = |index: &Index| name.is_none_or(|name| index.name == name);
        let indexes = collection.indexes.iter();
        let indexes = indexes.filter(|index| is_asked(index) && may_have_several(index));
        let indexes: Vec<Arc<Index>> = indexes.cloned().collect();
        let (mut most, mut page) = (1, Vec::new());
        let mut cursor = CollectionCursor::new(&collection, Direction::Forward);
        let mut more = !indexes.is_empty();
        while more {
            page.clear();
            let view = self.store().read_view()?;
            more = cursor.next_page(&view.view(), &collection, 500, 2 << 20, &mut page)?;
            for (record, index) in
                page.iter().flat_map(|record| indexes.iter().map(move |index| (record, index)))
            {
                let arena = Arena::new();
                let keys = index.keys.generate(record.doc.as_doc(), &arena)?;
                most = most.max(keys.keys().count() as u64);
            }
            self.bounded.pause()?;
        }
        Ok(most)
    }

    /// Returns the store with its bounds.
    pub fn bounded(&mut self) -> &mut BoundedStore<'c> {
        &mut self.bounded
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<Store> {
        self.bounded.store()
    }

    /// Returns the bytes that the laboratory holds, and the most that it may hold.
    pub fn memory(&self) -> (u64, u64) {
        self.bounded.memory()
    }

    /// Returns views for a request in the laboratory.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn views(&self) -> Result<OpenViews<'static>> {
        Ok(OpenViews::Fresh(FreshViews::new(self.store())?))
    }

    /// Returns the parameters of a request whose collection is copied as `size` says.
    pub fn exec_params(&self, size: SampleSize) -> ExecParams {
        let mut params = self.bounded.cx().exec_params();
        params.threads_max = 1;
        params.documents_per_sampled = size.documents_per_sampled();
        params
    }
}

fn copied_options(options: &CollectionOptions) -> Result<CollectionOptions> {
    CollectionOptions::from_document(DocBuf::build(|out| {
        let copied = options.document().fields().filter(|(name, _)| COPIED_OPTIONS.contains(name));
        copied.for_each(|(name, value)| {
            out.append(name, value);
        });
    }))
}

/// Returns what the indexes of the collection say about arrays at the paths of a copy's index: a
/// sample may miss the documents that have them.
fn known_facts(index: &Index, source: &Collection) -> FactsBuf {
    let of_fields = |index: &Index| -> Vec<String> {
        index.key().fields().map(|(path, _)| path.to_owned()).collect()
    };
    let paths = of_fields(index);
    let mut facts =
        FactsBuf { paths: vec![0; index.multikey_paths().0.len()], ..FactsBuf::default() };
    let is_plain = |index: &Index| index.key().fields().all(|(_, value)| is_direction(value));
    if !is_plain(index) {
        return facts;
    }
    for known in source.indexes.iter().filter(|known| is_plain(known)) {
        for (path, bits) in of_fields(known).iter().zip(known.multikey_paths().0) {
            let same = paths.iter().zip(&mut facts.paths).filter(|(own, _)| *own == path);
            same.for_each(|(_, own)| *own |= bits);
        }
        facts.long_keys |= known.name == index.name && known.has_long_keys();
    }
    facts
}

/// Returns true if a document may have several keys in the index.
fn may_have_several(index: &Index) -> bool {
    index.is_multikey()
        || !index.key().fields().all(|(_, value)| is_direction(value))
        || index.key().contains("$**")
}

fn is_direction(value: Value<'_>) -> bool {
    matches!(value, Value::Int32(_) | Value::Int64(_) | Value::Double(_))
}
