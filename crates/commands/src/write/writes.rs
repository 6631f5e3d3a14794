//! The statements of a write command: how they commit, and which of them a session has done
//! before.
//!
//! Each commit of a command with many statements is buffered, and the command waits once, at its
//! end, until the last one is as durable as its write concern asks. With a transaction number the
//! session remembers what each statement did, in the same commit; a repeated one is answered from
//! that.

use crate::frame::context::Context;
use crate::frame::reply::from_storage;
use crate::frame::service::now_ms;
use crate::write::statement_ids::StatementIds;
use quire_collections::{Remembered, Retry, is_in_doubt};
use quire_document::DocWriter;
use quire_error::{Error, ErrorClass, ErrorCode, Result};
use quire_executor::modify::WriteTarget;
use quire_session::Turn;
use quire_storage::{CommitOptions, Committed, Durability, StorageError, Version};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// How a command's statements commit, and how far they have come.
pub struct Writes {
    each: Durability,
    wanted: Durability,
    last: Option<Version>,
    /// Statements that have begun and not said what they committed. They found nothing to do, or
    /// failed: their answers rest on what others have committed, which may be visible before it
    /// is durable.
    open: usize,
    /// How long to wait for the disk at the end, if not for as long as it takes.
    limit: Option<Duration>,
    retryable: Option<Retryable>,
}

/// The session's part in a command with a transaction number.
struct Retryable {
    turn: Turn,
    /// The statements that are left, in their order.
    ids: Vec<i32>,
    /// The statements that were done before, with their places in the command.
    repeated: Vec<(usize, i32)>,
}

impl Context<'_> {
    /// The writes of a command with so many statements, which come in so many commits. Waits for
    /// another command that writes under the session's numbers.
    pub fn writes(&self, commits: usize, ids: &StatementIds, statements: usize) -> Result<Writes> {
        ids.check(statements)?;
        self.writing.set(true);
        let concern = self.write_concern();
        let wanted = concern.durability();
        let limit = u64::try_from(concern.wtimeout).ok().filter(|limit| *limit > 0);
        let limit = limit.map(Duration::from_millis);
        let at_once = commits == 1 && limit.is_none();
        let each = if at_once { wanted } else { Durability::Buffered };
        let retryable = match (&self.session, self.generic.txn_number) {
            (Some(session), Some(number)) => {
                let store = &self.service.store;
                let turn = session.take_turn(store, number, now_ms(), &self.interrupt)?;
                Some(Retryable { turn, ids: ids.list(statements), repeated: Vec::new() })
            }
            _ => None,
        };
        Ok(Writes { each, wanted, last: None, open: 0, limit, retryable })
    }
}

impl Writes {
    /// Where the statements at these places write, unless a fail point fails them.
    pub fn target<'c>(
        &'c mut self,
        cx: &'c Context<'_>,
        places: Range<usize>,
    ) -> Result<WriteTarget<'c>> {
        if self.retryable.is_some() {
            places.clone().try_for_each(|_| cx.meet_write_fault())?;
        }
        self.open += usize::from(!places.is_empty());
        let interrupt = Some(Arc::clone(&cx.interrupt));
        let commit = CommitOptions { durability: self.each, interrupt };
        let retry = self.retryable.as_mut().map(|retryable| Retry {
            log: retryable.turn.log(),
            statements: retryable.ids.get(places).unwrap_or(&[]),
        });
        Ok(WriteTarget::Store { store: &cx.service.store, commit, retry })
    }

    /// What the statement at this place did when it came before.
    pub fn repeated(&mut self, cx: &Context<'_>, place: usize) -> Result<Option<Remembered>> {
        let Some(Retryable { turn, ids, repeated }) = &mut self.retryable else { return Ok(None) };
        let Some(id) = ids.get(place).copied() else { return Ok(None) };
        if !turn.log().is_executed(id) {
            return Ok(None);
        }
        repeated.push((place, id));
        let snapshot = cx.service.engine.snapshot().map_err(from_storage)?;
        turn.log().find(&*snapshot, id)
    }

    /// Takes the statements out that came before; answers the places of the others, or `None` if
    /// nothing was taken out.
    pub fn skip_repeated(&mut self) -> Option<Vec<usize>> {
        let Retryable { turn, ids, repeated } = self.retryable.as_mut()?;
        let mut seen = HashSet::with_capacity(ids.len());
        let log = turn.log();
        let left: Vec<usize> = (0..ids.len())
            .filter(|place| {
                let is_new = ids.get(*place).is_some_and(|id| !log.is_executed(*id));
                let first = ids.get(*place).is_some_and(|id| seen.insert(*id));
                is_new && first
            })
            .collect();
        if left.len() == ids.len() {
            return None;
        }
        let mut rest = left.iter().copied().peekable();
        for (place, id) in ids.iter().enumerate() {
            if rest.next_if_eq(&place).is_none() {
                repeated.push((place, *id));
            }
        }
        *ids = left.iter().filter_map(|place| ids.get(*place).copied()).collect();
        Some(left)
    }

    /// An ordered write ended at this place: what comes later is not reached again.
    pub fn forget_after(&mut self, place: usize) {
        if let Some(retryable) = &mut self.retryable {
            retryable.repeated.retain(|(repeated, _)| *repeated < place);
        }
    }

    /// How many statements came before.
    pub fn repeated_count(&self) -> usize {
        self.retryable.as_ref().map_or(0, |retryable| retryable.repeated.len())
    }

    /// Refuses what can't be repeated: a statement for many documents.
    pub fn check_single(&self, many: bool, option: &str) -> Result<()> {
        if many && self.retryable.is_some() {
            let text = format!("Cannot use (or request) retryable writes with {option}");
            return Err(Error::new(ErrorCode::InvalidOptions, text));
        }
        Ok(())
    }

    /// Notes the last commit of the statements that began last, of which none failed.
    pub fn note(&mut self, committed: Option<&Committed>) {
        self.note_some(committed);
        self.open -= usize::from(committed.is_some()).min(self.open);
    }

    /// The same where some of them may have failed.
    pub fn note_some(&mut self, committed: Option<&Committed>) {
        self.last = committed.map(|committed| committed.version).or(self.last);
    }

    /// Waits until everything is as durable as the command asked, what it found done too. Answers
    /// the ids of the statements that came before.
    pub fn finish(self, cx: &Context<'_>) -> Result<Vec<i32>> {
        self.wait(cx)?;
        Ok(match self.retryable {
            None => Vec::new(),
            Some(Retryable { turn, repeated, .. }) => {
                turn.keep();
                repeated.into_iter().map(|(_, id)| id).collect()
            }
        })
    }

    /// The answer of a command whose only statement failed, once what that rests on is as durable
    /// as the command asked.
    pub fn failed(self, cx: &Context<'_>, error: Error) -> Error {
        match fails_command(&error) {
            true => error,
            false => self.wait(cx).err().unwrap_or(error),
        }
    }

    fn wait(&self, cx: &Context<'_>) -> Result<()> {
        let engine = &cx.service.engine;
        let version = match self.last {
            Some(version) if self.open == 0 => Some(version).filter(|_| self.each != self.wanted),
            _ => Some(engine.version()).filter(|_| self.wanted == Durability::Synced),
        };
        let Some(version) = version else { return Ok(()) };
        let waited = match self.limit {
            None => engine.barrier(version),
            Some(limit) => engine.barrier_within(version, limit).map(|in_time| {
                cx.timed_out.set(!in_time);
            }),
        };
        let in_doubt = |error: StorageError| match self.last {
            Some(_) => error.after_commit(),
            None => error,
        };
        waited.map_err(|error| from_storage(in_doubt(error)))
    }
}

/// Whether a statement's error fails its whole command: an interruption, a shutdown, and a commit of
/// which nobody knows what has become.
pub fn fails_command(error: &Error) -> bool {
    error.code().is_a(ErrorClass::Interruption) || is_in_doubt(error)
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
