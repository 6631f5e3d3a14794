//! The state of a session's transaction, and the server's counters of transactions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quire_access::Action;
use quire_collections::Writer;
use quire_document::DocBuf;
use quire_storage::ClusterTime;

/// The transaction of a session's newest number.
pub(crate) struct Held {
    pub number: i64,
    pub state: State,
    pub started: Instant,
    pub start: Start,
    /// The start of the command that runs in it now.
    pub joined: Option<Instant>,
    /// The total time of the commands that have ended in it.
    pub active: Duration,
    /// The full names of the collections that it has read or written.
    pub used: Vec<String>,
    /// The rights that its statements needed.
    pub rights: Vec<NeededRight>,
}

/// A right that a statement of a transaction needed. Its commit needs it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededRight {
    /// The database that it is on.
    pub db: String,
    /// The collection; `None` for the database as a whole.
    pub collection: Option<String>,
    /// What the statement did there.
    pub action: Action,
}

/// The state of a transaction.
pub(crate) enum State {
    /// Open. The writer is `None` while a command uses it, and before the first statement.
    InProgress(Option<Box<Writer>>),
    /// Committed: its writes are visible.
    Committed,
    /// Aborted: its writes are discarded.
    Aborted,
}

/// Counters of the transactions that a server has begun and ended.
#[derive(Debug, Default)]
pub struct TransactionCounters {
    pub(crate) started: AtomicU64,
    pub(crate) committed: AtomicU64,
    pub(crate) aborted: AtomicU64,
}

/// The values of [`TransactionCounters`] at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct TransactionCounts {
    /// Begun since the start of the server.
    pub started: u64,
    /// Committed since the start of the server.
    pub committed: u64,
    /// Aborted since the start of the server, by the client or by the server.
    pub aborted: u64,
}

/// The parameters with which a transaction begins.
#[derive(Debug, Clone)]
pub struct Start {
    /// The wall-clock time, in milliseconds since 1970.
    pub now_ms: i64,
    /// The time of its snapshot; `None` for the latest committed state.
    pub at: Option<ClusterTime>,
    /// The parameters of the Stable API. Every later command of the transaction must repeat them.
    pub api: DocBuf,
    /// The transaction's parameters as `currentOp` shows them.
    pub parameters: DocBuf,
    /// The client that began it, as `currentOp` shows it.
    pub client: DocBuf,
}

impl TransactionCounters {
    /// Returns the current values of the counters.
    pub fn counts(&self) -> TransactionCounts {
        TransactionCounts {
            started: self.started.load(Ordering::Relaxed),
            committed: self.committed.load(Ordering::Relaxed),
            aborted: self.aborted.load(Ordering::Relaxed),
        }
    }
}
