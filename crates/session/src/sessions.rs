//! The logical sessions of a server: their last use, and the command that uses their transaction
//! numbers now. Sessions are in memory; the results of their writes are in the store.

use crate::SessionId;
use crate::catalog_changes::CatalogChanges;
use crate::held_transaction::{Held, TransactionCounters, TransactionCounts};
use parking_lot::{Mutex, RwLock};
use quire_collections::{RetryLog, Store, from_interruption, load_retry_log};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::Interrupt;
use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// The largest number of sessions in memory, as MongoDB's `maxSessions` (261
/// TooManyLogicalSessions).
const SESSIONS_MAX: usize = 1_000_000;

/// The number of sessions up to which idle sessions stay for as long as in MongoDB.
const UNTRIMMED_MAX: usize = 10_000;

/// Eviction frees one part in `EVICTED_SHARE` of a full table.
const EVICTED_SHARE: usize = 16;

/// One logical session.
pub struct Session {
    /// The id that the client gave the session.
    pub id: SessionId,
    last_use_ms: AtomicI64,
    pub(crate) numbered: Mutex<Numbered>,
    pub(crate) counters: Arc<TransactionCounters>,
}

/// The state of a session's commands with a transaction number. One command holds it at a time.
#[derive(Default)]
pub(crate) struct Numbered {
    /// True while a command holds it.
    taken: bool,
    /// The commands that wait for their turn.
    waiting: Vec<Arc<Interrupt>>,
    /// The newest transaction number of any command.
    pub newest: Option<i64>,
    /// The retry records that were read from the store; `None` if they must be read.
    log: Option<Box<RetryLog>>,
    /// The transaction with the newest number; `None` if that number is not a transaction's.
    pub transaction: Option<Box<Held>>,
}

/// A command's exclusive use of the session's transaction numbers. Dropping it lets the next
/// command in. The log stays in memory only after [`Turn::keep`]; else the next command reads it
/// from the store.
pub struct Turn {
    session: Arc<Session>,
    log: Option<Box<RetryLog>>,
    kept: bool,
}

/// A session in the table. The session's id is the hash key.
struct Entry(Arc<Session>);

impl Borrow<SessionId> for Entry {
    fn borrow(&self) -> &SessionId {
        &self.0.id
    }
}

impl Hash for Entry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for Entry {}

/// All sessions of a server. The table can hold a million (half an hour of clients that use each
/// session once), so a session that only reads takes about 200 bytes.
pub struct Sessions {
    all: RwLock<HashSet<Entry>>,
    counters: Arc<TransactionCounters>,
    pub(crate) changes: CatalogChanges,
    limit: usize,
}

impl Default for Sessions {
    fn default() -> Self {
        Sessions::with_limit(SESSIONS_MAX)
    }
}

impl Sessions {
    /// Returns an empty table for at most `limit` sessions.
    pub fn with_limit(limit: usize) -> Self {
        Sessions {
            all: RwLock::default(),
            counters: Arc::default(),
            changes: CatalogChanges::default(),
            limit,
        }
    }

    /// Removes sessions, the least recently used first, until a sixteenth of the table is free.
    /// Without this, clients that use each session once could fill the table and lock other clients
    /// out until those sessions expire. A session stays if it is in `held`, if a command uses it,
    /// or if it has written with transaction numbers.
    pub fn evict(&self, held: &HashSet<SessionId>) {
        let mut all = self.all.write();
        let excess = all.len().saturating_sub(self.limit - self.limit / EVICTED_SHARE - 1);
        if excess == 0 {
            return;
        }
        let mut idle: Vec<(i64, SessionId)> = all
            .iter()
            .filter(|Entry(session)| holds_nothing(session, held))
            .map(|Entry(session)| (session.last_use_ms.load(Ordering::Relaxed), session.id))
            .collect();
        if idle.len() > excess {
            idle.select_nth_unstable(excess);
            idle.truncate(excess);
        }
        for (_, id) in idle {
            all.remove(&id);
        }
    }

    /// Removes the sessions that [`evict`](Self::evict) may remove and that were not used since
    /// `before_ms`, if there are more than 10,000. Otherwise clients that use each session once would
    /// leave the sessions of half an hour. If a client uses a removed session again, the server creates it
    /// again; the client notices no difference.
    pub fn trim(&self, held: &HashSet<SessionId>, before_ms: i64) {
        let mut all = self.all.write();
        if all.len() <= UNTRIMMED_MAX {
            return;
        }
        all.retain(|Entry(session)| {
            session.last_use_ms.load(Ordering::Relaxed) >= before_ms
                || !holds_nothing(session, held)
        });
        if all.capacity() > 4 * all.len().max(UNTRIMMED_MAX) {
            all.shrink_to_fit();
        }
    }

    /// Notes the use of a session at `now_ms`; the first use creates the session.
    ///
    /// # Errors
    /// 261 TooManyLogicalSessions.
    pub fn touch(&self, id: SessionId, now_ms: i64) -> Result<Arc<Session>> {
        if let Some(Entry(session)) = self.all.read().get(&id) {
            session.last_use_ms.fetch_max(now_ms, Ordering::Relaxed);
            return Ok(Arc::clone(session));
        }
        let mut all = self.all.write();
        // Another connection can have created the session between the two locks.
        if let Some(Entry(session)) = all.get(&id) {
            return Ok(Arc::clone(session));
        }
        if all.len() >= self.limit {
            let text = "cannot add session into the cache: too many logical sessions";
            return Err(Error::new(ErrorCode::TooManyLogicalSessions, text));
        }
        let session = Arc::new(Session {
            id,
            last_use_ms: AtomicI64::new(now_ms),
            numbered: Mutex::default(),
            counters: Arc::clone(&self.counters),
        });
        all.insert(Entry(Arc::clone(&session)));
        Ok(session)
    }

    /// Returns how many transactions have begun and ended.
    pub fn transaction_counts(&self) -> TransactionCounts {
        self.counters.counts()
    }

    /// Calls `work` for every session, under the read lock of the table.
    pub(crate) fn each(&self, work: &mut dyn FnMut(&Session)) {
        self.all.read().iter().for_each(|Entry(session)| work(session));
    }

    /// Returns true if the session is in the table.
    pub fn contains(&self, id: &SessionId) -> bool {
        self.all.read().contains(id)
    }

    /// Ends sessions, at once or when their running command ends. The results of their writes stay
    /// in the store.
    pub fn end(&self, ids: &[SessionId]) {
        let mut all = self.all.write();
        for id in ids {
            match all.get(id) {
                Some(Entry(session)) if is_in_use(session) => {
                    session.last_use_ms.store(i64::MIN, Ordering::Relaxed);
                }
                _ => {
                    all.remove(id);
                }
            }
        }
    }

    /// Returns the id and the time of the last use of every session, sorted by id.
    pub fn list(&self) -> Vec<(SessionId, i64)> {
        let all = self.all.read();
        let mut list: Vec<_> = all
            .iter()
            .map(|Entry(session)| (session.id, session.last_use_ms.load(Ordering::Relaxed)))
            .collect();
        list.sort_unstable();
        list
    }

    /// Returns the number of sessions.
    pub fn len(&self) -> usize {
        self.all.read().len()
    }

    /// Returns true if there is no session.
    pub fn is_empty(&self) -> bool {
        self.all.read().is_empty()
    }

    /// Ends the sessions that were not used since `before_ms`, and returns their ids.
    pub fn end_idle(&self, before_ms: i64) -> Vec<SessionId> {
        let is_idle = |session: &Session| session.last_use_ms.load(Ordering::Relaxed) < before_ms;
        let mut idle: Vec<_> = {
            let all = self.all.read();
            all.iter().filter(|Entry(session)| is_idle(session)).map(|entry| entry.0.id).collect()
        };
        if idle.is_empty() {
            return idle;
        }
        let mut all = self.all.write();
        // A client can have used the session again between the two locks.
        idle.retain(|id| match all.get(id) {
            Some(Entry(session)) if is_idle(session) && !is_in_use(session) => all.remove(id),
            _ => false,
        });
        idle
    }

    /// Frees the memory of the retry records of sessions that were not used since `before_ms`. The
    /// records stay in the store.
    pub fn forget_writes(&self, before_ms: i64) {
        for Entry(session) in self.all.read().iter() {
            if session.last_use_ms.load(Ordering::Relaxed) < before_ms {
                session.numbered.lock().log = None;
            }
        }
    }
}

/// Returns true if a command uses the session; then another session of the same id must not replace
/// it. The result is valid only under the write lock, under which no other command can get the
/// session.
fn is_in_use(session: &Arc<Session>) -> bool {
    Arc::strong_count(session) > 1
}

/// Returns true if nothing is lost with the session. The answer is valid under the write lock only.
fn holds_nothing(session: &Arc<Session>, held: &HashSet<SessionId>) -> bool {
    !is_in_use(session) && !held.contains(&session.id) && session.numbered.lock().newest.is_none()
}

impl Session {
    /// Takes the session's turn for a command with this transaction number. Waits while another
    /// command holds the turn.
    ///
    /// # Errors
    /// 225 TransactionTooOld for a number below the newest; the error of an interrupted wait.
    pub fn take_turn(
        self: &Arc<Self>,
        store: &Arc<Store>,
        number: i64,
        now_ms: i64,
        interrupt: &Arc<Interrupt>,
    ) -> Result<Turn> {
        let mut turn = self.take(store, interrupt)?;
        let newest = turn.newest();
        if let Some(newest) = newest.filter(|newest| number < *newest) {
            turn.kept = true;
            return Err(too_old(&self.id, number, newest));
        }
        if newest == Some(number) && turn.is_of_transaction() {
            turn.kept = true;
            let text = "Cannot retry a retryable write that has been converted into a transaction";
            return Err(Error::new(ErrorCode::IncompleteTransactionHistory, text));
        }
        // A newer number ends an open transaction.
        let ended = turn.begin(number, now_ms, None);
        drop(ended);
        Ok(turn)
    }

    /// Takes the session's turn. Waits while another command holds it.
    pub(crate) fn take(
        self: &Arc<Self>,
        store: &Arc<Store>,
        interrupt: &Arc<Interrupt>,
    ) -> Result<Turn> {
        self.wait_for_turn(interrupt)?;
        let known = self.numbered.lock().log.take();
        let mut turn = Turn { session: Arc::clone(self), log: None, kept: false };
        turn.log = Some(match known {
            Some(log) => log,
            None => Box::new(load_retry_log(store, self.id.key())?),
        });
        Ok(turn)
    }

    fn wait_for_turn(&self, interrupt: &Arc<Interrupt>) -> Result<()> {
        loop {
            {
                let mut numbered = self.numbered.lock();
                numbered.waiting.retain(|waiting| !Arc::ptr_eq(waiting, interrupt));
                if !numbered.taken {
                    numbered.taken = true;
                    return Ok(());
                }
                numbered.waiting.push(Arc::clone(interrupt));
            }
            if let Err(why) = interrupt.wait(None::<Duration>, || !self.numbered.lock().taken) {
                let mut numbered = self.numbered.lock();
                numbered.waiting.retain(|waiting| !Arc::ptr_eq(waiting, interrupt));
                return Err(from_interruption(why));
            }
        }
    }
}

impl Turn {
    /// Returns the newest transaction number of the session.
    pub(crate) fn newest(&mut self) -> Option<i64> {
        let newest = self.session.numbered.lock().newest;
        newest.max(self.log().number())
    }

    /// Returns true if the newest number is that of a transaction.
    pub(crate) fn is_of_transaction(&mut self) -> bool {
        let newest = self.newest();
        let held = self.session.numbered.lock().transaction.as_ref().map(|held| held.number);
        (held.is_some() && held == newest)
            || (self.log().is_transaction() && self.log().number() == newest)
    }

    /// Makes `number` the newest number. `transaction` is the transaction that it begins, if any.
    /// Returns the transaction of the previous number.
    pub(crate) fn begin(
        &mut self,
        number: i64,
        now_ms: i64,
        transaction: Option<Box<Held>>,
    ) -> Option<Box<Held>> {
        self.log().begin(number, now_ms);
        let mut numbered = self.session.numbered.lock();
        if numbered.newest == Some(number) && transaction.is_none() {
            return None;
        }
        numbered.newest = Some(number);
        std::mem::replace(&mut numbered.transaction, transaction)
    }

    /// Returns the session's log, in which statements are looked up and noted.
    pub fn log(&mut self) -> &mut RetryLog {
        self.log.as_mut().expect("a turn has its log until it is dropped")
    }

    /// Ends the turn and keeps the log in memory. Call it only if the log contains everything that
    /// the command committed.
    pub fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let waiting = {
            let mut numbered = self.session.numbered.lock();
            numbered.taken = false;
            numbered.log = self.log.take().filter(|_| self.kept);
            // All commands stay on the list: those that do not get this turn wait for the next.
            numbered.waiting.clone()
        };
        waiting.iter().for_each(|interrupt| interrupt.notify());
    }
}

fn too_old(id: &SessionId, number: i64, newest: i64) -> Error {
    let text = format!(
        "Retryable write with txnNumber {number} is prohibited on session {id} because a newer retryable write with txnNumber {newest} has already started on this session."
    );
    Error::new(ErrorCode::TransactionTooOld, text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use quire_collections::StoreOptions;
    use quire_storage::Interruption;

    fn store() -> Arc<Store> {
        Store::open(quire_storage::open_memory().unwrap(), StoreOptions::default()).unwrap()
    }

    fn id(number: u8) -> SessionId {
        SessionId::without_user([number; 16])
    }

    #[test]
    fn idle_sessions_end_and_those_in_use_stay() {
        let sessions = Sessions::default();
        sessions.touch(id(1), 100).unwrap();
        sessions.touch(id(2), 300).unwrap();
        let held = sessions.touch(id(3), 100).unwrap();
        sessions.touch(id(2), 200).unwrap();
        assert_eq!(sessions.end_idle(300), vec![id(1)]);
        sessions.end(&[id(2), id(3), id(9)]);
        assert!(!sessions.contains(&id(2)) && sessions.contains(&id(3)));
        drop(held);
        assert_eq!(sessions.end_idle(0), vec![id(3)]);
        assert!(sessions.is_empty());
    }

    /// A regression test: a million pings with new session ids locked every new driver out for half
    /// an hour.
    #[test]
    fn a_full_table_forgets_idle_sessions_and_keeps_those_that_hold_something() {
        let (store, sessions) = (store(), Sessions::with_limit(100));
        let writer = sessions.touch(id(1), 1).unwrap();
        writer.take_turn(&store, 5, 1, &Interrupt::new()).unwrap().keep();
        drop(writer);
        sessions.touch(id(2), 2).unwrap();
        for number in 3..=100 {
            sessions.touch(id(number), i64::from(number)).unwrap();
        }
        let held = sessions.touch(id(3), 3).unwrap();
        assert_eq!(
            sessions.touch(id(200), 200).err().unwrap().code(),
            ErrorCode::TooManyLogicalSessions
        );
        sessions.evict(&HashSet::from([id(2)]));
        assert!(sessions.touch(id(200), 200).is_ok());
        for number in [1, 2, 3, 50, 100, 200] {
            assert!(sessions.contains(&id(number)), "{number}");
        }
        assert!(!sessions.contains(&id(4)));
        assert_eq!(sessions.len(), 94);
        drop(held);
    }

    /// 500,000 sessions that were used once stayed for half an hour.
    #[test]
    fn idle_sessions_end_earlier_if_there_are_many() {
        let (store, sessions) = (store(), Sessions::default());
        let numbered = |number: u64| {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            SessionId::without_user(bytes)
        };
        for number in 0..UNTRIMMED_MAX as u64 {
            sessions.touch(numbered(number), 100).unwrap();
        }
        sessions.trim(&HashSet::new(), 200);
        assert_eq!(sessions.len(), UNTRIMMED_MAX);
        let writer = sessions.touch(numbered(1), 100).unwrap();
        writer.take_turn(&store, 5, 1, &Interrupt::new()).unwrap().keep();
        drop(writer);
        let used = sessions.touch(numbered(2), 100).unwrap();
        sessions.touch(numbered(u64::MAX), 200).unwrap();
        sessions.trim(&HashSet::from([numbered(3)]), 200);
        assert_eq!(sessions.len(), 4);
        for number in [1, 2, 3, u64::MAX] {
            assert!(sessions.contains(&numbered(number)), "{number}");
        }
        drop(used);
    }

    /// Clients that use each session once leave many of them behind.
    #[test]
    fn a_session_that_only_reads_is_small() {
        assert!(size_of::<Session>() <= 136, "{}", size_of::<Session>());
        assert!(size_of::<Entry>() <= size_of::<usize>());
    }

    #[test]
    fn an_older_number_is_refused_and_the_newest_stays() {
        let (store, sessions, interrupt) = (store(), Sessions::default(), Interrupt::new());
        let session = sessions.touch(id(1), 0).unwrap();
        session.take_turn(&store, 5, 0, &interrupt).unwrap().keep();
        // A turn that was not kept: the log is read from the store again, which has no record.
        drop(session.take_turn(&store, 6, 0, &interrupt).unwrap());
        let refused = session.take_turn(&store, 5, 0, &interrupt).err().unwrap();
        assert_eq!(refused.code(), ErrorCode::TransactionTooOld);
        assert!(session.take_turn(&store, 6, 0, &interrupt).is_ok());
        sessions.forget_writes(1);
        assert!(session.take_turn(&store, 5, 0, &interrupt).is_err());
    }

    #[test]
    fn the_second_command_waits_for_the_first() {
        let (store, sessions) = (store(), Sessions::default());
        let session = sessions.touch(id(1), 0).unwrap();
        let first = session.take_turn(&store, 1, 0, &Interrupt::new()).unwrap();
        let impatient = Interrupt::with_deadline(Duration::from_millis(5));
        let ended = session.take_turn(&store, 1, 0, &impatient).err().unwrap();
        assert_eq!(ended.code(), ErrorCode::MaxTimeMSExpired);
        let killed = Interrupt::new();
        killed.kill(Interruption::Killed);
        assert!(session.take_turn(&store, 1, 0, &killed).is_err());
        let waiter = {
            let (session, store) = (Arc::clone(&session), Arc::clone(&store));
            std::thread::spawn(move || {
                session.take_turn(&store, 1, 0, &Interrupt::new()).unwrap().keep();
            })
        };
        while session.numbered.lock().waiting.is_empty() {
            std::thread::yield_now();
        }
        first.keep();
        waiter.join().unwrap();
        assert!(!session.numbered.lock().taken);
    }

    #[test]
    fn every_waiter_gets_a_turn() {
        let (store, sessions) = (store(), Sessions::default());
        let session = sessions.touch(id(1), 0).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let patient = Interrupt::with_deadline(Duration::from_secs(60));
                        let turn = session.take_turn(&store, 1, 0, &patient).unwrap();
                        std::thread::yield_now();
                        turn.keep();
                    }
                });
            }
        });
        assert!(session.numbered.lock().waiting.is_empty());
    }
}
