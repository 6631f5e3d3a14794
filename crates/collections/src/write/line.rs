//! Lines: statements that change one document by its current value, and commit together. The first one
//! leads: it begins a writer, writes, and passes the writer to each statement that waits behind it, which
//! writes in its own thread and gives the writer back. Then the leader commits once for all of them. Who
//! comes meanwhile waits for the next commit (docs/adr/0046-counters.md).
//!
//! A statement that fails undoes only its own writes, and returns its error when the commit has ended,
//! because the error may depend on what the others have written.

use std::sync::Arc;

use quire_error::{Error, ErrorCode, Result};
use quire_storage::{CommitOptions, Committed, Durability, Interrupt};

use super::attempts::Attempts;
use super::{Writer, WriterMode};
use crate::failure::{Attempt, Failure};
use crate::lines::{Baton, Crew, Key, Leading, LineId, Outcome, Passed, Seat, State};
use crate::retry::RetryLog;
use crate::{Store, WritePolicy, from_interruption, is_in_doubt};

/// The bytes that wait for the commit after which no further statement writes in it.
const LINE_BYTES_MAX: usize = 4 << 20;

/// The writes of one statement.
struct Part<'p> {
    policy: WritePolicy,
    log: Option<&'p mut RetryLog>,
    attempt: &'p mut dyn FnMut(&mut Writer) -> Attempt<()>,
}

/// The statements in the session's row, or the error of the statement, which has written nothing.
type Own = std::result::Result<Vec<i32>, Error>;

impl Part<'_> {
    /// Writes. Fails if the whole commit has to be tried again.
    fn write(&mut self, writer: &mut Writer) -> Attempt<Own> {
        writer.begin_part(self.policy, self.log.as_deref());
        let before = writer.savepoint();
        let written = (self.attempt)(writer).and_then(|()| writer.seal_retry());
        match written {
            Ok(statements) => Ok(Ok(statements)),
            Err(failure) => {
                writer.undo_part(before);
                match failure {
                    Failure::Error(error) if error.code() != ErrorCode::SnapshotTooOld => {
                        Ok(Err(error))
                    }
                    failure => Err(failure),
                }
            }
        }
    }

    /// Returns the result of the statement after the commit.
    fn end(&mut self, own: Own, committed: Option<Committed>) -> Result<Option<Committed>> {
        let statements = own?;
        if let (Some(log), Some(_)) = (&mut self.log, committed) {
            log.committed(&statements);
        }
        Ok(committed)
    }
}

impl Store {
    /// Runs a statement as [`write_statement`](Self::write_statement) does, in one commit with others
    /// that wait in the same line.
    ///
    /// # Errors
    /// Those of [`write_statement`](Self::write_statement).
    pub fn write_in_line(
        self: &Arc<Self>,
        line: &LineId,
        (options, policy): (&CommitOptions, WritePolicy),
        log: Option<&mut RetryLog>,
        interrupt: &Arc<Interrupt>,
        attempt: &mut dyn FnMut(&mut Writer) -> Attempt<()>,
    ) -> Result<Option<Committed>> {
        let key = (line.clone(), options.durability == Durability::Synced);
        let mut part = Part { policy, log, attempt };
        loop {
            let followed = match self.lines.enter(&key, interrupt) {
                None => Followed::Leads,
                Some(seat) => self.follow(&key, &seat, &mut part)?,
            };
            match followed {
                Followed::Ended(committed) => return Ok(committed),
                Followed::Leads => return self.lead(key, options, interrupt, &mut part),
                Followed::Again => {}
            }
        }
    }

    fn lead(
        self: &Arc<Self>,
        key: Key,
        options: &CommitOptions,
        interrupt: &Arc<Interrupt>,
        part: &mut Part<'_>,
    ) -> Result<Option<Committed>> {
        let leading = Leading { lines: &self.lines, key };
        let mut crew = Crew(Vec::new());
        let mut attempts = Attempts::new(self, interrupt);
        loop {
            leading.take(&mut crew);
            match self.try_line(&attempts, options, part, &mut crew) {
                Ok(Some((own, committed))) => {
                    crew.end(&Outcome::Committed(committed));
                    return part.end(own, committed);
                }
                // A statement has lost the writer; the others try again without it.
                Ok(None) => {}
                Err(failure) => {
                    let doubt = failure.error().filter(|error| is_in_doubt(error));
                    // Who can run again waits in the line, where an interruption ends the wait.
                    let unknown = |error| Outcome::Failed(Arc::new(copied(error)));
                    crew.end(&doubt.map_or(Outcome::Again, unknown));
                    attempts.wait_after(failure)?;
                }
            }
        }
    }

    /// Lets the leader and its crew write, and commits. Returns the leader's own result and the
    /// commit; `None` if a panic of another statement has lost the writer.
    fn try_line(
        self: &Arc<Self>,
        attempts: &Attempts<'_>,
        options: &CommitOptions,
        part: &mut Part<'_>,
        crew: &mut Crew,
    ) -> Attempt<Option<(Own, Option<Committed>)>> {
        let turn = attempts.begin()?;
        let mut writer = Box::new(self.writer(WriterMode::Statement)?);
        writer.set_turn(turn);
        let own = part.write(&mut writer)?;
        let mut at = 0;
        while let Some(seat) = crew.0.get(at) {
            if writer.is_budget_low() || writer.buffered_bytes() > LINE_BYTES_MAX {
                crew.release(at);
                break;
            }
            match seat.pass(writer) {
                Passed::Written(back) => {
                    writer = taken(back)?;
                    at += 1;
                }
                Passed::Gone(back) => {
                    writer = taken(back)?;
                    crew.0.remove(at);
                }
                Passed::Lost => {
                    crew.0.remove(at);
                    return Ok(None);
                }
            }
        }
        if writer.is_empty() {
            return Ok(Some((own, None)));
        }
        let committed = writer.commit(options.clone().ended_by(attempts.interrupt()))?;
        Ok(Some((own, Some(committed))))
    }

    /// Waits for the turn of a statement, lets it write, and waits for the commit.
    fn follow(&self, key: &Key, seat: &Seat, part: &mut Part<'_>) -> Result<Followed> {
        if let Err(interruption) = seat.wait() {
            self.lines.leave(key, seat);
            return Err(from_interruption(interruption));
        }
        let mut own = None;
        loop {
            match seat.next() {
                State::Leads => return Ok(Followed::Leads),
                State::Writes(baton) => {
                    let write = |baton: &mut Baton| match baton.downcast_mut::<Writer>() {
                        Some(writer) => part.write(writer),
                        None => Err(no_writer().into()),
                    };
                    match seat.write(baton, write) {
                        Ok(written) => own = Some(written),
                        // The conflict of one statement is not that of the others.
                        Err(_) => return Ok(Followed::Again),
                    }
                }
                State::Ended(Outcome::Committed(committed)) => {
                    let own = own.unwrap_or_else(|| Ok(Vec::new()));
                    return part.end(own, committed).map(Followed::Ended);
                }
                State::Ended(Outcome::Failed(error)) => return Err(copied(&error)),
                _ => return Ok(Followed::Again),
            }
        }
    }
}

/// What a statement does after it has waited in a line.
enum Followed {
    Ended(Option<Committed>),
    Leads,
    Again,
}

/// Returns the writer that a statement has given back.
fn taken(baton: Baton) -> Result<Box<Writer>> {
    baton.downcast().map_err(|_| no_writer())
}

fn no_writer() -> Error {
    Error::internal("a line passed something else than a writer")
}

/// Returns an error like another one, for a statement of the same commit.
fn copied(error: &Error) -> Error {
    error
        .labels()
        .iter()
        .fold(Error::new(error.code(), error.message()), |copy, label| copy.with_label(*label))
}
