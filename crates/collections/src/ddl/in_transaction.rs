//! Collections and indexes that a client's transaction creates: they are in the transaction's own
//! catalog at once, and its commit publishes them.

use std::sync::Arc;

use quire_catalog::{Collection, CollectionOptions, Index, IndexId, IndexState, Namespace};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::Interrupt;

use super::create_indexes::new_specs;
use super::{BuiltIndexes, CreateIndexes, put_collection, take_id};
use crate::Writer;

impl Writer {
    /// Creates a collection, visible to this writer at once and to others after its commit. The
    /// commit conflicts if another transaction has created a collection with this name.
    ///
    /// # Errors
    /// 48 NamespaceExists, 166 CommandNotSupportedOnView; the errors of an invalid name or option.
    pub fn create_collection(
        &mut self,
        namespace: &Namespace,
        options: CollectionOptions,
    ) -> Result<Arc<Collection>> {
        namespace.check_creatable()?;
        if self.catalog().lookup(namespace).is_some() {
            let text = format!("Collection already exists. NS: {namespace}");
            return Err(Error::new(ErrorCode::NamespaceExists, text));
        }
        self.catalog().refuse_view(namespace)?;
        let (store, before) = (Arc::clone(self.store()), Arc::clone(self.catalog()));
        let (after, collection) =
            store.create_in(self, &before, &mut store.ddl.lock(), namespace, options)?;
        self.set_catalog(Arc::new(after))?;
        self.publish_created(Arc::clone(&collection));
        Ok(collection)
    }

    /// Creates indexes on a collection that this writer has created and not written to. Creates the
    /// collection if it does not exist.
    ///
    /// # Errors
    /// 263 OperationNotSupportedInTransaction for another collection; the errors of
    /// `createIndexes`.
    pub fn create_indexes(
        &mut self,
        request: &CreateIndexes,
        interrupt: &Interrupt,
    ) -> Result<BuiltIndexes> {
        let namespace = &request.namespace;
        namespace.check_creatable()?;
        let existing = self.catalog().writable(namespace)?;
        let collection = match &existing {
            Some(collection) => Arc::clone(collection),
            None => self.create_collection(namespace, CollectionOptions::default())?,
        };
        let before = collection.index_count();
        let new = new_specs(&collection, &request.specs, interrupt)?;
        let is_own = self.has_created(collection.id);
        let reply = BuiltIndexes {
            before,
            after: before + new.len(),
            created_collection: is_own,
            existed: request.specs.len() - new.len(),
        };
        if new.is_empty() {
            return Ok(BuiltIndexes { created_collection: existing.is_none(), ..reply });
        }
        let is_written = self.has_written(collection.id);
        if !is_own || is_written {
            let what = if is_own { "non-empty" } else { "existing" };
            let text = format!(
                "Cannot create new indexes on {what} collection {namespace} in a multi-document transaction."
            );
            return Err(Error::new(ErrorCode::OperationNotSupportedInTransaction, text));
        }
        let mut changed = Collection::clone(&collection);
        for spec in new {
            let id = IndexId(take_id(&mut self.store().ddl.lock())?);
            changed.indexes.push(Arc::new(Index::new(id, spec.clone(), IndexState::Ready)));
        }
        put_collection(self, &changed)?;
        let changed = Arc::new(changed);
        self.set_catalog(Arc::new(self.catalog().with(Arc::clone(&changed))))?;
        self.publish_created(changed);
        Ok(reply)
    }
}
