//! The commit of a statement that changes the catalog: it writes the records and publishes the
//! catalog that they describe.

use std::sync::Arc;

use quire_catalog::{CATALOG_FORMAT, Catalog, FormatRecord, format_key};
use quire_error::Result;
use quire_storage::{CommitOptions, Interrupt, StorageError};

use crate::failure::{Attempt, Failure};
use crate::meta::put_meta;
use crate::write::Attempts;
use crate::{Store, Writer, WriterMode};

impl Store {
    /// Runs one DDL statement. `change` writes records with the writer and returns the next
    /// catalog, or `None` to leave everything as it is. The commit publishes the catalog. After a
    /// conflict `change` is called again; if a transaction holds the key, after the end of that
    /// transaction.
    ///
    /// # Errors
    /// The errors of `change` and of the commit.
    pub(crate) fn change_catalog<T>(
        self: &Arc<Self>,
        options: &CommitOptions,
        mut change: impl FnMut(&mut Writer, &Arc<Catalog>, &mut u32) -> Result<(Option<Catalog>, T)>,
    ) -> Result<T> {
        let interrupt = options.interrupt.clone().unwrap_or_else(Interrupt::new);
        let mut attempts = Attempts::new(self, &interrupt);
        loop {
            match self.try_change(&attempts, options, &mut change) {
                Ok(answer) => return Ok(answer),
                Err(failure) => attempts.wait_after(failure)?,
            }
        }
    }

    fn try_change<T>(
        self: &Arc<Self>,
        attempts: &Attempts<'_>,
        options: &CommitOptions,
        change: &mut impl FnMut(&mut Writer, &Arc<Catalog>, &mut u32) -> Result<(Option<Catalog>, T)>,
    ) -> Attempt<T> {
        let turn = attempts.begin()?;
        self.engine().admit(options.interrupt.as_deref())?;
        // Other statements can run between two attempts, also a statement of a transaction that
        // holds a key.
        let mut next_id = self.begin_ddl(options.interrupt.as_deref())?;
        let mut writer = self.writer(WriterMode::Statement)?;
        writer.set_turn(turn);
        let before = Arc::clone(writer.catalog());
        let mut next = *next_id;
        let (after, answer) = match change(&mut writer, &before, &mut next) {
            Ok((Some(after), answer)) => (Arc::new(after), answer),
            unchanged => {
                drop(next_id);
                // The result, also an error, depends on commits of other statements.
                self.make_durable(writer.view().snapshot().version(), options)?;
                return unchanged.map(|(_, answer)| answer).map_err(Failure::from);
            }
        };
        if next != *next_id {
            let record = FormatRecord { format: CATALOG_FORMAT, next_id: next };
            put_meta(writer.txn_mut(), &format_key(), record.encode())?;
        }
        writer.set_catalog(Arc::clone(&after))?;
        writer.txn_mut().on_publish(self.publication(Arc::clone(&after)));
        let buffered = CommitOptions { admitted: true, ..CommitOptions::buffered() };
        let version = writer.commit(buffered)?.version;
        *next_id = next;
        drop(next_id);
        self.observers.committed(&before, &after);
        self.make_durable(version, options).map_err(StorageError::after_commit)?;
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use quire_catalog::Namespace;
    use quire_error::ErrorCode;

    use super::*;
    use crate::StoreOptions;

    /// Statements waited behind one that took minutes, longer than their own `maxTimeMS`.
    #[test]
    fn a_statement_that_waits_for_another_looks_at_its_deadline() {
        let engine = quire_storage::open_memory().unwrap();
        let store = Store::open(engine, StoreOptions::default()).unwrap();
        let other = store.ddl.lock();
        let interrupt = Interrupt::with_deadline(Duration::from_millis(5));
        let options = CommitOptions { interrupt: Some(interrupt), ..CommitOptions::buffered() };
        let namespace = Namespace::parse("test.t").unwrap();
        let refused = store.create_collection(&namespace, Default::default(), &options);
        assert_eq!(refused.unwrap_err().code(), ErrorCode::MaxTimeMSExpired);
        drop(other);
        assert!(
            store
                .create_collection(&namespace, Default::default(), &CommitOptions::buffered())
                .is_ok()
        );
    }
}
