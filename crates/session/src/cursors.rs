//! The open cursors of a server: ids, owners, time-outs. A cursor pins nothing in the engine; it
//! holds whatever gives its next batch.

use crate::SessionId;
use quire_document::memory::Charge;
use quire_document::{ArrayWriter, Doc, DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_executor::{BatchEnd, BatchLimits, Examined, Views};
use quire_mql::context::process_memory;
use quire_storage::rng::{self, Rng};
use quire_storage::{ClusterTime, Interrupt, Interruption};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The memory that a command takes once it is parsed and planned: for each of its bytes, and for
/// each document and array in it. Measured by the growth of the process with open cursors: a number
/// of a `$nin` takes 51 bytes, a clause of a `$nor` or of an expression's `$and` 700 to 800.
const COMPILED_FACTOR: usize = 5;
const CLAUSE_BYTES: usize = 720;

/// What the smallest cursor takes: its place, its operators and their statistics. 20,000 of them took
/// 4.9 KB each.
const CURSOR_BYTES: usize = 5 << 10;

/// Gives a cursor's batches.
pub trait Source: Send {
    /// Appends the next documents, read on `views` where the source reads at all.
    ///
    /// # Errors
    /// What the plan meets; the cursor is closed afterwards.
    fn next_batch(
        &mut self,
        views: &mut dyn Views,
        interrupt: &Arc<Interrupt>,
        limits: BatchLimits,
        out: &mut ArrayWriter<'_>,
    ) -> Result<BatchEnd>;

    /// What all batches so far have looked at; `None` for what is no plan.
    fn examined(&self) -> Option<Examined> {
        None
    }

    /// Bytes that it holds between two batches, roughly: what is sorted and grouped, and rows.
    fn held_bytes(&self) -> u64 {
        self.examined().map_or(0, |examined| examined.counters.held_bytes)
    }

    /// The time at which it reads, if that stays the same.
    fn read_time(&self) -> Option<ClusterTime> {
        None
    }
}

/// An open cursor.
pub struct Cursor {
    /// `database.collection`, which getMore must name.
    pub namespace: String,
    /// The session that opened it; a getMore of another one is refused.
    pub session: Option<SessionId>,
    /// The digest of the user who opened it.
    pub owner: [u8; 32],
    /// The number of the transaction that opened it; only that reads on.
    pub transaction: Option<i64>,
    /// The API parameters that opened it, which getMore must repeat.
    pub api: DocBuf,
    /// The command that opened it, for `currentOp` and slow-query lines.
    pub command: DocBuf,
    /// What it gives must be on disk before the client sees it.
    pub durable_reads: bool,
    /// Never closed for being idle.
    pub no_timeout: bool,
    /// What it holds, as a part of the memory of all requests.
    pub memory: Charge,
    /// What its command takes of that.
    pub parsed_bytes: usize,
    /// What is left of the opening command's `maxTimeMS`: getMores use it up.
    pub time_left: Option<Duration>,
    /// Gives the batches that are left.
    pub source: Box<dyn Source>,
}

impl Cursor {
    /// Takes what a cursor over `source` holds out of the memory of all requests. Its command takes
    /// `parsed_bytes`, see [`parsed_bytes`].
    ///
    /// # Errors
    /// 146 ExceededMemoryLimit: what the server has lent to cursors and requests leaves no room.
    pub fn charge(memory: &mut Charge, parsed_bytes: usize, source: &dyn Source) -> Result<()> {
        let held = usize::try_from(source.held_bytes()).unwrap_or(usize::MAX);
        memory.resize(parsed_bytes.saturating_add(held)).map_err(|_| {
            let text = format!("The cursor was closed: {}", process_memory());
            Error::new(ErrorCode::ExceededMemoryLimit, text)
        })
    }
}

/// Returns the memory that a cursor of `command` takes, without what its stages hold; roughly.
pub fn parsed_bytes(command: Doc<'_>) -> usize {
    let clauses = command.iter().map(|element| clauses(element.value())).sum::<usize>();
    CURSOR_BYTES + command.as_bytes().len() * COMPILED_FACTOR + clauses * CLAUSE_BYTES
}

/// The documents and arrays in a value, with itself.
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
    /// No command uses it.
    Idle { cursor: Box<Cursor>, since: Instant },
    /// A getMore runs; killing it interrupts that.
    Pinned {
        session: Option<SessionId>,
        owner: [u8; 32],
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

/// How many cursors there are and were.
#[derive(Clone, Copy, Debug, Default)]
pub struct CursorCounts {
    /// Cursors that are open now.
    pub open: u64,
    /// Of these, in use by a getMore.
    pub pinned: u64,
    /// Of these, without a time-out.
    pub open_no_timeout: u64,
    /// Closed for being idle.
    pub timed_out: u64,
    /// Opened since the start.
    pub total_opened: u64,
}

/// A cursor in use by a getMore. Dropping it closes the cursor; [`Checkout::keep`] keeps it open.
pub struct Checkout<'c> {
    cursors: &'c Cursors,
    id: i64,
    cursor: Option<Box<Cursor>>,
}

impl Cursors {
    /// Opens a cursor and gives its id: random, positive, never 0.
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

    /// Takes a cursor for a getMore.
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
            interrupt: Arc::clone(interrupt),
            killed: false,
            no_timeout: cursor.no_timeout,
        };
        let Some(Slot::Idle { cursor, .. }) = state.slots.insert(id, pinned) else {
            return Err(not_found(id));
        };
        Ok(Checkout { cursors: self, id, cursor: Some(cursor) })
    }

    /// Returns the digest of the user who opened a cursor, and the cursor's namespace where no
    /// getMore uses it now; `None` if there is no cursor of that id.
    pub fn owner(&self, id: i64) -> Option<([u8; 32], Option<String>)> {
        match self.lock().slots.get(&id)? {
            Slot::Idle { cursor, .. } => Some((cursor.owner, Some(cursor.namespace.clone()))),
            Slot::Pinned { owner, .. } => Some((*owner, None)),
        }
    }

    /// Closes a cursor, under whatever namespace; false if there is none of that id.
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

    /// Closes the cursors of the sessions that `which` picks.
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

    /// The sessions that open cursors belong to.
    pub fn session_ids(&self) -> HashSet<SessionId> {
        let state = self.lock();
        let sessions = state.slots.values().filter_map(|slot| match slot {
            Slot::Idle { cursor, .. } => cursor.session,
            Slot::Pinned { session, .. } => *session,
        });
        sessions.collect()
    }

    /// Closes cursors that were idle for this time. Cursors of a session end with the session.
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

    /// How many cursors there are and were.
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
    if cursor.namespace != namespace {
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

/// Refuses a getMore that does not belong to the transaction that opened the cursor.
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
    /// The next word of a generator that begins with a number of the system.
    fn next_random(&mut self) -> u64 {
        self.random.get_or_insert_with(|| Rng::new(rng::word())).next_u64()
    }
}

impl Checkout<'_> {
    /// Returns the cursor; `None` once it was killed.
    pub fn cursor(&mut self) -> Option<&mut Cursor> {
        self.cursor.as_deref_mut()
    }

    /// Gives the cursor back for the next getMore, unless it was killed meanwhile.
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
