//! A command in a client's transaction: joining, leaving, and the labels of its errors.

use crate::frame::command::InTransaction;
use crate::frame::context::Context;
use crate::frame::service::{application_name, now_ms};
use quire_document::{DocBuf, Value};
use quire_error::{Error, ErrorClass, ErrorCode, Label, Result};
use quire_session::{Changed, RunningChange, Start, Transaction};
use quire_storage::ClusterTime;
use std::time::{Duration, Instant};

/// The interval at which a command checks whether the transactions that it waits for have ended.
pub(crate) const LOOK: Duration = Duration::from_millis(5);
/// The interval at which a statement checks whether the change of the catalog that it waits for has
/// ended.
const SHORT_LOOK: Duration = Duration::from_millis(1);
/// The parameter with the longest wait of such a statement; a negative value means no limit.
const LOCK_TIMEOUT: &str = "maxTransactionLockRequestTimeoutMillis";

impl Context<'_> {
    /// Returns true if the command belongs to a transaction of several statements.
    pub fn in_transaction(&self) -> bool {
        self.generic.transaction.autocommit == Some(false)
    }

    /// Takes the command's turn in its session's transaction; the first command begins the
    /// transaction. From here on a failure of the command aborts the transaction.
    ///
    /// # Errors
    /// The state of the transaction: 117, 225, 251, 256.
    pub fn join_transaction(&self) -> Result<()> {
        let (Some(session), Some(number)) = (&self.session, self.generic.txn_number) else {
            return Err(Error::internal("a transaction without a session"));
        };
        let mut place = self.transaction.borrow_mut();
        if place.is_none() {
            let at = self.generic.read_concern.at_cluster_time;
            let at = at.map(|time| ClusterTime(time.to_u64()));
            let starts = self.generic.transaction.start == Some(true);
            let start = starts.then(|| Start {
                now_ms: now_ms(),
                at,
                api: self.generic.api.to_doc(),
                parameters: self.transaction_parameters(number),
                client: self.client_row(),
            });
            let store = &self.service.store;
            let joined = session.join_transaction(store, number, start, &self.interrupt)?;
            *place = Some(joined);
        }
        Ok(())
    }

    /// Refuses a command whose Stable API parameters are not those of the transaction's first
    /// command. The transaction continues.
    ///
    /// # Errors
    /// 347 APIMismatchError.
    pub fn check_transaction_api(&self) -> Result<()> {
        let (Some(session), Some(number)) = (&self.session, self.generic.txn_number) else {
            return Ok(());
        };
        let used = self.generic.api.to_doc();
        match session.transaction_api(number) {
            Some(first) if first.as_bytes() != used.as_bytes() => {
                let text = format!(
                    "API parameter mismatch: {} used params {}, the transaction's first command used {}",
                    self.command.name,
                    quire_catalog::debug_doc(used.as_doc()),
                    quire_catalog::debug_doc(first.as_doc())
                );
                Err(Error::new(ErrorCode::APIMismatchError, text))
            }
            _ => Ok(()),
        }
    }

    /// Returns the field `parameters` of the transaction in `currentOp`.
    fn transaction_parameters(&self, number: i64) -> DocBuf {
        DocBuf::build(|row| {
            row.append("txnNumber", number).append("autocommit", false);
            let mut concern = row.document("readConcern");
            concern.append("level", self.read_level().name());
            if let Some(time) = self.generic.read_concern.at_cluster_time {
                concern.append("atClusterTime", time);
            }
        })
    }

    /// Returns the fields about the client in a row of `currentOp`.
    fn client_row(&self) -> DocBuf {
        DocBuf::build(|row| {
            if let Some(peer) = self.connection.remote() {
                row.append("client", peer.as_str());
            }
            if let Some(client) = self.connection.client_metadata() {
                let name = application_name(client);
                row.append_some("appName", name.map(Value::String));
                row.append("clientMetadata", client);
            }
        })
    }

    /// Returns the transaction as the unit of work of this command.
    ///
    /// # Errors
    /// Those of [`join_transaction`](Self::join_transaction).
    pub fn transaction_unit(&self) -> Result<Transaction> {
        self.join_transaction()?;
        match &*self.transaction.borrow() {
            Some(place) => place.unit(),
            None => Err(Error::internal("a transaction that was not joined")),
        }
    }

    /// Waits until no open transaction uses the namespaces that the command changes or drops. Until
    /// the result is dropped, transactions that do not use them yet wait.
    ///
    /// # Errors
    /// The error of an interrupt.
    pub fn await_transactions(&self, changed: Changed) -> Result<RunningChange<'_>> {
        let change = self.service.sessions.begin_change(changed);
        let _waiting = self.interrupt.wait_for_lock();
        while self.service.sessions.is_used(change.changed()) {
            self.pause(LOOK)?;
        }
        Ok(change)
    }

    /// Waits until a statement of the command's transaction on the collection `namespace` need not
    /// wait for a change of the catalog, for at most `maxTransactionLockRequestTimeoutMillis`.
    /// Outside a transaction it does not wait.
    ///
    /// # Errors
    /// 24 LockTimeout, which aborts the transaction; the error of an interrupt.
    pub(crate) fn wait_behind_changes(&self, namespace: &str) -> Result<()> {
        let (Some(session), Some(number)) = (&self.session, self.generic.txn_number) else {
            return Ok(());
        };
        let must_wait = || self.service.sessions.must_wait(session, number, namespace);
        if !self.in_transaction() || !must_wait() {
            return Ok(());
        }
        let limit_ms = self.service.parameters.number(LOCK_TIMEOUT);
        let limit = u64::try_from(limit_ms).ok().map(Duration::from_millis);
        let since = Instant::now();
        let _waiting = self.interrupt.wait_for_lock();
        while must_wait() {
            if limit.is_some_and(|limit| since.elapsed() >= limit) {
                self.join_transaction()?;
                let text = format!("Unable to acquire lock on '{namespace}' within {limit_ms}ms.");
                return Err(Error::new(ErrorCode::LockTimeout, text));
            }
            self.pause(SHORT_LOOK)?;
        }
        Ok(())
    }

    /// Waits for `time`, or until the operation is interrupted.
    pub(crate) fn pause(&self, time: Duration) -> Result<()> {
        let waited = self.interrupt.wait(Some(time), || false);
        waited.map(|_| ()).map_err(crate::frame::reply::from_interruption)
    }

    /// Ends the command's turn in the transaction, which used the collection `namespace`. A failed
    /// statement aborts the transaction.
    pub(crate) fn leave_transaction(&self, failed: bool, namespace: &str) {
        if let Some(place) = self.transaction.take() {
            place.note_use(namespace);
            place.note_rights(self.rights.take());
            match failed || self.statement_failed.get() {
                true => place.abort(),
                false => place.leave(),
            }
        }
    }
}

/// Adds the labels that tell a driver what it may retry after an error in a transaction: the whole
/// transaction, or the commit. `unsatisfied` says that the reply has a write concern error: then what a
/// transaction that had ended before wrote is not known to be lost, and nothing may be retried.
pub fn labelled(cx: &Context<'_>, error: Error, unsatisfied: bool) -> Error {
    let error = match error.code() {
        ErrorCode::SnapshotTooOld => {
            let text = "Read timestamp is older than the oldest available timestamp.";
            Error::new(ErrorCode::SnapshotUnavailable, text)
        }
        _ => error,
    };
    let transient = [
        ErrorCode::WriteConflict,
        ErrorCode::SnapshotUnavailable,
        ErrorCode::LockTimeout,
        ErrorCode::NoSuchTransaction,
        ErrorCode::PreparedTransactionInProgress,
    ];
    let retriable = error.code().is_a(ErrorClass::RetriableError);
    let ends = cx.command.in_transaction == InTransaction::Ends;
    if ends && retriable {
        return error.with_label(Label::RetryableWriteError);
    }
    if ends && unsatisfied && error.code() == ErrorCode::NoSuchTransaction {
        return error.without_label(Label::TransientTransactionError);
    }
    match transient.contains(&error.code()) || retriable {
        true => error.with_label(Label::TransientTransactionError),
        false => error,
    }
}
