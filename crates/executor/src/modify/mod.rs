//! Writes: insert, update, delete and findAndModify, of one document or many.
//!
//! A statement finds candidates by its plan, on views that it lets go of, and looks at each again
//! in the transaction that writes it: what matters is what stands there then. Outside a client's
//! transaction many documents are written in chunks, each a commit of its own, so memory stays
//! bounded and others get their turn; a chunk that lost against somebody else is done again.
//! Whoever waits holds nothing.

mod candidates;
mod chunk;
mod delete;
mod find_and_modify;
mod insert;
mod statement;
mod update;
mod upsert;

pub use delete::{DeleteOutcome, DeleteRequest, delete};
pub use find_and_modify::{
    FindAndModifyOutcome, FindAndModifyRequest, FoundChange, find_and_modify,
};
pub use insert::{InsertOutcome, insert_many};
pub use update::{UpdateOutcome, UpdateRequest, update};

use std::sync::Arc;

use quire_collections::{Attempt, Failure, Retry, Store, Writer, WriterMode};
use quire_error::Result;
use quire_storage::{CommitOptions, Committed, Interrupt};

/// Where writes go.
pub enum WriteTarget<'t> {
    /// Commits of their own.
    Store {
        /// The store.
        store: &'t Arc<Store>,
        /// How far each commit goes before the statement goes on. A command of many statements
        /// commits them buffered and makes the last one durable at its end.
        commit: CommitOptions,
        /// The session that remembers the statements, if they are retryable.
        retry: Option<Retry<'t>>,
    },
    /// A client's transaction: a clash is `WriteConflict` (112) at once.
    Transaction(&'t mut Writer),
}

impl<'t> WriteTarget<'t> {
    pub(crate) fn store(&self) -> &Arc<Store> {
        match self {
            WriteTarget::Store { store, .. } => store,
            WriteTarget::Transaction(writer) => writer.store(),
        }
    }

    /// The ids of the statements that a session remembers; empty if none does.
    pub(crate) fn statements(&self) -> &'t [i32] {
        match self {
            WriteTarget::Store { retry: Some(retry), .. } => retry.statements,
            _ => &[],
        }
    }

    /// Runs `attempt` in a transaction: one of its own that is committed and done again after
    /// a conflict, or the client's, in which a conflict is the answer.
    pub(crate) fn write<T>(
        &mut self,
        interrupt: &Arc<Interrupt>,
        mut attempt: impl FnMut(&mut Writer) -> Attempt<T>,
    ) -> Result<(T, Option<Committed>)> {
        match self {
            WriteTarget::Store { store, commit, retry } => {
                let mut turn = None;
                loop {
                    interrupt.check().map_err(quire_collections::from_interruption)?;
                    let mut writer = store.writer(WriterMode::Statement)?;
                    writer.set_turn(turn.as_ref());
                    if let Some(retry) = retry {
                        writer.set_retry_log(retry.log);
                    }
                    let ended = match attempt(&mut writer) {
                        Ok(answer) if writer.is_empty() => Ok((answer, None)),
                        Ok(answer) => commit_with(writer, commit, retry.as_mut(), interrupt)
                            .map(|committed| (answer, Some(committed))),
                        Err(failure) => {
                            drop(writer);
                            Err(failure)
                        }
                    };
                    match ended {
                        Ok(done) => return Ok(done),
                        Err(failure) => turn = store.before_retry(failure, turn, interrupt)?,
                    }
                }
            }
            WriteTarget::Transaction(writer) => {
                let before = writer.savepoint();
                let ended = attempt(writer).and_then(|answer| writer.push().map(|()| answer));
                match ended {
                    Ok(answer) => Ok((answer, None)),
                    Err(failure) => {
                        writer.rollback_to(before);
                        Err(failure.into())
                    }
                }
            }
        }
    }
}

fn commit_with(
    mut writer: Writer,
    commit: &CommitOptions,
    retry: Option<&mut Retry<'_>>,
    interrupt: &Arc<Interrupt>,
) -> Attempt<Committed> {
    let mut options = commit.clone();
    options.interrupt.get_or_insert_with(|| Arc::clone(interrupt));
    let statements = writer.seal_retry()?;
    let committed = writer.commit(options)?;
    if let Some(retry) = retry {
        retry.log.committed(&statements);
    }
    Ok(committed)
}

/// The error of a failure that is none of a conflict.
fn is_conflict(failure: &Failure) -> bool {
    matches!(failure, Failure::Conflict(_))
}
