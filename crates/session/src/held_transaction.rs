//! What a session holds of its transaction, and how a server counts transactions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quire_collections::Writer;
use quire_document::DocBuf;
use quire_storage::ClusterTime;

/// The transaction of a session's newest number.
pub(crate) struct Held {
    pub number: i64,
    pub state: State,
    pub started: Instant,
    pub start: Start,
    /// When the command began that runs in it now.
    pub joined: Option<Instant>,
    /// How long commands have run in it, without the one that runs now.
    pub active: Duration,
    /// The collections that it has read or written, by their full names.
    pub used: Vec<String>,
}

/// How far a transaction has got.
pub(crate) enum State {
    /// The writer; `None` while a command has it, and before the first statement.
    InProgress(Option<Box<Writer>>),
    /// Its writes are visible.
    Committed,
    /// Its writes are undone.
    Aborted,
}

/// How many transactions a server has begun and ended.
#[derive(Debug, Default)]
pub struct TransactionCounters {
    pub(crate) started: AtomicU64,
    pub(crate) committed: AtomicU64,
    pub(crate) aborted: AtomicU64,
}

/// What [`TransactionCounters`] shows.
#[derive(Debug, Clone, Copy, Default)]
pub struct TransactionCounts {
    /// Begun since the start.
    pub started: u64,
    /// Committed since the start.
    pub committed: u64,
    /// Aborted since the start, by the client or by the server.
    pub aborted: u64,
}

/// How a transaction begins.
#[derive(Debug, Clone)]
pub struct Start {
    /// The time of day, in milliseconds.
    pub now_ms: i64,
    /// The time whose state it reads; everything committed so far if none.
    pub at: Option<ClusterTime>,
    /// The parameters of the Stable API that its other commands must repeat.
    pub api: DocBuf,
    /// What `currentOp` shows of its parameters.
    pub parameters: DocBuf,
    /// What `currentOp` shows of the client that began it.
    pub client: DocBuf,
}

impl TransactionCounters {
    /// Returns the counters as they are now.
    pub fn counts(&self) -> TransactionCounts {
        TransactionCounts {
            started: self.started.load(Ordering::Relaxed),
            committed: self.committed.load(Ordering::Relaxed),
            aborted: self.aborted.load(Ordering::Relaxed),
        }
    }
}
