//! The statements of a write command: their unit of work, its beginning and its end.

use crate::frame::context::Context;
use crate::frame::service::now_ms;
use crate::write::statement_ids::StatementIds;
use quire_collections::{WritePolicy, is_in_doubt};
use quire_document::DocWriter;
use quire_error::{Error, ErrorClass, ErrorCode, Result};
use quire_session::{Autocommit, Unit, WriteSettings};
use std::ops::Range;
use std::time::Duration;

impl Context<'_> {
    /// Returns the unit of work of a command that writes `statements` statements for `policy`, in
    /// `commits` commits. Inside a transaction it is the transaction. Waits for another command of
    /// the session with a transaction number.
    ///
    /// # Errors
    /// The errors of the statement ids and of the session's transaction numbers.
    pub fn write_unit(
        &self,
        commits: usize,
        ids: &StatementIds,
        statements: usize,
        policy: WritePolicy,
    ) -> Result<Unit> {
        let first = self.generic.statement_id;
        ids.check(first, statements)?;
        if self.in_transaction() {
            let mut unit = self.transaction_unit()?;
            unit.set_policy(policy)?;
            return Ok(Unit::Transaction(unit));
        }
        self.writing.set(true);
        let concern = self.write_concern();
        let limit = u64::try_from(concern.wtimeout).ok().filter(|limit| *limit > 0);
        let limit = limit.map(Duration::from_millis);
        let store = &self.service.store;
        let retry = match (&self.session, self.generic.txn_number) {
            (Some(session), Some(number)) => {
                let turn = session.take_turn(store, number, now_ms(), &self.interrupt)?;
                Some((turn, ids.list(first, statements)))
            }
            _ => None,
        };
        let settings = WriteSettings { policy, durability: concern.durability(), limit, commits };
        Ok(Unit::Autocommit(Autocommit::writing(store, settings, retry)))
    }

    /// Begins the statements at these positions, unless a fail point makes them fail.
    ///
    /// # Errors
    /// The error of the fail point.
    pub fn begin_statements(&self, unit: &mut Unit, places: Range<usize>) -> Result<()> {
        if unit.is_retryable() {
            places.clone().try_for_each(|_| self.meet_write_fault())?;
        }
        unit.begin(places);
        Ok(())
    }

    /// Waits until everything is as durable as the command asked, also the earlier results that it
    /// returns. Returns the ids of the statements that were executed before.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn finish_writes(&self, unit: Unit) -> Result<Vec<i32>> {
        let finished = unit.finish()?;
        self.timed_out.set(finished.timed_out);
        self.committed.set(finished.time);
        Ok(finished.repeated)
    }

    /// Returns the error of a command whose only statement failed, after everything on which the
    /// error depends is as durable as the command asked.
    pub fn failed_write(&self, unit: &Unit, error: Error) -> Error {
        if fails_command(&error) {
            return error;
        }
        match unit.wait() {
            Ok(in_time) => {
                self.timed_out.set(!in_time);
                error
            }
            Err(other) => other,
        }
    }
}

/// Refuses a statement for many documents with a transaction number, which cannot be repeated.
pub fn check_single(unit: &Unit, many: bool, option: &str) -> Result<()> {
    if many && unit.is_retryable() {
        let text = format!("Cannot use (or request) retryable writes with {option}");
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    Ok(())
}

/// Returns true if a statement's error fails its whole command: an interruption, a shutdown, a
/// commit with an unknown outcome, and in a transaction a conflict or a snapshot that is no longer
/// available.
pub fn fails_command(error: &Error) -> bool {
    error.code().is_a(ErrorClass::Interruption)
        || matches!(error.code(), ErrorCode::WriteConflict | ErrorCode::SnapshotTooOld)
        || is_in_doubt(error)
}

/// Appends `retriedStmtIds`, if there are any.
pub fn write_repeated(repeated: &[i32], reply: &mut DocWriter<'_>) {
    if repeated.is_empty() {
        return;
    }
    let mut list = reply.array("retriedStmtIds");
    repeated.iter().for_each(|id| {
        list.push(*id);
    });
}
