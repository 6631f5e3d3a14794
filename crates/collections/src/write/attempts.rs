//! How a write runs: it is retried after a conflict if it commits by itself, and fails at once in a
//! client's transaction. [`Attempts`] decides whether a failed write may run again, for writes of
//! documents and for statements that change the catalog.

use std::sync::Arc;

use quire_error::{ErrorCode, Result};
use quire_storage::{CommitOptions, Committed, Interrupt, KeyTurn, Space};

use super::{CommitOutcome, Writer, WriterMode};
use crate::failure::{Attempt, Failure};
use crate::retry::RetryLog;
use crate::{Store, WritePolicy, from_interruption, from_storage};

/// The attempts of one write. A caller loops: it calls [`begin`](Self::begin), tries, and after a
/// failure calls [`wait_after`](Self::wait_after), when it holds nothing of the failed attempt.
pub(crate) struct Attempts<'a> {
    store: &'a Store,
    interrupt: &'a Arc<Interrupt>,
    /// The place in the queue of the key that conflicted, which the next attempt passes to its
    /// writer.
    turn: Option<KeyTurn>,
}

impl<'a> Attempts<'a> {
    pub fn new(store: &'a Store, interrupt: &'a Arc<Interrupt>) -> Self {
        Attempts { store, interrupt, turn: None }
    }

    /// Begins an attempt, and returns the place in the queue for its writer.
    ///
    /// # Errors
    /// The error of the interrupt.
    pub fn begin(&self) -> Result<Option<&KeyTurn>> {
        self.interrupt.check().map_err(from_interruption)?;
        Ok(self.turn.as_ref())
    }

    /// Returns the interrupt of the write.
    pub fn interrupt(&self) -> &'a Arc<Interrupt> {
        self.interrupt
    }

    /// Waits after a failed attempt until another attempt can succeed.
    ///
    /// # Errors
    /// The failure itself, if it is not a conflict; the error of the interrupt.
    pub fn wait_after(&mut self, failure: Failure) -> Result<()> {
        let conflict = match failure {
            // The engine closed the snapshot under memory pressure: the statement takes a new one.
            Failure::Error(error) if error.code() == ErrorCode::SnapshotTooOld => None,
            Failure::Error(error) => return Err(error),
            // If the catalog has changed, a writer that sees the change does not conflict with it
            // again. Inserts into a capped collection conflict again and again.
            Failure::Conflict(conflict) => {
                self.interrupt.note_conflict();
                Some(conflict).filter(|conflict| {
                    conflict.space != Space::Meta
                        || conflict.held
                        || quire_catalog::is_low_water_key(&conflict.key)
                })
            }
        };
        self.interrupt.check().map_err(from_interruption)?;
        if let Some(conflict) = conflict {
            let turn = self.turn.take();
            let _waiting = self.interrupt.wait_for_lock();
            let turn = KeyTurn::wait(self.store.engine(), &conflict, turn, self.interrupt);
            self.turn = Some(turn.map_err(from_storage)?);
        }
        Ok(())
    }
}

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
        let mut attempts = Attempts::new(self, interrupt);
        loop {
            match self.try_write(&attempts, options, &mut attempt) {
                Ok(written) => return Ok(written),
                Err(failure) => attempts.wait_after(failure)?,
            }
        }
    }

    fn try_write<T>(
        self: &Arc<Self>,
        attempts: &Attempts<'_>,
        options: &CommitOptions,
        attempt: &mut impl FnMut(&mut Writer) -> Attempt<T>,
    ) -> Attempt<(T, CommitOutcome)> {
        let turn = attempts.begin()?;
        let mut writer = self.writer(WriterMode::Statement)?;
        writer.set_turn(turn);
        let answer = attempt(&mut writer)?;
        let committed = writer.commit(options.clone().ended_by(attempts.interrupt))?;
        Ok((answer, committed))
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
        let mut attempts = Attempts::new(self, interrupt);
        loop {
            let log = log.as_deref_mut();
            match self.try_statement(&attempts, (options, policy), log, &mut attempt) {
                Ok(written) => return Ok(written),
                Err(failure) => attempts.wait_after(failure)?,
            }
        }
    }

    fn try_statement<T>(
        self: &Arc<Self>,
        attempts: &Attempts<'_>,
        (options, policy): (&CommitOptions, WritePolicy),
        log: Option<&mut RetryLog>,
        attempt: &mut impl FnMut(&mut Writer) -> Attempt<T>,
    ) -> Attempt<(T, Option<Committed>)> {
        let turn = attempts.begin()?;
        let mut writer = self.writer(WriterMode::Statement)?;
        writer.set_turn(turn);
        writer.set_policy(policy);
        if let Some(log) = &log {
            writer.set_retry_log(log);
        }
        let answer = attempt(&mut writer)?;
        if writer.is_empty() {
            return Ok((answer, None));
        }
        let statements = writer.seal_retry()?;
        let committed = writer.commit(options.clone().ended_by(attempts.interrupt))?;
        if let Some(log) = log {
            log.committed(&statements);
        }
        Ok((answer, Some(committed)))
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
        self.now_ms = None;
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
