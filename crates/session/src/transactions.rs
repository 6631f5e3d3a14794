//! The transaction of a session: none, in progress, committed or aborted. It belongs to the newest
//! transaction number of the session. The commit also stores its outcome in the session's record,
//! so that a repeated commit gets the same reply after a restart.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use quire_collections::{Effect, Keep, Store, Writer, WriterMode, is_in_doubt};
use quire_document::DocBuf;
use quire_error::{Error, ErrorCode, Label, Result};
use quire_storage::{ClusterTime, CommitOptions, Interrupt};

use crate::catalog_changes::{Changed, RunningChange};
use crate::held_transaction::{Held, NeededRight, Start, State};
use crate::sessions::{Session, Turn};
use crate::transaction::Transaction;
use crate::{SessionId, Sessions};

/// An open transaction, as `currentOp` shows it.
#[derive(Debug, Clone)]
pub struct OpenTransaction {
    /// The session that the transaction belongs to.
    pub session: SessionId,
    /// The parameters with which it began.
    pub start: Start,
    /// The time of its snapshot; `None` while a command runs in it.
    pub read_time: Option<ClusterTime>,
    /// How long it has been open.
    pub open: Duration,
    /// The total time in which commands ran in it.
    pub active: Duration,
    /// True if a command runs in it now.
    pub is_active: bool,
}

/// A command's use of its session's transaction. Until it is dropped, no other command of the
/// session runs in a transaction or writes with a transaction number.
pub struct TransactionTurn {
    /// `None` after the command has ended.
    turn: Option<Turn>,
    session: Arc<Session>,
    number: i64,
}

impl Session {
    /// Takes the session's transaction with this number for a command; `start` begins a new one.
    /// Waits while another command of the session has its turn.
    ///
    /// # Errors
    /// 239 SnapshotTooOld for a time that is no longer kept, 225 TransactionTooOld, 117
    /// ConflictingOperationInProgress for a number that is in use, 251 NoSuchTransaction, 256
    /// TransactionCommitted; the error of an interrupted wait.
    pub fn join_transaction(
        self: &Arc<Self>,
        store: &Arc<Store>,
        number: i64,
        start: Option<Start>,
        interrupt: &Arc<Interrupt>,
    ) -> Result<TransactionTurn> {
        let mut turn = self.take_number(store, number, interrupt)?;
        let Some(start) = start else {
            return match self.state_of(number, &mut turn) {
                Ok(Known::InProgress) => Ok(self.turn(turn, number)),
                Ok(Known::Committed) => {
                    turn.keep();
                    let text =
                        format!("Transaction with {{ txnNumber: {number} }} has been committed.");
                    Err(Error::new(ErrorCode::TransactionCommitted, text))
                }
                Err(error) => {
                    turn.keep();
                    Err(error)
                }
            };
        };
        if turn.newest() == Some(number) {
            turn.keep();
            let text = "Only servers in a sharded cluster can start a new transaction at the active transaction number";
            return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
        }
        let mode = start.at.map_or(WriterMode::Transaction, WriterMode::TransactionAt);
        let writer = match store.writer(mode) {
            Ok(mut writer) => {
                if store.logs_changes() {
                    writer.set_transaction(number, self.id.to_doc());
                }
                Some(Box::new(writer))
            }
            Err(error) => {
                turn.keep();
                return Err(error);
            }
        };
        let begun = Box::new(Held {
            number,
            state: State::InProgress(writer),
            started: Instant::now(),
            joined: None,
            active: Duration::ZERO,
            used: Vec::new(),
            rights: Vec::new(),
            start,
        });
        self.counters.started.fetch_add(1, Ordering::Relaxed);
        let before = turn.begin(number, begun.start.now_ms, Some(begun));
        self.note_aborted(before);
        Ok(self.turn(turn, number))
    }

    /// Commits the transaction, and returns the time of the commit; `None` if it was committed before.
    /// The same commit stores the outcome in the session's record.
    ///
    /// # Errors
    /// Those of [`join_transaction`](Self::join_transaction), 112 WriteConflict, and those of the
    /// engine. After an error the transaction is aborted, unless the outcome is unknown.
    pub fn commit_transaction(
        self: &Arc<Self>,
        store: &Arc<Store>,
        number: i64,
        options: CommitOptions,
        interrupt: &Arc<Interrupt>,
    ) -> Result<Option<ClusterTime>> {
        let mut turn = self.take_number(store, number, interrupt)?;
        match self.state_of(number, &mut turn) {
            Ok(Known::InProgress) => {}
            Ok(Known::Committed) => {
                turn.keep();
                // The first commit may have asked for less durability.
                let waited = match options.durability {
                    quire_storage::Durability::Synced => {
                        store.engine().barrier(store.engine().version())
                    }
                    quire_storage::Durability::Buffered => Ok(()),
                };
                return waited.map(|()| None).map_err(quire_collections::from_storage);
            }
            Err(error) => {
                turn.keep();
                return Err(error);
            }
        }
        let Some(writer) = self.take_writer(number) else {
            turn.keep();
            return Err(aborted(number));
        };
        turn.log().begin(number, store.clock().now_ms() as i64);
        match commit(*writer, &mut turn, options) {
            Ok(time) => {
                self.end_transaction(number, State::Committed);
                self.counters.committed.fetch_add(1, Ordering::Relaxed);
                turn.keep();
                Ok(Some(time))
            }
            // The store has the outcome; a repeated commit reads it there.
            Err(error) if is_in_doubt(&error) => {
                self.numbered.lock().transaction = None;
                Err(error)
            }
            Err(error) => {
                self.abort_open(Some(number));
                turn.keep();
                Err(error)
            }
        }
    }

    /// Aborts the transaction at the request of its client.
    ///
    /// # Errors
    /// Those of [`join_transaction`](Self::join_transaction).
    pub fn abort_transaction(
        self: &Arc<Self>,
        store: &Arc<Store>,
        number: i64,
        interrupt: &Arc<Interrupt>,
    ) -> Result<()> {
        let joined = self.join_transaction(store, number, None, interrupt)?;
        joined.abort();
        Ok(())
    }

    /// Aborts the session's open transaction, or does nothing if `number` is given and is not its
    /// number. Its writes are discarded and its locks released when the command that runs in it
    /// ends.
    pub fn abort_open(&self, number: Option<i64>) {
        let ended = {
            let mut numbered = self.numbered.lock();
            match &mut numbered.transaction {
                Some(held) if number.is_none_or(|number| number == held.number) => match held.state
                {
                    State::InProgress(_) => {
                        Some(std::mem::replace(&mut held.state, State::Aborted))
                    }
                    State::Committed | State::Aborted => None,
                },
                _ => None,
            }
        };
        if ended.is_some() {
            self.counters.aborted.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns true if the session's open transaction has used a namespace of `changed`; false if
    /// `number` is given and is not its number.
    fn uses(&self, number: Option<i64>, changed: &Changed) -> bool {
        let numbered = self.numbered.lock();
        let open = numbered.transaction.as_ref().filter(|held| {
            matches!(held.state, State::InProgress(_))
                && number.is_none_or(|number| number == held.number)
        });
        open.is_some_and(|held| held.used.iter().any(|used| changed.covers(used)))
    }

    /// Returns the number and the age of the open transaction; `None` if none is open.
    pub fn open_transaction(&self) -> Option<(i64, Duration)> {
        let numbered = self.numbered.lock();
        let held = numbered.transaction.as_ref()?;
        matches!(held.state, State::InProgress(_)).then(|| (held.number, held.started.elapsed()))
    }

    /// Returns the number of the open transaction if it has written, or if a command runs in it now.
    fn writing_transaction(&self) -> Option<i64> {
        let numbered = self.numbered.lock();
        let held = numbered.transaction.as_ref()?;
        let writes = match &held.state {
            State::InProgress(Some(writer)) => !writer.is_empty(),
            State::InProgress(None) => held.joined.is_some(),
            State::Committed | State::Aborted => false,
        };
        writes.then_some(held.number)
    }

    /// Returns true if a command runs in the session's newest transaction.
    fn is_active(&self) -> bool {
        self.numbered.lock().transaction.as_ref().is_some_and(|held| held.joined.is_some())
    }

    /// Returns the rights that the statements of the open transaction with this number needed; empty
    /// if it is not open.
    pub fn transaction_rights(&self, number: i64) -> Vec<NeededRight> {
        let numbered = self.numbered.lock();
        let open = numbered
            .transaction
            .as_ref()
            .filter(|held| held.number == number && matches!(held.state, State::InProgress(_)));
        open.map(|held| held.rights.clone()).unwrap_or_default()
    }

    /// Returns the Stable API parameters with which the transaction of this number began; `None` if
    /// the session no longer knows the transaction.
    pub fn transaction_api(&self, number: i64) -> Option<DocBuf> {
        let numbered = self.numbered.lock();
        let held = numbered.transaction.as_ref().filter(|held| held.number == number)?;
        Some(held.start.api.clone())
    }

    /// Returns a description of the open transaction; `None` if none is open.
    fn describe_open(&self) -> Option<OpenTransaction> {
        let numbered = self.numbered.lock();
        let held = numbered.transaction.as_ref()?;
        let State::InProgress(writer) = &held.state else { return None };
        let running = held.joined.map(|since| since.elapsed());
        Some(OpenTransaction {
            session: self.id,
            start: held.start.clone(),
            read_time: writer.as_ref().map(|writer| writer.view().cluster_time()),
            open: held.started.elapsed(),
            active: held.active + running.unwrap_or_default(),
            is_active: running.is_some(),
        })
    }

    /// Stores the writer again after a command; drops it if the transaction was aborted meanwhile.
    pub(crate) fn give_back(&self, number: i64, writer: Box<Writer>) {
        let mut numbered = self.numbered.lock();
        if let Some(held) = &mut numbered.transaction
            && held.number == number
            && let State::InProgress(slot) = &mut held.state
        {
            *slot = Some(writer);
            return;
        }
        drop(numbered);
        drop(writer);
    }

    fn turn(self: &Arc<Self>, turn: Turn, number: i64) -> TransactionTurn {
        if let Some(held) = &mut self.numbered.lock().transaction {
            held.joined = Some(Instant::now());
        }
        TransactionTurn { turn: Some(turn), session: Arc::clone(self), number }
    }

    fn take_number(
        self: &Arc<Self>,
        store: &Arc<Store>,
        number: i64,
        interrupt: &Arc<Interrupt>,
    ) -> Result<Turn> {
        let mut turn = self.take(store, interrupt)?;
        if let Some(newest) = turn.newest().filter(|newest| number < *newest) {
            let is_transaction = turn.is_of_transaction();
            turn.keep();
            return Err(too_old(&self.id, number, newest, is_transaction));
        }
        Ok(turn)
    }

    fn state_of(&self, number: i64, turn: &mut Turn) -> Result<Known> {
        let numbered = self.numbered.lock();
        if let Some(held) = numbered.transaction.as_ref().filter(|held| held.number == number) {
            return match held.state {
                State::InProgress(_) => Ok(Known::InProgress),
                State::Committed => Ok(Known::Committed),
                State::Aborted => Err(aborted(number)),
            };
        }
        drop(numbered);
        if turn.log().is_transaction() && turn.log().number() == Some(number) {
            return Ok(Known::Committed);
        }
        let active = turn.newest().unwrap_or(-1);
        let text = format!(
            "Given transaction number {number} does not match any in-progress transactions. The active transaction number is {active}"
        );
        Err(no_such(text))
    }

    fn take_writer(&self, number: i64) -> Option<Box<Writer>> {
        let mut numbered = self.numbered.lock();
        let held = numbered.transaction.as_mut().filter(|held| held.number == number)?;
        match &mut held.state {
            State::InProgress(writer) => writer.take(),
            State::Committed | State::Aborted => None,
        }
    }

    fn end_transaction(&self, number: i64, state: State) {
        let mut numbered = self.numbered.lock();
        if let Some(held) = numbered.transaction.as_mut().filter(|held| held.number == number) {
            held.state = state;
        }
    }

    fn note_aborted(&self, before: Option<Box<Held>>) {
        if before.is_some_and(|held| matches!(held.state, State::InProgress(_))) {
            self.counters.aborted.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The known state of the transaction with some number.
enum Known {
    InProgress,
    Committed,
}

impl TransactionTurn {
    /// Returns the number of the transaction.
    pub fn number(&self) -> i64 {
        self.number
    }

    /// Takes the transaction as a unit of work. Dropping the unit returns it.
    ///
    /// # Errors
    /// 251 NoSuchTransaction if the transaction was aborted meanwhile.
    pub fn unit(&self) -> Result<Transaction> {
        let writer = self.session.take_writer(self.number);
        let writer = writer.ok_or_else(|| aborted(self.number))?;
        Ok(Transaction::new(&self.session, self.number, writer))
    }

    /// Notes that the transaction uses the collection with this full name, so that a change of the
    /// collection waits for the transaction.
    pub fn note_use(&self, namespace: &str) {
        let mut numbered = self.session.numbered.lock();
        if let Some(held) = &mut numbered.transaction
            && held.number == self.number
            && !held.used.iter().any(|used| used == namespace)
        {
            held.used.push(namespace.to_owned());
        }
    }

    /// Notes the rights that the command needed, so that the commit can check them again.
    pub fn note_rights(&self, rights: Vec<NeededRight>) {
        let mut numbered = self.session.numbered.lock();
        if let Some(held) = &mut numbered.transaction
            && held.number == self.number
        {
            for right in rights {
                if !held.rights.contains(&right) {
                    held.rights.push(right);
                }
            }
        }
    }

    /// Ends the command and leaves the transaction open.
    pub fn leave(mut self) {
        self.note_left();
        if let Some(turn) = self.turn.take() {
            turn.keep();
        }
    }

    /// Ends the command and aborts the transaction.
    pub fn abort(mut self) {
        self.session.abort_open(Some(self.number));
        if let Some(turn) = self.turn.take() {
            turn.keep();
        }
    }

    fn note_left(&self) {
        if let Some(held) = &mut self.session.numbered.lock().transaction
            && held.number == self.number
            && let Some(since) = held.joined.take()
        {
            held.active += since.elapsed();
        }
    }
}

impl Drop for TransactionTurn {
    fn drop(&mut self) {
        // The command panicked and may have written a part of a statement.
        if self.turn.is_some() {
            self.session.abort_open(Some(self.number));
        }
    }
}

impl Sessions {
    /// Returns all open transactions, the one that has been open longest first.
    pub fn list_transactions(&self) -> Vec<OpenTransaction> {
        let mut open = Vec::new();
        self.each(&mut |session| open.extend(session.describe_open()));
        open.sort_by_key(|transaction| std::cmp::Reverse(transaction.open));
        open
    }

    /// Aborts the open transactions of the sessions for which `which` returns true.
    pub fn abort_transactions(&self, which: &dyn Fn(&SessionId) -> bool) {
        self.each(&mut |session| {
            if which(&session.id) {
                session.abort_open(None);
            }
        });
    }

    /// Aborts the transactions that have been open for `limit`. Returns the sessions in whose
    /// transaction a command runs now: that transaction keeps its locks until the command ends.
    pub fn abort_expired(&self, limit: Duration) -> Vec<SessionId> {
        let mut active = Vec::new();
        self.each(&mut |session| {
            if let Some((number, _)) = session.open_transaction().filter(|(_, age)| *age >= limit) {
                session.abort_open(Some(number));
                if session.is_active() {
                    active.push(session.id);
                }
            }
        });
        active
    }

    /// Registers a change of the catalog. Until the returned value is dropped, statements of
    /// transactions that have not used the changed namespaces wait
    /// ([`must_wait`](Self::must_wait)).
    pub fn begin_change(&self, changed: Changed) -> RunningChange<'_> {
        self.changes.begin(changed)
    }

    /// Returns true if a statement of the session's transaction `number` on this collection must
    /// wait for a change of the catalog.
    pub fn must_wait(&self, session: &Session, number: i64, namespace: &str) -> bool {
        self.changes.is_blocked(namespace, |changed| session.uses(Some(number), changed))
    }

    /// Returns true if an open transaction has used a namespace of `changed`.
    pub fn is_used(&self, changed: &Changed) -> bool {
        let mut found = false;
        self.each(&mut |session| found |= session.uses(None, changed));
        found
    }

    /// Returns the open transactions that have written, or in which a command runs now.
    pub fn writing_transactions(&self) -> Vec<(SessionId, i64)> {
        let mut found = Vec::new();
        self.each(&mut |session| {
            found.extend(session.writing_transaction().map(|number| (session.id, number)));
        });
        found
    }

    /// Returns the number of open transactions.
    pub fn open_transactions(&self) -> usize {
        let mut open = 0;
        self.each(&mut |session| open += usize::from(session.open_transaction().is_some()));
        open
    }
}

/// Commits the writer together with the session's record of the transaction.
fn commit(mut writer: Writer, turn: &mut Turn, options: CommitOptions) -> Result<ClusterTime> {
    if writer.is_empty() {
        // The snapshot that it read must be as durable as the client asks.
        return writer.commit(options).map(|done| done.cluster_time).map_err(Error::from);
    }
    writer.set_retry_log(turn.log());
    writer.remember(0, Effect::Commit, Keep::Nothing);
    let statements = writer.seal_retry().map_err(Error::from)?;
    let committed = writer.commit(options).map_err(Error::from)?;
    turn.log().committed_transaction(&statements);
    Ok(committed.cluster_time)
}

fn aborted(number: i64) -> Error {
    no_such(format!("Transaction with {{ txnNumber: {number} }} has been aborted."))
}

fn no_such(text: String) -> Error {
    Error::new(ErrorCode::NoSuchTransaction, text).with_label(Label::TransientTransactionError)
}

fn too_old(id: &SessionId, number: i64, newest: i64, is_transaction: bool) -> Error {
    let what = if is_transaction { "transaction" } else { "retryable write" };
    let text = format!(
        "Cannot start transaction {number} on session {id} because a newer {what} with txnNumber {newest} has already started on this session."
    );
    Error::new(ErrorCode::TransactionTooOld, text)
}
