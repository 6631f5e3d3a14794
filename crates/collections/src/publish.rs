//! How a commit publishes the next catalog: under the lock of all changes of the catalog, at the moment
//! when the commit becomes visible.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::MutexGuard;
use quire_catalog::{
    CATALOG_FORMAT, Catalog, Collection, FormatRecord, collection_key, format_key,
};
use quire_storage::{
    CommitOptions, Committed, Conflict, Interrupt, OnPublish, Space, StorageError, Txn, key_hash,
};

use crate::Store;

impl Store {
    /// Takes the lock of statements that change the catalog; its value is the next number of a collection.
    /// Its owner may be in a commit that waits for the disk, so the operation's interrupt ends the wait.
    pub(crate) fn begin_ddl(
        &self,
        interrupt: Option<&Interrupt>,
    ) -> Result<MutexGuard<'_, u32>, StorageError> {
        const LOOK: Duration = Duration::from_millis(20);
        loop {
            if let Some(next_id) = self.ddl.try_lock_for(LOOK) {
                return Ok(next_id);
            }
            interrupt.map_or(Ok(()), Interrupt::check)?;
        }
    }

    /// Returns the action that publishes a catalog at the moment when its commit becomes visible.
    /// So the lock of the published catalog, which every statement takes at its beginning, is not
    /// held while the commit waits for its group and for an fsync.
    pub(crate) fn publication(&self, next: Arc<Catalog>) -> OnPublish {
        let catalogs = Arc::clone(&self.catalogs);
        OnPublish(Box::new(move |committed, make_visible| {
            let mut published = catalogs.published.write();
            make_visible();
            let before = std::mem::replace(&mut *published, next);
            catalogs.past.lock().keep(before, committed.version);
        }))
    }

    /// Commits a transaction that created collections, and publishes them. `Conflict` if a
    /// collection with one of the names exists now.
    pub(crate) fn commit_created(
        &self,
        mut txn: Txn,
        created: &[Arc<Collection>],
        options: &CommitOptions,
    ) -> Result<Committed, StorageError> {
        self.engine().admit(options.interrupt.as_deref())?;
        // The catalog changes only under this lock, so the published one stays the same.
        let next_id = self.begin_ddl(options.interrupt.as_deref())?;
        let record = FormatRecord { format: CATALOG_FORMAT, next_id: *next_id };
        // The record changes only under the lock, so its conflicts need no tracking.
        let key = Bytes::copy_from_slice(&format_key());
        txn.put_entry(Space::Meta, key, record.encode().into_bytes().into())?;
        let published = self.catalog();
        let mut next = Catalog::clone(&published);
        for collection in created {
            let namespace = &collection.namespace;
            let is_taken =
                published.lookup(namespace).is_some() || published.view(namespace).is_some();
            if is_taken || next.check_db_case(namespace.db()).is_err() {
                return Err(conflict(collection));
            }
            next = next.with(Arc::clone(collection));
            // A pattern that was declared meanwhile does not know what the transaction has written.
            let bound = next.lookup(namespace);
            if bound.is_some_and(|bound| bound.patterns.readers != collection.patterns.readers) {
                return Err(conflict(collection));
            }
        }
        let next = Arc::new(next);
        txn.on_publish(self.publication(Arc::clone(&next)));
        let committed =
            txn.commit(CommitOptions { admitted: true, ..CommitOptions::buffered() })?;
        drop(next_id);
        self.observers.committed(&published, &next);
        self.make_durable(committed.version, options).map_err(StorageError::after_commit)?;
        Ok(committed)
    }
}

/// Returns the conflict of a transaction with a change of the catalog that came first.
fn conflict(collection: &Collection) -> StorageError {
    let key = Bytes::copy_from_slice(&collection_key(collection.id));
    let (space, hash) = (Space::Meta, key_hash(Space::Meta, &key));
    StorageError::Conflict(Box::new(Conflict { space, key, hash, held: false }))
}
