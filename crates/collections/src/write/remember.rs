//! The row that a commit stores for the session of its statements.

use quire_storage::Space;

use super::{Writer, WriterSavepoint};
use crate::WritePolicy;
use crate::failure::Attempt;
use crate::retry::{Effect, Keep, RetryLog};

impl Writer {
    /// Makes the commit store the results of its statements for the session of `log`.
    pub fn set_retry_log(&mut self, log: &RetryLog) {
        self.retry = log.next_row();
    }

    /// Begins the writes of the next statement of a commit that has several.
    pub(super) fn begin_part(&mut self, policy: WritePolicy, log: Option<&RetryLog>) {
        self.policy = policy;
        self.retry = log.and_then(RetryLog::next_row);
        self.now_ms = None;
    }

    /// Undoes the writes of a statement that has failed.
    pub(super) fn undo_part(&mut self, before: WriterSavepoint) {
        self.rollback_to(before);
        self.retry = None;
    }

    /// Stores the result of a statement for its session; does nothing without a session.
    pub fn remember(&mut self, statement: i32, effect: Effect, keep: Keep<'_>) {
        if let Some(row) = &mut self.retry {
            row.add(statement, effect, keep);
        }
    }

    /// As [`remember`](Self::remember), for a statement whose writes were other commits: this commit stores the result even if
    /// it writes nothing else.
    pub fn remember_alone(&mut self, statement: i32, effect: Effect, keep: Keep<'_>) {
        self.remember(statement, effect, keep);
        self.remembers_alone = self.retry.is_some();
    }

    /// Adds the session's row to the transaction, and returns the statements in it. Pass them to
    /// [`RetryLog::committed`] after the commit.
    pub fn seal_retry(&mut self) -> Attempt<Vec<i32>> {
        let Some(row) = self.retry.take().filter(|row| !row.statements.is_empty()) else {
            return Ok(Vec::new());
        };
        self.txn_mut().put(Space::Meta, row.key, row.value.into())?;
        for key in row.stale {
            self.txn_mut().delete_entry(Space::Meta, key)?;
        }
        Ok(row.statements)
    }
}
