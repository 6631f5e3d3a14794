//! The use of each collection, for `top` and for `$collStats` with `latencyStats`.

use crate::frame::command::Kind;
use crate::frame::metrics::{Counter, Latency};
use foldhash::fast::RandomState;
use quire_catalog::{Catalog, CollectionId, Namespace, split_namespace};
use quire_collections::Store;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

/// The number of entries below which dropped collections are not removed.
const FORGET_AT: usize = 256;
/// The largest number of names without a collection whose use is kept. Clients choose them.
const NAMES_MAX: usize = 1000;

/// The class of an operation in `top` and in the profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Queries: `find` and similar commands.
    Query,
    /// Runs of `getMore`.
    GetMore,
    /// Inserts of documents.
    Insert,
    /// `update`, or a statement of it.
    Update,
    /// `delete`, or a statement of it.
    Remove,
    /// Any other command.
    Command,
}

impl Class {
    /// Returns the profiler's name of the class.
    pub fn name(self) -> &'static str {
        match self {
            Class::Query => "query",
            Class::GetMore => "getmore",
            Class::Insert => "insert",
            Class::Update => "update",
            Class::Remove => "remove",
            Class::Command => "command",
        }
    }
}

/// The number and the duration of operations.
#[derive(Default)]
pub struct Timed {
    /// The number of operations.
    pub count: Counter,
    /// The total duration in microseconds.
    pub micros: Counter,
}

impl Timed {
    fn note(&self, micros: u64) {
        self.count.add(1);
        self.micros.add(micros);
    }
}

/// The use of one collection since the start, or since its creation.
#[derive(Default)]
pub struct CollectionUsage {
    /// All operations on the collection.
    pub total: Timed,
    /// Operations that read.
    pub reading: Timed,
    /// Operations that write.
    pub writing: Timed,
    /// By class, in the order of [`Class`].
    by_class: [Timed; 6],
    /// Latencies of reading commands.
    pub reads: Latency,
    /// Latencies of writing commands.
    pub writes: Latency,
    /// Latencies of other commands.
    pub commands: Latency,
    /// Operations that scanned the whole collection.
    pub collection_scans: Counter,
}

impl CollectionUsage {
    /// Returns the operations of one class.
    pub fn class(&self, class: Class) -> &Timed {
        &self.by_class[class as usize]
    }
}

/// The use of all collections by their numbers, which a rename keeps. Entries of dropped
/// collections are removed when they are more than half of all.
#[derive(Default)]
pub struct Usage {
    collections: RwLock<HashMap<CollectionId, Arc<CollectionUsage>, RandomState>>,
    /// The use of views, and of names that no collection has.
    names: RwLock<BTreeMap<Box<str>, Arc<CollectionUsage>>>,
}

impl Usage {
    /// Notes an operation on a namespace: a collection, a view, or a name without either.
    pub fn note(&self, store: &Store, namespace: &str, class: Class, kind: Kind, micros: u64) {
        let Some((db, collection)) = split_namespace(namespace) else { return };
        if collection == "$cmd" {
            return;
        }
        let catalog = store.catalog();
        let usage = match catalog.collection(db, collection) {
            Some(found) => Some(self.of(&catalog, found.id)),
            None => self.of_name(&catalog, namespace),
        };
        let Some(usage) = usage else { return };
        usage.total.note(micros);
        usage.class(class).note(micros);
        match kind {
            Kind::Read => usage.reading.note(micros),
            Kind::Write => usage.writing.note(micros),
            Kind::Other => {}
        }
        match kind {
            Kind::Read => usage.reads.note(micros),
            Kind::Write => usage.writes.note(micros),
            Kind::Other => usage.commands.note(micros),
        }
    }

    /// Returns the use of a collection, if it has been used.
    pub fn get(&self, id: CollectionId) -> Option<Arc<CollectionUsage>> {
        let known = self.collections.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&id).cloned()
    }

    /// Returns the use of a view, or of a name that no collection has, if it has been used.
    pub fn get_by_name(&self, namespace: &str) -> Option<Arc<CollectionUsage>> {
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        names.get(namespace).cloned()
    }

    /// Returns the names that no collection of `catalog` has, with their use, in order.
    pub fn names(&self, catalog: &Catalog) -> Vec<(Box<str>, Arc<CollectionUsage>)> {
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        let without = names.iter().filter(|(name, _)| {
            split_namespace(name).is_some_and(|(db, name)| catalog.collection(db, name).is_none())
        });
        without.map(|(name, usage)| (name.clone(), Arc::clone(usage))).collect()
    }

    /// Returns the use of a name without a collection; `None` if too many have been used. Names that
    /// are no view make room for others.
    fn of_name(&self, catalog: &Catalog, namespace: &str) -> Option<Arc<CollectionUsage>> {
        if let Some(usage) = self.get_by_name(namespace) {
            return Some(usage);
        }
        let is_view =
            |name: &str| Namespace::parse(name).is_ok_and(|name| catalog.view(&name).is_some());
        let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        if names.len() >= NAMES_MAX {
            names.retain(|name, _| is_view(name));
        }
        (names.len() < NAMES_MAX).then(|| Arc::clone(names.entry(namespace.into()).or_default()))
    }

    /// Notes an operation that scanned a whole collection.
    pub fn note_collection_scan(&self, store: &Store, namespace: &str) {
        let Some((db, collection)) = split_namespace(namespace) else { return };
        let catalog = store.catalog();
        if let Some(found) = catalog.collection(db, collection) {
            self.of(&catalog, found.id).collection_scans.add(1);
        }
    }

    /// Returns the use of a collection.
    fn of(&self, catalog: &Catalog, id: CollectionId) -> Arc<CollectionUsage> {
        if let Some(usage) = self.get(id) {
            return usage;
        }
        let mut all = self.collections.write().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= FORGET_AT && all.len() > 2 * catalog.collections().count() {
            all.retain(|id, _| catalog.by_id(*id).is_some());
        }
        Arc::clone(all.entry(id).or_default())
    }
}
