//! A unit of work inside a client's transaction: one snapshot plus the transaction's own writes,
//! which no other client sees before the commit. A command takes it from its session and returns it
//! by dropping it.

use std::sync::Arc;

use quire_catalog::{Collection, CollectionOptions, Namespace};
use quire_collections::{Attempt, BuiltIndexes, CreateIndexes, LineId, Store, WritePolicy, Writer};
use quire_error::{Error, ErrorCode, Result};
use quire_executor::{OpenViews, UnitOfWork};
use quire_storage::{Committed, Interrupt};

use crate::Session;

/// A client's transaction while one command uses it.
pub struct Transaction {
    session: Arc<Session>,
    number: i64,
    store: Arc<Store>,
    /// `None` only during the drop.
    writer: Option<Box<Writer>>,
}

impl Transaction {
    pub(crate) fn new(session: &Arc<Session>, number: i64, writer: Box<Writer>) -> Self {
        let store = Arc::clone(writer.store());
        Transaction { session: Arc::clone(session), number, store, writer: Some(writer) }
    }

    /// Sets the policy of the writes that follow.
    ///
    /// # Errors
    /// Only internal errors.
    pub fn set_policy(&mut self, policy: WritePolicy) -> Result<()> {
        self.writer_mut()?.set_policy(policy);
        Ok(())
    }

    /// Creates a collection, which other clients see after the commit.
    ///
    /// # Errors
    /// Those of [`Writer::create_collection`].
    pub fn create_collection(
        &mut self,
        namespace: &Namespace,
        options: CollectionOptions,
    ) -> Result<()> {
        self.writer_mut()?.create_collection(namespace, options).map(|_| ())
    }

    /// Creates indexes on a collection that is new in the transaction.
    ///
    /// # Errors
    /// Those of [`Writer::create_indexes`].
    pub fn create_indexes(
        &mut self,
        request: &CreateIndexes,
        interrupt: &Interrupt,
    ) -> Result<BuiltIndexes> {
        self.writer_mut()?.create_indexes(request, interrupt)
    }

    fn writer(&self) -> Result<&Writer> {
        self.writer.as_deref().ok_or_else(no_writer)
    }

    fn writer_mut(&mut self) -> Result<&mut Writer> {
        self.writer.as_deref_mut().ok_or_else(no_writer)
    }
}

/// Refuses a write to a time-series collection, as MongoDB does.
fn refuse_series(collection: &Collection) -> Result<()> {
    if !collection.is_time_series() {
        return Ok(());
    }
    let text = format!(
        "Cannot write to a time-series collection in a multi-document transaction: {}",
        collection.namespace
    );
    Err(Error::new(ErrorCode::OperationNotSupportedInTransaction, text))
}

/// Refuses a write to a capped collection: two transactions that insert could not both commit.
fn refuse_capped(collection: &Collection) -> Result<()> {
    let namespace = &collection.namespace;
    if collection.options.capped().is_none() {
        return Ok(());
    }
    let text = format!(
        "Collection '{namespace}' is a capped collection. Writes in transactions are not allowed on capped collections."
    );
    Err(Error::new(ErrorCode::OperationNotSupportedInTransaction, text))
}

fn no_writer() -> Error {
    Error::internal("a transaction without its writer")
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            self.session.give_back(self.number, writer);
        }
    }
}

impl UnitOfWork for Transaction {
    fn store(&self) -> &Arc<Store> {
        &self.store
    }

    fn collection(&self, namespace: &Namespace) -> Result<Option<Arc<Collection>>> {
        let found = self.writer()?.catalog().writable(namespace)?;
        if let Some(found) = &found {
            refuse_series(found)?;
            refuse_capped(found)?;
        }
        Ok(found)
    }

    fn views(&self) -> Result<OpenViews<'_>> {
        Ok(OpenViews::Pinned(self.writer()?.view()))
    }

    fn statements(&self) -> &[i32] {
        &[]
    }

    fn write(
        &mut self,
        _: &Arc<Interrupt>,
        attempt: &mut dyn FnMut(&mut Writer) -> Attempt<()>,
    ) -> Result<Option<Committed>> {
        self.writer_mut()?.statement(attempt).map(|()| None)
    }

    /// The transaction commits by itself.
    fn write_in_line(
        &mut self,
        _: &LineId,
        interrupt: &Arc<Interrupt>,
        attempt: &mut dyn FnMut(&mut Writer) -> Attempt<()>,
    ) -> Result<Option<Committed>> {
        self.write(interrupt, attempt)
    }

    fn admit_inserts(&self, namespace: &Namespace) -> Result<()> {
        let found = self.writer()?.catalog().lookup(namespace);
        found.map_or(Ok(()), |found| refuse_series(found))
    }

    fn ensure_collection(
        &mut self,
        namespace: &Namespace,
        _: &Arc<Interrupt>,
        wanted: &dyn Fn(&Store) -> bool,
    ) -> Result<()> {
        let writer = self.writer_mut()?;
        if let Some(found) = writer.catalog().lookup(namespace) {
            return refuse_capped(found);
        }
        if !wanted(writer.store()) {
            return Ok(());
        }
        writer.create_collection(namespace, CollectionOptions::default()).map(|_| ())
    }
}
