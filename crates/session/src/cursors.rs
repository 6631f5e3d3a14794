//! The open cursors of a server: ids, owners, time-outs. A cursor holds no snapshot of the engine
//! between two batches; it holds the source of its next batch.

use crate::SessionId;
use quire_document::memory::{self, Charge};
use quire_document::{ArrayWriter, Doc, DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_executor::{Awaits, BatchEnd, BatchLimits, Examined, Views};
use quire_storage::rng::{self, Rng};
use quire_storage::{ClusterTime, Interrupt, Interruption};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The estimated memory of a parsed and planned command, in bytes for each byte of the command and
/// for each document and array in it. Measured by the growth of the process with open cursors: a
/// number in a `$nin` takes 51 bytes, a clause of a `$nor` or of an expression's `$and` 700 to 800.
const COMPILED_FACTOR: usize = 5;
const CLAUSE_BYTES: usize = 720;

/// The memory of the smallest cursor: its slot, its operators and their statistics. Measured: 4.9
/// KB each with 20,000 cursors.
const CURSOR_BYTES: usize = 5 << 10;

/// The source of a cursor's batches.
pub trait Source: Send {
    /// Appends the next documents; does not wait for any. A source that reads collections reads on `views`.
    ///
    /// # Errors
    /// The errors of the plan. The cursor is closed after an error.
    fn next_batch(
        &mut self,
        views: &mut dyn Views,
        interrupt: &Arc<Interrupt>,
        limits: BatchLimits,
        out: &mut ArrayWriter<'_>,
    ) -> Result<BatchEnd>;

    /// Returns the keys and documents examined by all batches so far; `None` if the source is not a
    /// plan.
    fn examined(&self) -> Option<Examined> {
        None
    }

    /// Returns an estimate of the bytes that the source holds between two batches: sorts, groups
    /// and rows.
    fn held_bytes(&self) -> u64 {
        self.examined().map_or(0, |examined| examined.counters.held_bytes)
    }

    /// Returns the commits that a getMore waits for after [`quire_executor::Follows::NothingYet`];
    /// `None` if it does not wait.
    fn awaits(&self) -> Option<Awaits> {
        None
    }

    /// Returns the resume token after the last batch of a change stream; `None` for other sources,
    /// and after the end of a stream.
    fn resume_token(&self) -> Option<DocBuf> {
        None
    }

    /// Returns the time at which the source reads, if it always reads at the same time.
    fn read_time(&self) -> Option<ClusterTime> {
        None
    }
}

/// An open cursor.
pub struct Cursor {
    /// `database.collection`, which getMore must name.
    pub namespace: Arc<str>,
    /// The session that opened it. A getMore from another session is refused.
    pub session: Option<SessionId>,
    /// The number of the user who opened it.
    pub owner: [u8; 32],
    /// The number of the transaction that opened it. Only that transaction may continue it.
    pub transaction: Option<i64>,
    /// The API parameters of the opening command. A getMore must repeat them.
    pub api: DocBuf,
    /// The opening command, for `currentOp` and the slow-query log.
    pub command: DocBuf,
    /// The hash of the fingerprint that the opening command has for the recorder.
    pub fingerprint: Option<u64>,
    /// True if the documents must be durable before the client sees them.
    pub durable_reads: bool,
    /// True if the cursor is never closed for being idle.
    pub no_timeout: bool,
    /// The share of the memory of all requests that the cursor holds.
    pub memory: Charge,
    /// The part of `memory` that the parsed command takes, in bytes.
    pub parsed_bytes: usize,
    /// The rest of the opening command's `maxTimeMS`. The getMores use it up.
    pub time_left: Option<Duration>,
    /// The source of the remaining batches.
    pub source: Box<dyn Source>,
}

impl Cursor {
    /// Reserves the memory that a cursor over `source` holds from the memory of all requests. The
    /// command takes `parsed_bytes` of it, see the function [`parsed_bytes`].
    ///
    /// # Errors
    /// 146 ExceededMemoryLimit if the cursors and requests of the server leave too little memory.
    pub fn charge(memory: &mut Charge, parsed_bytes: usize, source: &dyn Source) -> Result<()> {
        let held = usize::try_from(source.held_bytes()).unwrap_or(usize::MAX);
        memory.resize(parsed_bytes.saturating_add(held)).map_err(|_| {
            let text = format!("The cursor was closed: {}", memory::exhausted());
            Error::new(ErrorCode::ExceededMemoryLimit, text)
        })
    }
}

/// Returns an estimate of the memory of a cursor for `command`, in bytes, without the memory of its
/// stages.
pub fn parsed_bytes(command: Doc<'_>) -> usize {
    let clauses = command.iter().map(|element| clauses(element.value())).sum::<usize>();
    CURSOR_BYTES + command.as_bytes().len() * COMPILED_FACTOR + clauses * CLAUSE_BYTES
}

/// Returns the number of documents and arrays in `value`, including itself.
fn clauses(value: Value<'_>) -> usize {
    match value {
        Value::Document(doc) => {
            1 + doc.iter().map(|element| clauses(element.value())).sum::<usize>()
        }
        Value::Array(array) => 1 + array.iter().map(clauses).sum::<usize>(),
        _ => 0,
    }
}

enum Slot {
    /// No command uses the cursor.
    Idle { cursor: Box<Cursor>, since: Instant },
    /// A getMore uses the cursor. Killing the cursor interrupts the getMore.
    Pinned {
        session: Option<SessionId>,
        owner: [u8; 32],
        namespace: Arc<str>,
        interrupt: Arc<Interrupt>,
        killed: bool,
        no_timeout: bool,
    },
}

/// All open cursors.
#[derive(Default)]
pub struct Cursors {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    slots: HashMap<i64, Slot>,
    total_opened: u64,
    timed_out: u64,
    random: Option<Rng>,
}

/// The counts of cursors that `serverStatus` reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct CursorCounts {
    /// Cursors that are open now.
    pub open: u64,
    /// Open cursors that a getMore uses now.
    pub pinned: u64,
    /// Open cursors without a time-out.
    pub open_no_timeout: u64,
    /// Closed for being idle.
    pub timed_out: u64,
    /// Opened since the start.
    pub total_opened: u64,
}

/// A cursor in use by a getMore. Dropping it closes the cursor, except after [`Checkout::keep`].
pub struct Checkout<'c> {
    cursors: &'c Cursors,
    id: i64,
    cursor: Option<Box<Cursor>>,
}

impl Cursors {
    /// Opens a cursor and returns its id, a random positive number.
    pub fn open(&self, cursor: Cursor) -> i64 {
        let mut state = self.lock();
        let id = loop {
            let id = (state.next_random() >> 1) as i64;
            if id != 0 && !state.slots.contains_key(&id) {
                break id;
            }
        };
        state.total_opened += 1;
        state.slots.insert(id, Slot::Idle { cursor: Box::new(cursor), since: Instant::now() });
        id
    }

    /// Takes a cursor for a getMore, so that no other command can use it.
    ///
    /// # Errors
    /// 43 CursorNotFound; 143 CursorInUse; 13 Unauthorized for another namespace; 50736 to 50741 for
    /// another session or transaction.
    pub fn checkout(
        &self,
        id: i64,
        namespace: &str,
        (session, transaction): (Option<SessionId>, Option<i64>),
        interrupt: &Arc<Interrupt>,
    ) -> Result<Checkout<'_>> {
        let mut state = self.lock();
        let cursor = match state.slots.get(&id) {
            None => return Err(not_found(id)),
            Some(Slot::Pinned { .. }) => {
                let text = format!("cursor id {id} is already in use");
                return Err(Error::new(ErrorCode::CursorInUse, text));
            }
            Some(Slot::Idle { cursor, .. }) => cursor,
        };
        check_owner(cursor, id, namespace, session)?;
        check_transaction(cursor, id, transaction)?;
        let pinned = Slot::Pinned {
            session: cursor.session,
            owner: cursor.owner,
            namespace: Arc::clone(&cursor.namespace),
            interrupt: Arc::clone(interrupt),
            killed: false,
            no_timeout: cursor.no_timeout,
        };
        let Some(Slot::Idle { cursor, .. }) = state.slots.insert(id, pinned) else {
            return Err(not_found(id));
        };
        Ok(Checkout { cursors: self, id, cursor: Some(cursor) })
    }

    /// Returns the number of the user who opened a cursor, and the cursor's namespace; `None` if there
    /// is no cursor with this id.
    pub fn owner(&self, id: i64) -> Option<([u8; 32], Arc<str>)> {
        match self.lock().slots.get(&id)? {
            Slot::Idle { cursor, .. } => Some((cursor.owner, Arc::clone(&cursor.namespace))),
            Slot::Pinned { owner, namespace, .. } => Some((*owner, Arc::clone(namespace))),
        }
    }

    /// Closes a cursor of any namespace. Returns false if there is no cursor with this id.
    pub fn kill(&self, id: i64) -> bool {
        let mut state = self.lock();
        match state.slots.get_mut(&id) {
            Some(Slot::Pinned { interrupt, killed, .. }) => {
                *killed = true;
                interrupt.kill(Interruption::Killed);
                true
            }
            Some(Slot::Idle { .. }) => state.slots.remove(&id).is_some(),
            None => false,
        }
    }

    /// Closes the cursors of the sessions for which `which` returns true.
    pub fn kill_sessions(&self, which: impl Fn(&SessionId) -> bool) {
        let mut state = self.lock();
        state.slots.retain(|_, slot| match slot {
            Slot::Idle { cursor, .. } => !cursor.session.as_ref().is_some_and(&which),
            Slot::Pinned { session, interrupt, killed, .. } => {
                if session.as_ref().is_some_and(&which) {
                    *killed = true;
                    interrupt.kill(Interruption::Killed);
                }
                true
            }
        });
    }

    /// Returns the sessions that have open cursors.
    pub fn session_ids(&self) -> HashSet<SessionId> {
        let state = self.lock();
        let sessions = state.slots.values().filter_map(|slot| match slot {
            Slot::Idle { cursor, .. } => cursor.session,
            Slot::Pinned { session, .. } => *session,
        });
        sessions.collect()
    }

    /// Closes the cursors without a session that have been idle for `limit`. Cursors of a session
    /// end with the session.
    pub fn close_idle(&self, limit: Duration) {
        let mut state = self.lock();
        let before = state.slots.len();
        state.slots.retain(|_, slot| match slot {
            Slot::Idle { cursor, since } => {
                cursor.no_timeout || cursor.session.is_some() || since.elapsed() < limit
            }
            Slot::Pinned { .. } => true,
        });
        let closed = before - state.slots.len();
        state.timed_out += closed as u64;
    }

    /// Returns what `row` makes of the cursors that no command uses, in no particular order. Its arguments
    /// are the id, the cursor, and the time since its last use.
    pub fn idle<T>(&self, mut row: impl FnMut(i64, &Cursor, Duration) -> Option<T>) -> Vec<T> {
        let state = self.lock();
        let rows = state.slots.iter().filter_map(|(id, slot)| match slot {
            Slot::Idle { cursor, since } => row(*id, cursor, since.elapsed()),
            Slot::Pinned { .. } => None,
        });
        rows.collect()
    }

    /// Returns the counts of open and closed cursors.
    pub fn counts(&self) -> CursorCounts {
        let state = self.lock();
        let mut counts = CursorCounts {
            open: state.slots.len() as u64,
            timed_out: state.timed_out,
            total_opened: state.total_opened,
            ..CursorCounts::default()
        };
        for slot in state.slots.values() {
            match slot {
                Slot::Idle { cursor, .. } => counts.open_no_timeout += u64::from(cursor.no_timeout),
                Slot::Pinned { no_timeout, .. } => {
                    counts.pinned += 1;
                    counts.open_no_timeout += u64::from(*no_timeout);
                }
            }
        }
        counts
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check_owner(
    cursor: &Cursor,
    id: i64,
    namespace: &str,
    session: Option<SessionId>,
) -> Result<()> {
    if *cursor.namespace != *namespace {
        let owner = &cursor.namespace;
        let text = format!(
            "Requested getMore on namespace '{namespace}', but cursor belongs to a different namespace {owner}"
        );
        return Err(Error::new(ErrorCode::Unauthorized, text));
    }
    if cursor.session != session {
        let text = match (cursor.session, session) {
            (Some(_), None) => format!(
                "Cannot run getMore on cursor {id}, which was created in a session, without an lsid"
            ),
            (None, _) => format!(
                "Cannot run getMore on cursor {id}, which was not created in a session, in a session"
            ),
            _ => format!("Cannot run getMore on cursor {id}, which was created in another session"),
        };
        let number = match (cursor.session, session) {
            (Some(_), None) => 50737,
            (None, _) => 50736,
            _ => 50738,
        };
        return Err(Error::location(number, text));
    }
    Ok(())
}

/// Refuses a getMore from outside the transaction that opened the cursor, or from inside another
/// one.
fn check_transaction(cursor: &Cursor, id: i64, transaction: Option<i64>) -> Result<()> {
    let (number, text) = match (cursor.transaction, transaction) {
        (own, other) if own == other => return Ok(()),
        (None, Some(other)) => {
            (50739, format!("which was not created in a transaction, in transaction {other}"))
        }
        (Some(own), None) => {
            (50740, format!("which was created in transaction {own}, without a txnNumber"))
        }
        (Some(own), Some(other)) => {
            (50741, format!("which was created in transaction {own}, in transaction {other}"))
        }
        (None, None) => return Ok(()),
    };
    Err(Error::location(number, format!("Cannot run getMore on cursor {id}, {text}")))
}

fn not_found(id: i64) -> Error {
    Error::new(ErrorCode::CursorNotFound, format!("cursor id {id} not found"))
}

impl State {
    /// Returns the next random number. The generator is seeded by the operating system.
    fn next_random(&mut self) -> u64 {
        self.random.get_or_insert_with(|| Rng::new(rng::word())).next_u64()
    }
}

impl Checkout<'_> {
    /// Returns the cursor; `None` after it was killed.
    pub fn cursor(&mut self) -> Option<&mut Cursor> {
        self.cursor.as_deref_mut()
    }

    /// Returns the cursor to the table for the next getMore. If it was killed meanwhile, it is
    /// closed.
    pub fn keep(mut self) {
        let Some(cursor) = self.cursor.take() else { return };
        let mut state = self.cursors.lock();
        match state.slots.get(&self.id) {
            Some(Slot::Pinned { killed: false, .. }) => {
                state.slots.insert(self.id, Slot::Idle { cursor, since: Instant::now() });
            }
            _ => {
                state.slots.remove(&self.id);
            }
        }
    }
}

impl Drop for Checkout<'_> {
    fn drop(&mut self) {
        if self.cursor.is_some() {
            self.cursors.lock().slots.remove(&self.id);
        }
    }
}
