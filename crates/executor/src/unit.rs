//! The part of a unit of work that a statement uses: views to read on, a writer, and the statement
//! ids for its session. Crate `session` has two implementations, for statements that commit by
//! themselves and for statements of a client's transaction.

use std::sync::Arc;

use quire_catalog::{Collection, Namespace};
use quire_collections::{Attempt, LineId, Store, Writer};
use quire_error::Result;
use quire_storage::{Committed, Interrupt};

use crate::views::OpenViews;

/// The unit of work of a statement.
pub trait UnitOfWork {
    /// Returns the store that the statement uses.
    fn store(&self) -> &Arc<Store>;

    /// Returns the collection with this name as a statement would find it now.
    ///
    /// # Errors
    /// 166 CommandNotSupportedOnView if the name is a view's.
    fn collection(&self, namespace: &Namespace) -> Result<Option<Arc<Collection>>>;

    /// Returns the views for a call that reads: a new view outside a transaction, the transaction's
    /// own view with its writes inside one. Drop them before any wait.
    ///
    /// # Errors
    /// The errors of the engine; 239 SnapshotTooOld for a read time that is no longer kept.
    fn views(&self) -> Result<OpenViews<'_>>;

    /// Returns the ids of the running statements if a session stores their results; else an empty
    /// slice.
    fn statements(&self) -> &[i32];

    /// Runs `attempt` with a writer. Outside a transaction its writes are committed, and the
    /// attempt runs again after a conflict. Inside a transaction the writes stay uncommitted and no
    /// commit is returned; a conflict is 112 WriteConflict at once.
    ///
    /// # Errors
    /// The errors of `attempt` and of the commit; the error of an interrupt. After an error nothing
    /// is written.
    fn write(
        &mut self,
        interrupt: &Arc<Interrupt>,
        attempt: &mut dyn FnMut(&mut Writer) -> Attempt<()>,
    ) -> Result<Option<Committed>>;

    /// Runs `attempt` as [`write`](Self::write) does. Outside a transaction it may share its commit with
    /// others of the same line.
    ///
    /// # Errors
    /// Those of [`write`](Self::write).
    fn write_in_line(
        &mut self,
        line: &LineId,
        interrupt: &Arc<Interrupt>,
        attempt: &mut dyn FnMut(&mut Writer) -> Attempt<()>,
    ) -> Result<Option<Committed>>;

    /// Refuses the insert of any document into a collection.
    ///
    /// # Errors
    /// 263 OperationNotSupportedInTransaction for a time-series collection, in a transaction.
    fn admit_inserts(&self, namespace: &Namespace) -> Result<()>;

    /// Creates the collection of a write, if it does not exist and `wanted` returns true. `interrupt`
    /// ends its waits.
    ///
    /// # Errors
    /// The errors of creating a collection.
    fn ensure_collection(
        &mut self,
        namespace: &Namespace,
        interrupt: &Arc<Interrupt>,
        wanted: &dyn Fn(&Store) -> bool,
    ) -> Result<()>;
}

impl dyn UnitOfWork + '_ {
    /// Runs `attempt` as [`write`](UnitOfWork::write) does, and returns the result of the last
    /// attempt.
    ///
    /// # Errors
    /// Those of [`write`](UnitOfWork::write).
    pub fn write_with<T>(
        &mut self,
        interrupt: &Arc<Interrupt>,
        attempt: impl FnMut(&mut Writer) -> Attempt<T>,
    ) -> Result<(T, Option<Committed>)> {
        self.write_with_in(None, interrupt, attempt)
    }

    /// Runs `attempt` as [`write_in_line`](UnitOfWork::write_in_line) does, if there is a line, and
    /// returns the result of the last attempt.
    ///
    /// # Errors
    /// Those of [`write`](UnitOfWork::write).
    pub fn write_with_in<T>(
        &mut self,
        line: Option<&LineId>,
        interrupt: &Arc<Interrupt>,
        mut attempt: impl FnMut(&mut Writer) -> Attempt<T>,
    ) -> Result<(T, Option<Committed>)> {
        let mut answer = None;
        let mut keep = |writer: &mut Writer| {
            answer = Some(attempt(writer)?);
            Ok(())
        };
        let committed = match line {
            None => self.write(interrupt, &mut keep)?,
            Some(line) => self.write_in_line(line, interrupt, &mut keep)?,
        };
        let answer = answer.ok_or_else(|| quire_error::Error::internal("a write did not run"))?;
        Ok((answer, committed))
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! A unit of work for the unit tests of this crate.

    use super::*;
    use crate::views::FreshViews;
    use quire_collections::WritePolicy;
    use quire_storage::CommitOptions;

    /// Commits each write of a statement, with buffered durability.
    pub(crate) struct Committing<'t>(pub &'t Arc<Store>);

    impl UnitOfWork for Committing<'_> {
        fn store(&self) -> &Arc<Store> {
            self.0
        }

        fn collection(&self, namespace: &Namespace) -> Result<Option<Arc<Collection>>> {
            self.0.catalog().writable(namespace)
        }

        fn views(&self) -> Result<OpenViews<'_>> {
            FreshViews::new(self.0).map(OpenViews::Fresh)
        }

        fn statements(&self) -> &[i32] {
            &[]
        }

        fn write(
            &mut self,
            interrupt: &Arc<Interrupt>,
            attempt: &mut dyn FnMut(&mut Writer) -> Attempt<()>,
        ) -> Result<Option<Committed>> {
            let commit = CommitOptions::buffered();
            let written =
                self.0.write_statement((&commit, WritePolicy::Client), None, interrupt, attempt);
            written.map(|((), committed)| committed)
        }

        fn write_in_line(
            &mut self,
            _: &LineId,
            interrupt: &Arc<Interrupt>,
            attempt: &mut dyn FnMut(&mut Writer) -> Attempt<()>,
        ) -> Result<Option<Committed>> {
            self.write(interrupt, attempt)
        }

        fn admit_inserts(&self, _: &Namespace) -> Result<()> {
            Ok(())
        }

        fn ensure_collection(
            &mut self,
            namespace: &Namespace,
            interrupt: &Arc<Interrupt>,
            wanted: &dyn Fn(&Store) -> bool,
        ) -> Result<()> {
            self.0.ensure_collection_for(namespace, Some(interrupt), &|| wanted(self.0)).map(|_| ())
        }
    }
}
