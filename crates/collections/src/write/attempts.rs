//! How a write runs: it is retried after a conflict if it commits by itself, and fails at once in a
//! client's transaction. [`Store::attempts`] is the only loop that retries, for writes of documents
//! and for statements that change the catalog.

use std::sync::Arc;

use quire_error::{ErrorCode, Result};
use quire_storage::{CommitOptions, Committed, Interrupt, KeyTurn, Space};

use super::{CommitOutcome, Writer, WriterMode};
use crate::failure::{Attempt, Failure};
use crate::retry::RetryLog;
use crate::{Store, WritePolicy, from_interruption, from_storage};

impl Store {
    /// Runs `attempt` for the server itself and commits its writes. After a conflict it waits in
    /// the queue of the key that conflicted, holds nothing while it waits, and tries again.
    ///
    /// # Errors
    /// The errors of `attempt` and of the commit, except conflicts; the error of an interrupt.
    pub fn write<T>(
        self: &Arc<Self>,
        options: &CommitOptions,
        interrupt: &Arc<Interrupt>,
        mut attempt: impl FnMut(&mut Writer) -> Attempt<T>,
    ) -> Result<(T, CommitOutcome)> {
        self.attempts_to_write(interrupt, |mut writer| {
            let answer = attempt(&mut writer)?;
            let committed = writer.commit(options.clone().ended_by(interrupt))?;
            Ok((answer, committed))
        })
    }

    /// Runs one statement's write for `policy` as [`write`](Self::write) does. The commit also
    /// stores the result of the statement for the session of `log`. Returns no commit if `attempt`
    /// wrote nothing.
    ///
    /// # Errors
    /// Those of [`write`](Self::write).
    pub fn write_statement<T>(
        self: &Arc<Self>,
        (options, policy): (&CommitOptions, WritePolicy),
        mut log: Option<&mut RetryLog>,
        interrupt: &Arc<Interrupt>,
        mut attempt: impl FnMut(&mut Writer) -> Attempt<T>,
    ) -> Result<(T, Option<Committed>)> {
        self.attempts_to_write(interrupt, |mut writer| {
            writer.set_policy(policy);
            if let Some(log) = &log {
                writer.set_retry_log(log);
            }
            let answer = attempt(&mut writer)?;
            if writer.is_empty() {
                return Ok((answer, None));
            }
            let mut options = options.clone();
            options.interrupt.get_or_insert_with(|| Arc::clone(interrupt));
            let statements = writer.seal_retry()?;
            let committed = writer.commit(options)?;
            if let Some(log) = &mut log {
                log.committed(&statements);
            }
            Ok((answer, Some(committed)))
        })
    }

    /// Calls `attempt` with a new writer until the result is not a conflict.
    fn attempts_to_write<T>(
        self: &Arc<Self>,
        interrupt: &Arc<Interrupt>,
        mut attempt: impl FnMut(Writer) -> Attempt<T>,
    ) -> Result<T> {
        self.attempts(interrupt, |turn| {
            let mut writer = self.writer(WriterMode::Statement)?;
            writer.set_turn(turn);
            attempt(writer)
        })
    }

    /// Calls `attempt` until the result is not a conflict. The attempt gets the place in the queue
    /// that was waited for, and passes it to its writer.
    ///
    /// # Errors
    /// The errors of `attempt`, except conflicts; the error of an interrupt.
    pub(crate) fn attempts<T>(
        &self,
        interrupt: &Arc<Interrupt>,
        mut attempt: impl FnMut(Option<&KeyTurn>) -> Attempt<T>,
    ) -> Result<T> {
        let mut turn = None;
        loop {
            interrupt.check().map_err(from_interruption)?;
            match attempt(turn.as_ref()) {
                Ok(answer) => return Ok(answer),
                Err(failure) => turn = self.before_retry(failure, turn, interrupt)?,
            }
        }
    }

    /// Waits after a failed attempt until another attempt can succeed. Returns the place in the
    /// queue for that attempt. `turn` is the place that the failed attempt had.
    ///
    /// # Errors
    /// The failure itself, if it is not a conflict; the error of an interrupt.
    fn before_retry(
        &self,
        failure: Failure,
        turn: Option<KeyTurn>,
        interrupt: &Arc<Interrupt>,
    ) -> Result<Option<KeyTurn>> {
        let conflict = match failure {
            // The engine closed the snapshot under memory pressure: the statement takes a new one.
            Failure::Error(error) if error.code() == ErrorCode::SnapshotTooOld => None,
            Failure::Error(error) => return Err(error),
            // The catalog has changed. A writer that sees the change does not conflict with it
            // again.
            Failure::Conflict(conflict) => {
                Some(conflict).filter(|conflict| conflict.space != Space::Meta || conflict.held)
            }
        };
        interrupt.check().map_err(from_interruption)?;
        let Some(conflict) = conflict else { return Ok(turn) };
        let turn = KeyTurn::wait(self.engine(), &conflict, turn, interrupt);
        turn.map(Some).map_err(from_storage)
    }
}

impl Writer {
    /// Runs one statement's write in a client's transaction: locks the keys that it wrote, and
    /// undoes it if it fails. The first updater of a key wins, so a conflict is returned at once.
    ///
    /// # Errors
    /// The errors of `attempt`; a conflict becomes 112 WriteConflict.
    pub fn statement<T>(
        &mut self,
        mut attempt: impl FnMut(&mut Writer) -> Attempt<T>,
    ) -> Result<T> {
        let before = self.savepoint();
        let ended = attempt(self).and_then(|answer| {
            self.push()?;
            self.charge()?;
            Ok(answer)
        });
        ended.map_err(|failure| {
            self.rollback_to(before);
            failure.into()
        })
    }
}
