//! Ends unused sessions: their cursors close, and the stored results of their writes are removed,
//! first from memory, then from the store.

use crate::frame::service::{Service, now_ms};
use quire_error::{ErrorCode, Result};
use quire_session::{Session, SessionId};
use quire_storage::Interrupt;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The interval between two checks of the sessions in memory.
const IDLE_LOOK: Duration = Duration::from_secs(10);
/// The interval between two scans of the records of retryable writes. MongoDB:
/// `logicalSessionRefreshMillis`.
const RECORDS_LOOK: Duration = Duration::from_secs(5 * 60);
/// The idle time after which a session without a cursor, a transaction and a retryable write ends, if
/// there are many sessions.
const EMPTY_KEPT_MS: i64 = 5 * 60_000;
/// The idle time after which a session drops its retry records from memory; later it reads them
/// from the store.
const WRITES_KEPT_MS: i64 = 60_000;

/// The times of the last checks.
pub struct Expiry {
    idle: Instant,
    records: Instant,
}

impl Expiry {
    /// Begins with the current time.
    pub fn new() -> Self {
        Expiry { idle: Instant::now(), records: Instant::now() }
    }

    /// Does the checks that are due.
    pub fn run(&mut self, service: &Arc<Service>, stop: &Arc<Interrupt>) {
        if self.idle.elapsed() >= IDLE_LOOK {
            self.idle = Instant::now();
            service.end_idle_sessions(now_ms());
        }
        if self.records.elapsed() >= RECORDS_LOOK {
            self.records = Instant::now();
            // A failure is retried at the next pass; a poisoned engine is reported elsewhere.
            let _ = service.reap_retry_records(now_ms(), stop);
        }
    }
}

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

    /// Deletes the stored results of the writes of sessions that have ended. Returns the number of
    /// deleted keys.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn reap_retry_records(&self, now: i64, stop: &Arc<Interrupt>) -> Result<u64> {
        let is_alive = |id: &[u8; 16], user: Option<&[u8; 32]>| {
            self.sessions.contains(&SessionId::from_key(id, user))
        };
        self.store.reap_retry_records(now - self.session_timeout_ms(), &is_alive, stop)
    }

    fn session_timeout_ms(&self) -> i64 {
        self.parameters.number("localLogicalSessionTimeoutMinutes").saturating_mul(60_000)
    }
}
