//! Ends unused sessions: their cursors close, and the stored results of their writes are removed,
//! first from memory, then from the store.

use crate::frame::service::Service;
use quire_collections::{Attempt, Job, Progress, Writer, reap_step};
use quire_error::{ErrorCode, Result};
use quire_session::{Session, SessionId};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// The idle time after which a session without a cursor, a transaction and a retryable write ends, if
/// there are many sessions.
const EMPTY_KEPT_MS: i64 = 5 * 60_000;
/// The idle time after which a session drops its retry records from memory; later it reads them
/// from the store.
const WRITES_KEPT_MS: i64 = 60_000;

impl Service {
    /// Returns the session with this id, and notes its use. If the table is full, sessions without
    /// transaction numbers and cursors are removed.
    ///
    /// # Errors
    /// 261 TooManyLogicalSessions if all of them are needed.
    pub fn touch_session(&self, id: SessionId, now: i64) -> Result<Arc<Session>> {
        match self.sessions.touch(id, now) {
            Err(error) if error.code() == ErrorCode::TooManyLogicalSessions => {
                self.sessions.evict(&self.cursors.session_ids());
                self.sessions.touch(id, now)
            }
            touched => touched,
        }
    }

    /// Ends the sessions that have been idle for `localLogicalSessionTimeoutMinutes`.
    pub fn end_idle_sessions(&self, now: i64) {
        for operation in self.operations.list() {
            if let Some(session) = operation.session {
                // A session in use is in the table already, so this cannot fail.
                let _ = self.sessions.touch(session, now);
            }
        }
        let ended = self.sessions.end_idle(now - self.session_timeout_ms());
        if !ended.is_empty() {
            let ended: HashSet<SessionId> = ended.into_iter().collect();
            self.cursors.kill_sessions(|session| ended.contains(session));
        }
        self.sessions.trim(&self.cursors.session_ids(), now - EMPTY_KEPT_MS);
        self.sessions.forget_writes(now - WRITES_KEPT_MS);
    }

    /// Aborts the transactions that have been open for `limit`: their statements are stopped, their
    /// writes discarded and their locks released.
    pub fn abort_old_transactions(&self, limit: Duration) {
        let active = self.sessions.abort_expired(limit);
        if !active.is_empty() {
            self.operations.expire_sessions(&|session| active.contains(session));
        }
    }

    /// Runs a step of the job that deletes the stored results of the writes of sessions that have
    /// ended by `now`.
    ///
    /// # Errors
    /// Those of [`reap_step`].
    pub fn reap_step(
        &self,
        writer: &mut Writer,
        job: &Job,
        now: i64,
        rows_max: usize,
    ) -> Attempt<Progress> {
        let is_alive = |id: &[u8; 16], user: Option<&[u8; 32]>| {
            self.sessions.contains(&SessionId::from_key(id, user))
        };
        let before_ms = now - self.session_timeout_ms();
        reap_step(writer, job, (before_ms, &is_alive), rows_max)
    }

    fn session_timeout_ms(&self) -> i64 {
        self.parameters.number("localLogicalSessionTimeoutMinutes").saturating_mul(60_000)
    }
}
