//! `start_transaction`, `commit_transaction`, `abort_transaction`.

use crate::ClientSession;
use crate::error::Result;
use crate::options::{ReadConcern, WriteConcern};
use crate::transaction::{End, TransactionOptions};
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// How long [`StartTransaction::and_run`] retries a transaction: 120 seconds, as in every driver.
const TRY_FOR: Duration = Duration::from_secs(120);
/// The upper bound of the pause before the second attempt. It grows by half with each attempt; the
/// pause is a random share of it.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// The largest upper bound of a pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

const TRANSIENT: &str = "TransientTransactionError";
const UNKNOWN_RESULT: &str = "UnknownTransactionCommitResult";

impl ClientSession {
    /// Begins a transaction: the session's operations belong to it until it is committed or
    /// aborted. They read one snapshot of the database and their own writes. Other sessions see the
    /// writes after the commit.
    ///
    /// ```
    /// use quire::bson::{Document, doc};
    /// # fn main() -> quire::error::Result<()> {
    /// let client = quire::Client::in_memory()?;
    /// let accounts = client.database("bank").collection::<Document>("accounts");
    /// accounts.insert_many([doc! { "_id": "ada", "sum": 10 }, doc! { "_id": "bob", "sum": 0 }]).run()?;
    /// let mut session = client.start_session().run()?;
    /// session.start_transaction().and_run(|session| {
    ///     let give = doc! { "$inc": { "sum": -5 } };
    ///     accounts.update_one(doc! { "_id": "ada" }, give).session(&*session).run()?;
    ///     let take = doc! { "$inc": { "sum": 5 } };
    ///     accounts.update_one(doc! { "_id": "bob" }, take).session(&*session).run()
    /// })?;
    /// assert_eq!(accounts.count_documents(doc! { "sum": 5 }).run()?, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn start_transaction(&mut self) -> StartTransaction<'_> {
        StartTransaction { session: self, options: TransactionOptions::default() }
    }

    /// Commits the transaction. May be called again after an error with the label
    /// `UnknownTransactionCommitResult`.
    pub fn commit_transaction(&mut self) -> CommitTransaction<'_> {
        CommitTransaction { session: self }
    }

    /// Aborts the transaction and discards its writes.
    pub fn abort_transaction(&mut self) -> AbortTransaction<'_> {
        AbortTransaction { session: self }
    }
}

/// Begins a transaction; see [`ClientSession::start_transaction`].
#[must_use = "an action does nothing before `run`"]
pub struct StartTransaction<'a> {
    session: &'a mut ClientSession,
    options: TransactionOptions,
}

impl StartTransaction<'_> {
    /// Sets the read concern: `local`, `majority` or `snapshot`. The transaction reads one snapshot
    /// with each.
    pub fn read_concern(mut self, value: ReadConcern) -> Self {
        self.options.read_concern = Some(value);
        self
    }

    /// Sets how durable the commit must be.
    pub fn write_concern(mut self, value: WriteConcern) -> Self {
        self.options.write_concern = Some(value);
        self
    }

    /// Sets the time limit of the commit.
    pub fn max_commit_time(mut self, value: Duration) -> Self {
        self.options.max_commit_time = Some(value);
        self
    }

    /// Begins the transaction.
    ///
    /// # Errors
    /// A transaction is in progress; the session is a snapshot session.
    pub fn run(self) -> Result<()> {
        self.session.begin(self.options)
    }

    /// Begins the transaction, calls `body`, and commits. Repeats all of this while a conflict with
    /// another transaction or another transient error prevents it, for at most 120 seconds. If
    /// `body` fails with another error, or has ended the transaction itself, its result is
    /// returned.
    ///
    /// `body` may run several times, so its effects outside of the database must allow that. It
    /// must return the errors of its operations.
    ///
    /// # Errors
    /// Those of [`run`](Self::run), of `body` and of the commit.
    pub fn and_run<T>(self, mut body: impl FnMut(&mut ClientSession) -> Result<T>) -> Result<T> {
        let Self { session, options } = self;
        let since = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            session.begin(options.clone())?;
            let result = body(session);
            let error = match result {
                Ok(_) if !session.is_in_transaction() => return result,
                Ok(value) => match commit(session, since) {
                    Ok(()) => return Ok(value),
                    Err(error) => error,
                },
                Err(error) => {
                    if session.is_in_transaction() {
                        // The failed transaction may have been aborted already.
                        let _ = session.abort_transaction().run();
                    }
                    error
                }
            };
            if !error.contains_label(TRANSIENT) || since.elapsed() + pause >= TRY_FOR {
                return Err(error);
            }
            std::thread::sleep(pause.mul_f64(share()));
            pause = pause.mul_f64(1.5).min(LONGEST_PAUSE);
        }
    }
}

/// Commits, and repeats the commit while its outcome is unknown and less than [`TRY_FOR`] has
/// passed since `since`.
fn commit(session: &mut ClientSession, since: Instant) -> Result<()> {
    /// MaxTimeMSExpired: the caller's time limit of the commit has passed.
    const EXPIRED: i32 = 50;
    loop {
        match session.commit_transaction().run() {
            Err(error)
                if error.contains_label(UNKNOWN_RESULT)
                    && error.code() != Some(EXPIRED)
                    && since.elapsed() < TRY_FOR => {}
            result => return result,
        }
    }
}

/// Returns a random number from 0 to 1. Two transactions that conflict pause for different times,
/// so that they do not conflict again.
fn share() -> f64 {
    RandomState::new().hash_one(()) as f64 / u64::MAX as f64
}

/// Commits a transaction; see [`ClientSession::commit_transaction`].
#[must_use = "an action does nothing before `run`"]
pub struct CommitTransaction<'a> {
    session: &'a mut ClientSession,
}

impl CommitTransaction<'_> {
    /// Commits the transaction.
    ///
    /// # Errors
    /// There is no transaction, or it was aborted; the errors of the database: 112 WriteConflict
    /// and 251 NoSuchTransaction have the label `TransientTransactionError`.
    pub fn run(self) -> Result<()> {
        self.session.end(End::Commit)
    }
}

/// Aborts a transaction; see [`ClientSession::abort_transaction`].
#[must_use = "an action does nothing before `run`"]
pub struct AbortTransaction<'a> {
    session: &'a mut ClientSession,
}

impl AbortTransaction<'_> {
    /// Aborts the transaction. Errors of the database are ignored: an open transaction that it does
    /// not know has been aborted.
    ///
    /// # Errors
    /// There is no transaction, or it was committed or aborted before.
    pub fn run(self) -> Result<()> {
        match self.session.end(End::Abort) {
            Err(error)
                if matches!(*error.kind, crate::error::ErrorKind::InvalidArgument { .. }) =>
            {
                Err(error)
            }
            _ => Ok(()),
        }
    }
}
