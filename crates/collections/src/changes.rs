//! Typed changes: what a writer does to documents and to the catalog. The step *log* of a write
//! (`rules`) reports them to the store's listener while the transaction is still open, so that a
//! change log stores its record in the commit that makes the change. Without a listener nothing is
//! computed.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use quire_catalog::{
    Catalog, Collection, CollectionId, Database, Index, IndexState, Namespace, ViewDefinition,
};
use quire_document::{Doc, DocBuf};
use quire_error::{Error, Result};
use quire_mql::update::{Update, UpdateDescription};
use quire_storage::Txn;

use crate::{RecordId, WritePolicy};

/// One change that a writer has made.
#[derive(Debug, Clone, Copy)]
pub enum Change<'c> {
    /// A document was inserted.
    Insert {
        /// The collection of the document.
        collection: &'c Collection,
        /// The record id of the document.
        id: RecordId,
        /// The document as it is stored.
        doc: Doc<'c>,
    },
    /// Operators or a pipeline changed a document.
    Update(UpdatedDoc<'c>),
    /// A document was replaced by another one with the same `_id`.
    Replace {
        /// The collection of the document.
        collection: &'c Collection,
        /// The record id of the document.
        id: RecordId,
        /// The document before the change.
        before: Doc<'c>,
        /// The document after the change.
        after: Doc<'c>,
    },
    /// A document was deleted.
    Delete {
        /// The collection of the document.
        collection: &'c Collection,
        /// The record id that the document had.
        id: RecordId,
        /// The deleted document.
        before: Doc<'c>,
    },
    /// The catalog changed. The documents of a dropped collection are not reported one by one.
    Catalog(&'c CatalogChange),
}

impl<'c> Change<'c> {
    /// Returns the collection of the changed document; `None` for a change of the catalog.
    pub fn collection(&self) -> Option<&'c Collection> {
        match self {
            Change::Insert { collection, .. }
            | Change::Replace { collection, .. }
            | Change::Delete { collection, .. } => Some(collection),
            Change::Update(updated) => Some(updated.collection),
            Change::Catalog(_) => None,
        }
    }

    /// Returns the document before the change; `None` if there was none.
    pub fn before(&self) -> Option<Doc<'c>> {
        match self {
            Change::Update(UpdatedDoc { before, .. })
            | Change::Replace { before, .. }
            | Change::Delete { before, .. } => Some(*before),
            Change::Insert { .. } | Change::Catalog(_) => None,
        }
    }

    /// Returns the document after the change; `None` if there is none.
    pub fn after(&self) -> Option<Doc<'c>> {
        match self {
            Change::Update(UpdatedDoc { after, .. })
            | Change::Replace { after, .. }
            | Change::Insert { doc: after, .. } => Some(*after),
            Change::Delete { .. } | Change::Catalog(_) => None,
        }
    }
}

/// A document that an update changed.
#[derive(Debug, Clone, Copy)]
pub struct UpdatedDoc<'c> {
    /// The collection of the document.
    pub collection: &'c Collection,
    /// The record id of the document.
    pub id: RecordId,
    /// The document before the change.
    pub before: Doc<'c>,
    /// The document after the change.
    pub after: Doc<'c>,
    update: &'c Update,
}

impl<'c> UpdatedDoc<'c> {
    /// Computes which fields the update changed.
    pub fn description(&self) -> UpdateDescription {
        // A replacement has no description and is reported as `Replace`.
        self.update.describe(self.before, self.after).unwrap_or_default()
    }

    /// Returns the change that `update` made; a replacement becomes `Replace`.
    pub(crate) fn change(
        collection: &'c Collection,
        id: RecordId,
        (before, after): (Doc<'c>, Doc<'c>),
        update: Option<&'c Update>,
    ) -> Change<'c> {
        match update.filter(|update| !update.is_replacement()) {
            Some(update) => Change::Update(UpdatedDoc { collection, id, before, after, update }),
            None => Change::Replace { collection, id, before, after },
        }
    }
}

/// Receives the changes of every writer of a store.
pub trait ChangeListener: Send + Sync {
    /// Receives a change that a transaction has made and not yet committed. The commit of that
    /// transaction stores what the listener appends to `log`; if the change is undone, the records
    /// are discarded.
    ///
    /// Runs on the thread of the writer, and for a change of the catalog under the lock of all such
    /// changes. It must not write to the store itself, and must not wait.
    ///
    /// # Errors
    /// An error fails the write that made the change.
    fn on_change(&self, change: &Change<'_>, log: &mut ChangeLog<'_>) -> Result<()>;
}

/// The records that a transaction will append to the change log.
pub struct ChangeLog<'t> {
    txn: &'t mut Txn,
    policy: WritePolicy,
}

impl<'t> ChangeLog<'t> {
    pub(crate) fn new(txn: &'t mut Txn, policy: WritePolicy) -> Self {
        ChangeLog { txn, policy }
    }

    /// Returns the policy of the writer that made the change.
    pub fn policy(&self) -> WritePolicy {
        self.policy
    }

    /// Appends a record. The records of a transaction keep their order.
    pub fn append(&mut self, record: impl Into<Bytes>) {
        self.txn.append_log(record.into());
    }
}

/// One change of the catalog.
#[derive(Debug, Clone)]
pub enum CatalogChange {
    /// A database got its first collection or view.
    DatabaseCreated(String),
    /// A database lost its last collection or view.
    DatabaseDropped(String),
    /// A collection was created.
    CollectionCreated(Namespace),
    /// A collection was dropped.
    CollectionDropped(Namespace),
    /// A collection was renamed.
    CollectionRenamed {
        /// The old name.
        from: Namespace,
        /// The new name.
        to: Namespace,
    },
    /// A view was created or its definition was changed.
    ViewCreated(Arc<ViewDefinition>),
    /// A view was dropped.
    ViewDropped(Arc<ViewDefinition>),
    /// An index build began.
    IndexStarted(Namespace, Arc<Index>),
    /// An index became ready for readers.
    IndexReady(Namespace, Arc<Index>),
    /// An index build was aborted.
    IndexAborted(Namespace, Arc<Index>),
    /// An index was dropped. The indexes of a dropped collection are not reported.
    IndexDropped(Namespace, Arc<Index>),
}

/// Receives the changes of each statement, on the thread of the statement, after its commit.
pub type CatalogObserver = Box<dyn Fn(&[CatalogChange]) + Send + Sync>;

/// A document that does not comply with the validator of its collection.
#[derive(Debug, Clone, Copy)]
pub struct Violation<'v> {
    /// The collection that has the validator.
    pub collection: &'v Collection,
    /// The document that was to be written.
    pub doc: Doc<'v>,
    /// The fields of `errInfo`.
    pub err_info: &'v DocBuf,
    /// True if the document is refused; false if it is written nevertheless.
    pub refused: bool,
}

/// Receives the violations that are to be logged, on the thread of the write and before its commit.
pub type ViolationObserver = Box<dyn Fn(&Violation<'_>) + Send + Sync>;

/// The listener and the observers of a store, at most one of each.
#[derive(Default)]
pub(crate) struct Observers {
    listener: OnceLock<Arc<dyn ChangeListener>>,
    of_catalog: OnceLock<CatalogObserver>,
    of_violations: OnceLock<ViolationObserver>,
}

impl Observers {
    /// Sets the listener of all changes.
    ///
    /// # Errors
    /// 1 InternalError if there is one.
    pub(crate) fn listen(&self, listener: Arc<dyn ChangeListener>) -> Result<()> {
        let set = self.listener.set(listener);
        set.map_err(|_| Error::internal("the store has a listener of its changes already"))
    }

    /// Sets the observer of the catalog.
    ///
    /// # Errors
    /// 1 InternalError if there is one.
    pub(crate) fn observe_catalog(&self, observer: CatalogObserver) -> Result<()> {
        let set = self.of_catalog.set(observer);
        set.map_err(|_| Error::internal("the store has an observer of its catalog already"))
    }

    /// Sets the observer of violations.
    ///
    /// # Errors
    /// 1 InternalError if there is one.
    pub(crate) fn observe_violations(&self, observer: ViolationObserver) -> Result<()> {
        let set = self.of_violations.set(observer);
        set.map_err(|_| Error::internal("the store has an observer of violations already"))
    }

    /// Reports a violation to the observer of violations.
    pub(crate) fn violated(&self, violation: &Violation<'_>) {
        if let Some(observer) = self.of_violations.get() {
            observer(violation);
        }
    }

    /// Returns the listener of all changes, if there is one.
    pub(crate) fn listener(&self) -> Option<&Arc<dyn ChangeListener>> {
        self.listener.get()
    }

    /// Reports the changes of a commit to the observer of the catalog.
    pub(crate) fn committed(&self, before: &Catalog, after: &Catalog) {
        if let Some(observer) = self.of_catalog.get() {
            observer(&changes(before, after));
        }
    }
}

/// Returns the changes between two catalogs: new databases, then collections and views by name,
/// then dropped databases.
pub(crate) fn changes(before: &Catalog, after: &Catalog) -> Vec<CatalogChange> {
    let mut found = Vec::new();
    let mut touched: Vec<&str> = Vec::new();
    for database in after.databases() {
        match before.database(database.name()) {
            Some(old) if Arc::ptr_eq(old, database) => {}
            Some(_) => touched.push(database.name()),
            None => {
                found.push(CatalogChange::DatabaseCreated(database.name().to_owned()));
                touched.push(database.name());
            }
        }
    }
    let gone = before.databases().filter(|old| after.database(old.name()).is_none());
    let gone: Vec<&str> = gone.map(|old| old.name()).collect();
    touched.extend(&gone);
    touched.sort_unstable();
    let of = |catalog: &Catalog| -> Vec<Arc<Database>> {
        touched.iter().filter_map(|name| catalog.database(name).cloned()).collect()
    };
    let (before, after) = (of(before), of(after));
    collections(&before, &after, &mut found);
    views(&before, &after, &mut found);
    found.extend(gone.iter().map(|name| CatalogChange::DatabaseDropped((*name).to_owned())));
    found
}

fn collections(before: &[Arc<Database>], after: &[Arc<Database>], found: &mut Vec<CatalogChange>) {
    let by_id = |databases: &[Arc<Database>]| -> HashMap<CollectionId, Arc<Collection>> {
        let all = databases.iter().flat_map(|database| database.collections());
        all.map(|collection| (collection.id, Arc::clone(collection))).collect()
    };
    let (old, new) = (by_id(before), by_id(after));
    let in_order = |all: &HashMap<CollectionId, Arc<Collection>>| {
        let mut all: Vec<Arc<Collection>> = all.values().cloned().collect();
        all.sort_unstable_by(|one, other| one.namespace.as_str().cmp(other.namespace.as_str()));
        all
    };
    for collection in in_order(&old).iter().filter(|collection| !new.contains_key(&collection.id)) {
        found.push(CatalogChange::CollectionDropped(collection.namespace.clone()));
    }
    for collection in in_order(&new) {
        let namespace = &collection.namespace;
        let Some(was) = old.get(&collection.id) else {
            found.push(CatalogChange::CollectionCreated(namespace.clone()));
            let secondary = collection.indexes.iter().filter(|index| !index.is_id());
            secondary.for_each(|index| index_made(namespace, index, found));
            continue;
        };
        if was.namespace.as_str() != namespace.as_str() {
            let (from, to) = (was.namespace.clone(), namespace.clone());
            found.push(CatalogChange::CollectionRenamed { from, to });
        }
        if !Arc::ptr_eq(was, &collection) {
            indexes(was, &collection, found);
        }
    }
}

fn indexes(was: &Collection, is: &Collection, found: &mut Vec<CatalogChange>) {
    let namespace = &is.namespace;
    for index in was.indexes.iter().filter(|index| is.index_by_id(index.id).is_none()) {
        let (namespace, index_gone) = (namespace.clone(), Arc::clone(index));
        found.push(match index.state {
            IndexState::WriteOnly => CatalogChange::IndexAborted(namespace, index_gone),
            IndexState::Ready => CatalogChange::IndexDropped(namespace, index_gone),
        });
    }
    for index in &is.indexes {
        match was.index_by_id(index.id).map(|old| old.state) {
            None => index_made(namespace, index, found),
            Some(IndexState::WriteOnly) if index.state == IndexState::Ready => {
                found.push(CatalogChange::IndexReady(namespace.clone(), Arc::clone(index)));
            }
            Some(_) => {}
        }
    }
}

/// Appends the changes for a new index. An index that is ready in the commit that creates it began
/// there too.
fn index_made(namespace: &Namespace, index: &Arc<Index>, found: &mut Vec<CatalogChange>) {
    found.push(CatalogChange::IndexStarted(namespace.clone(), Arc::clone(index)));
    if index.state == IndexState::Ready {
        found.push(CatalogChange::IndexReady(namespace.clone(), Arc::clone(index)));
    }
}

fn views(before: &[Arc<Database>], after: &[Arc<Database>], found: &mut Vec<CatalogChange>) {
    let by_name = |databases: &[Arc<Database>]| -> HashMap<String, Arc<ViewDefinition>> {
        let all = databases.iter().flat_map(|database| database.views());
        all.map(|view| (view.namespace.as_str().to_owned(), Arc::clone(view))).collect()
    };
    let (old, new) = (by_name(before), by_name(after));
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        match (old.get(name), new.get(name)) {
            (Some(was), None) => found.push(CatalogChange::ViewDropped(Arc::clone(was))),
            (Some(was), Some(is)) if was.document() == is.document() => {}
            (_, Some(is)) => found.push(CatalogChange::ViewCreated(Arc::clone(is))),
            (None, None) => {}
        }
    }
}
