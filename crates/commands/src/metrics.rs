//! Counters that `serverStatus` shows: written by the server and by dispatch, read by anybody.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that many threads raise.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `amount`.
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Takes `amount` away.
    pub fn sub(&self, amount: u64) {
        self.0.fetch_sub(amount, Ordering::Relaxed);
    }

    /// The number now.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What the listener counts.
#[derive(Default)]
pub struct NetworkMetrics {
    /// Connections that are open.
    pub connections_current: Counter,
    /// Connections accepted since the start.
    pub connections_total: Counter,
    /// Connections refused because of the limit.
    pub connections_rejected: Counter,
    /// The limit on open connections.
    pub connections_max: Counter,
    /// Bytes read from sockets.
    pub bytes_in: Counter,
    /// Bytes written to sockets.
    pub bytes_out: Counter,
    /// Messages read.
    pub requests: Counter,
}

/// How many operations of a kind there were, and how long they took.
#[derive(Default)]
pub struct Latency {
    /// How many.
    pub operations: Counter,
    /// Microseconds, added up.
    pub micros: Counter,
}

impl Latency {
    /// Notes one operation.
    pub fn note(&self, micros: u64) {
        self.operations.add(1);
        self.micros.add(micros);
    }
}

/// Everything that is counted.
#[derive(Default)]
pub struct Metrics {
    /// The listener's part.
    pub network: NetworkMetrics,
    /// Documents inserted.
    pub inserts: Counter,
    /// Queries.
    pub queries: Counter,
    /// Update statements.
    pub updates: Counter,
    /// Delete statements.
    pub deletes: Counter,
    /// getMores.
    pub getmores: Counter,
    /// Other commands.
    pub commands: Counter,
    /// Latency of reading commands.
    pub reads_latency: Latency,
    /// Latency of writing commands.
    pub writes_latency: Latency,
    /// Latency of other commands.
    pub commands_latency: Latency,
    /// Documents that writes and reads returned, inserted, updated, deleted.
    pub documents_returned: Counter,
    /// Documents inserted.
    pub documents_inserted: Counter,
    /// Documents updated.
    pub documents_updated: Counter,
    /// Documents deleted.
    pub documents_deleted: Counter,
    /// Assertions: errors that users caused.
    pub user_errors: Counter,
    /// Commands that failed with an internal error or a panic.
    pub internal_errors: Counter,
}
