//! What a statement needs of the unit of work that it belongs to: views to read on, a writer, and
//! the ids under which a session remembers it. Crate `session` implements it twice, for statements
//! that commit by themselves and for statements of a client's transaction.

use std::sync::Arc;

use quire_catalog::{Collection, Namespace};
use quire_collections::{Attempt, Store, Writer};
use quire_error::Result;
use quire_storage::{Committed, Interrupt};

use crate::views::OpenViews;

/// One statement or one transaction, as the statements that run in it see it.
pub trait UnitOfWork {
    /// Returns the store that is read and written.
    fn store(&self) -> &Arc<Store>;

    /// Returns the collection of that name as a statement would find it now.
    ///
    /// # Errors
    /// 166 CommandNotSupportedOnView if the name is a view's.
    fn collection(&self, namespace: &Namespace) -> Result<Option<Arc<Collection>>>;

    /// Views for a call that reads: outside a transaction a fresh one, inside it the transaction's
    /// own with its writes. Drop them before waiting for anything.
    ///
    /// # Errors
    /// What the engine answers; 239 SnapshotTooOld for a read time that is not kept any more.
    fn views(&self) -> Result<OpenViews<'_>>;

    /// The ids of the statements that run now, if a session remembers what they do; else empty.
    fn statements(&self) -> &[i32];

    /// Runs `attempt` with a writer. Outside a transaction its writes are committed, and the
    /// attempt runs again after a conflict. Inside a transaction the writes stay uncommitted and no
    /// commit is answered; a conflict is 112 WriteConflict at once.
    ///
    /// # Errors
    /// What `attempt` and the commit answer; what the interrupt says. Nothing is written then.
    fn write(
        &mut self,
        interrupt: &Arc<Interrupt>,
        attempt: &mut dyn FnMut(&mut Writer) -> Attempt<()>,
    ) -> Result<Option<Committed>>;

    /// Makes the collection of a write that implies it, if it does not exist. `interrupt` ends
    /// its waits.
    ///
    /// # Errors
    /// What creating a collection answers.
    fn ensure_collection(
        &mut self,
        namespace: &Namespace,
        interrupt: &Arc<Interrupt>,
    ) -> Result<()>;
}

impl dyn UnitOfWork + '_ {
    /// [`write`](UnitOfWork::write) with an answer of the last attempt.
    ///
    /// # Errors
    /// As [`write`](UnitOfWork::write).
    pub fn write_with<T>(
        &mut self,
        interrupt: &Arc<Interrupt>,
        mut attempt: impl FnMut(&mut Writer) -> Attempt<T>,
    ) -> Result<(T, Option<Committed>)> {
        let mut answer = None;
        let committed = self.write(interrupt, &mut |writer| {
            answer = Some(attempt(writer)?);
            Ok(())
        })?;
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

    /// Statements whose writes are buffered commits of their own.
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

        fn ensure_collection(
            &mut self,
            namespace: &Namespace,
            interrupt: &Arc<Interrupt>,
        ) -> Result<()> {
            self.0.ensure_collection_for(namespace, Some(interrupt)).map(|_| ())
        }
    }
}
