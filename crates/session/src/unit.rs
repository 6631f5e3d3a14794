//! The unit of work of a command: one value that holds the views, the writer, the durability, the
//! retry record, the read time and the statement ids of one statement or of one transaction.
//! Commands read and write through it, and their cursors take their views from it.

use std::ops::Range;
use std::sync::Arc;

use quire_catalog::{Collection, CollectionOptions, Namespace};
use quire_collections::{Attempt, BuiltIndexes, CreateIndexes, LineId, Remembered, Store, Writer};
use quire_error::{Error, ErrorCode, Result};
use quire_executor::{OpenViews, UnitOfWork};
use quire_storage::{CommitOptions, Committed, Interrupt};

use crate::autocommit::{Autocommit, Finished};
use crate::transaction::Transaction;

/// The unit of work of a command.
pub enum Unit {
    /// Outside a transaction.
    Autocommit(Autocommit),
    /// Inside a client's transaction.
    Transaction(Transaction),
}

impl Unit {
    /// Returns true if the session stores the results of the statements for a retry.
    pub fn is_retryable(&self) -> bool {
        match self {
            Unit::Autocommit(unit) => unit.is_retryable(),
            Unit::Transaction(_) => false,
        }
    }

    /// Marks the statements at `places` of the command as the ones that run next.
    pub fn begin(&mut self, places: Range<usize>) {
        if let Unit::Autocommit(unit) = self {
            unit.begin(places);
        }
    }

    /// Returns the stored result of the statement at `place`; see [`Autocommit::repeated`].
    ///
    /// # Errors
    /// Those of [`Autocommit::repeated`].
    pub fn repeated(&mut self, place: usize) -> Result<Option<Remembered>> {
        match self {
            Unit::Autocommit(unit) => unit.repeated(place),
            Unit::Transaction(_) => Ok(None),
        }
    }

    /// Removes the statements that were already executed; see [`Autocommit::skip_repeated`].
    pub fn skip_repeated(&mut self) -> Option<Vec<usize>> {
        match self {
            Unit::Autocommit(unit) => unit.skip_repeated(),
            Unit::Transaction(_) => None,
        }
    }

    /// Forgets the repeated statements from `place` on: an ordered write ended there.
    pub fn forget_after(&mut self, place: usize) {
        if let Unit::Autocommit(unit) = self {
            unit.forget_after(place);
        }
    }

    /// Notes the last commit of the statements that began last. None of them failed.
    pub fn note(&mut self, committed: Option<&Committed>) {
        if let Unit::Autocommit(unit) = self {
            unit.note(committed);
        }
    }

    /// Notes the last commit of the statements that began last. Some of them may have failed.
    pub fn note_some(&mut self, committed: Option<&Committed>) {
        if let Unit::Autocommit(unit) = self {
            unit.note_some(committed);
        }
    }

    /// Ends a command that wrote. Outside a transaction it waits as [`Autocommit::finish`] does.
    ///
    /// # Errors
    /// Those of [`Autocommit::finish`].
    pub fn finish(self) -> Result<Finished> {
        match self {
            Unit::Autocommit(unit) => unit.finish(),
            Unit::Transaction(_) => Ok(Finished::default()),
        }
    }

    /// Ends a command whose only statement failed; see [`Autocommit::wait`].
    ///
    /// # Errors
    /// Those of [`Autocommit::wait`].
    pub fn wait(&self) -> Result<bool> {
        match self {
            Unit::Autocommit(unit) => unit.wait(),
            Unit::Transaction(_) => Ok(true),
        }
    }

    /// Returns the server's own collection with this name; creates it if it does not exist.
    ///
    /// # Errors
    /// Those of creating a collection; 26 NamespaceNotFound if the collection is dropped at the
    /// same time.
    pub fn own_collection(
        &mut self,
        namespace: &Namespace,
        interrupt: &Arc<Interrupt>,
    ) -> Result<Arc<Collection>> {
        self.ensure_collection(namespace, interrupt, &|_| true)?;
        self.collection(namespace)?.ok_or_else(|| {
            Error::new(ErrorCode::NamespaceNotFound, format!("{namespace} was dropped meanwhile"))
        })
    }

    /// Runs `attempt` as [`write`](UnitOfWork::write) does. Returns its result after everything it
    /// wrote or read is as durable as the unit promises.
    ///
    /// # Errors
    /// Those of [`write`](UnitOfWork::write) and [`wait`](Self::wait).
    pub fn write_durably<T>(
        &mut self,
        interrupt: &Arc<Interrupt>,
        attempt: impl FnMut(&mut Writer) -> Attempt<T>,
    ) -> Result<T> {
        let unit: &mut dyn UnitOfWork = self;
        let (answer, committed) = unit.write_with(interrupt, attempt)?;
        self.note(committed.as_ref());
        self.wait()?;
        Ok(answer)
    }

    /// Creates a collection. Inside a transaction other clients see it after the commit.
    ///
    /// # Errors
    /// Those of [`Store::create_collection`].
    pub fn create_collection(
        &mut self,
        namespace: &Namespace,
        options: CollectionOptions,
        interrupt: &Arc<Interrupt>,
    ) -> Result<()> {
        match self {
            Unit::Autocommit(unit) => unit.change_catalog(interrupt, |store, commit| {
                store.create_collection(namespace, options, commit).map(drop)
            }),
            Unit::Transaction(unit) => unit.create_collection(namespace, options),
        }
    }

    /// Creates indexes. Inside a transaction, only on a collection that is new in the transaction.
    ///
    /// # Errors
    /// Those of [`Store::create_indexes`].
    pub fn create_indexes(
        &mut self,
        request: &CreateIndexes,
        interrupt: &Arc<Interrupt>,
    ) -> Result<BuiltIndexes> {
        match self {
            Unit::Autocommit(unit) => unit.change_catalog(interrupt, |store, commit| {
                store.create_indexes(request, interrupt, commit)
            }),
            Unit::Transaction(unit) => unit.create_indexes(request, interrupt),
        }
    }

    /// Runs any other statement that changes the catalog. `statement` gets the store and the commit
    /// options.
    ///
    /// # Errors
    /// Those of `statement`; 263 OperationNotSupportedInTransaction inside a transaction.
    pub fn change_catalog<T>(
        &mut self,
        interrupt: &Arc<Interrupt>,
        statement: impl FnOnce(&Arc<Store>, &CommitOptions) -> Result<T>,
    ) -> Result<T> {
        match self {
            Unit::Autocommit(unit) => unit.change_catalog(interrupt, statement),
            Unit::Transaction(_) => {
                let text = "a transaction changes no collection or index that exists";
                Err(Error::new(ErrorCode::OperationNotSupportedInTransaction, text))
            }
        }
    }

    fn of_work(&self) -> &dyn UnitOfWork {
        match self {
            Unit::Autocommit(unit) => unit,
            Unit::Transaction(unit) => unit,
        }
    }

    fn of_work_mut(&mut self) -> &mut dyn UnitOfWork {
        match self {
            Unit::Autocommit(unit) => unit,
            Unit::Transaction(unit) => unit,
        }
    }
}

impl UnitOfWork for Unit {
    fn store(&self) -> &Arc<Store> {
        self.of_work().store()
    }

    fn collection(&self, namespace: &Namespace) -> Result<Option<Arc<Collection>>> {
        self.of_work().collection(namespace)
    }

    fn views(&self) -> Result<OpenViews<'_>> {
        self.of_work().views()
    }

    fn statements(&self) -> &[i32] {
        self.of_work().statements()
    }

    fn write(
        &mut self,
        interrupt: &Arc<Interrupt>,
        attempt: &mut dyn FnMut(&mut Writer) -> Attempt<()>,
    ) -> Result<Option<Committed>> {
        self.of_work_mut().write(interrupt, attempt)
    }

    fn write_in_line(
        &mut self,
        line: &LineId,
        interrupt: &Arc<Interrupt>,
        attempt: &mut dyn FnMut(&mut Writer) -> Attempt<()>,
    ) -> Result<Option<Committed>> {
        self.of_work_mut().write_in_line(line, interrupt, attempt)
    }

    fn admit_inserts(&self, namespace: &Namespace) -> Result<()> {
        self.of_work().admit_inserts(namespace)
    }

    fn ensure_collection(
        &mut self,
        namespace: &Namespace,
        interrupt: &Arc<Interrupt>,
        wanted: &dyn Fn(&Store) -> bool,
    ) -> Result<()> {
        self.of_work_mut().ensure_collection(namespace, interrupt, wanted)
    }
}
