//! A unit of work inside a client's transaction: one snapshot with the transaction's own writes,
//! which nobody else sees before the commit.

use std::sync::Arc;

use quire_catalog::Namespace;
use quire_collections::{Attempt, Store, Writer, WriterMode};
use quire_error::{Error, Result};
use quire_executor::{OpenViews, UnitOfWork};
use quire_storage::{CommitOptions, Committed, Interrupt};

/// A client's transaction. Dropping it undoes its writes.
pub struct Transaction {
    writer: Box<Writer>,
}

impl Transaction {
    /// Begins on everything committed so far.
    ///
    /// # Errors
    /// What the engine answers.
    pub fn begin(store: &Arc<Store>) -> Result<Self> {
        Ok(Transaction { writer: Box::new(store.writer(WriterMode::Transaction)?) })
    }

    /// Commits all writes together.
    ///
    /// # Errors
    /// What the engine answers.
    pub fn commit(self, options: CommitOptions) -> Result<Committed> {
        self.writer.commit(options).map_err(Error::from)
    }
}

impl UnitOfWork for Transaction {
    fn store(&self) -> &Arc<Store> {
        self.writer.store()
    }

    fn views(&self) -> Result<OpenViews<'_>> {
        Ok(OpenViews::Pinned(self.writer.view()))
    }

    fn statements(&self) -> &[i32] {
        &[]
    }

    fn write(
        &mut self,
        _: &Arc<Interrupt>,
        attempt: &mut dyn FnMut(&mut Writer) -> Attempt<()>,
    ) -> Result<Option<Committed>> {
        self.writer.statement(attempt).map(|()| None)
    }

    fn ensure_collection(&mut self, namespace: &Namespace, _: &Arc<Interrupt>) -> Result<()> {
        match self.writer.catalog().lookup(namespace) {
            Some(_) => Ok(()),
            None => Err(Error::not_built("creating a collection within a transaction")),
        }
    }
}
