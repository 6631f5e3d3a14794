//! The counters of `serverStatus`. The server and dispatch write them.

use crate::frame::command::{Command, PerCommand};
use quire_document::{DocWriter, Value};
use quire_error::{Error, ErrorCode};
use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that many threads change.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `amount` to the counter.
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Subtracts `amount` from the counter.
    pub fn sub(&self, amount: u64) {
        self.0.fetch_sub(amount, Ordering::Relaxed);
    }

    /// Returns the current value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of the listener.
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
    /// Messages that were read from clients.
    pub requests: Counter,
    /// What snappy did.
    pub snappy: CompressionMetrics,
    /// What zstd did.
    pub zstd: CompressionMetrics,
    /// What zlib did.
    pub zlib: CompressionMetrics,
}

/// The counters of a compressor.
#[derive(Default)]
pub struct CompressionMetrics {
    /// The replies that it compressed.
    pub compressor: Flow,
    /// The requests that it decompressed.
    pub decompressor: Flow,
}

/// The size of messages before and after a compressor, without their headers.
#[derive(Default)]
pub struct Flow {
    /// The bytes that the compressor was given.
    pub bytes_in: Counter,
    /// The bytes that it made of them.
    pub bytes_out: Counter,
}

impl Flow {
    /// Counts a message.
    pub fn add(&self, bytes_in: usize, bytes_out: usize) {
        self.bytes_in.add(bytes_in as u64);
        self.bytes_out.add(bytes_out as u64);
    }
}

/// Successful TLS handshakes, by version.
#[derive(Default)]
pub struct TransportMetrics {
    /// Connections with TLS 1.2.
    pub tls12: Counter,
    /// Connections with TLS 1.3.
    pub tls13: Counter,
}

/// Counters of the logins by one mechanism.
#[derive(Default)]
pub struct LoginMetrics {
    /// Logins that were begun.
    pub received: Counter,
    /// Logins that succeeded.
    pub successful: Counter,
    /// Logins that began inside a `hello`.
    pub speculative_received: Counter,
    /// Logins that began inside a `hello` and succeeded.
    pub speculative_successful: Counter,
}

impl LoginMetrics {
    /// Notes that a login begins.
    pub fn begin(&self, speculative: bool) {
        self.received.add(1);
        self.speculative_received.add(speculative.into());
    }

    /// Notes that a login has succeeded.
    pub fn succeed(&self, speculative: bool) {
        self.successful.add(1);
        self.speculative_successful.add(speculative.into());
    }
}

/// The number of operations of a kind, their total duration, and a histogram of durations.
pub struct Latency {
    /// The number of operations.
    pub operations: Counter,
    /// The total duration in microseconds.
    pub micros: Counter,
    spread: [Counter; BUCKETS.len()],
}

/// The lower bounds of the histogram's buckets in microseconds, as in MongoDB: powers of two, from
/// 2048 to 2^21 with one more bucket between each two.
pub const BUCKETS: [u64; 51] = buckets();

const fn buckets() -> [u64; 51] {
    let mut bounds = [0; 51];
    let (mut at, mut power) = (1, 2);
    while at < bounds.len() {
        bounds[at] = power;
        at += 1;
        if power >= 2048 && power < 1 << 21 && at < bounds.len() {
            bounds[at] = power + power / 2;
            at += 1;
        }
        power *= 2;
    }
    bounds
}

impl Default for Latency {
    fn default() -> Self {
        let spread = std::array::from_fn(|_| Counter::default());
        Latency { operations: Counter::default(), micros: Counter::default(), spread }
    }
}

impl Latency {
    /// Notes one operation.
    pub fn note(&self, micros: u64) {
        self.operations.add(1);
        self.micros.add(micros);
        let at = BUCKETS.partition_point(|least| *least <= micros).saturating_sub(1);
        if let Some(bucket) = self.spread.get(at) {
            bucket.add(1);
        }
    }

    /// Returns the buckets that are not empty: lower bound in microseconds, and number of
    /// operations.
    pub fn histogram(&self) -> impl Iterator<Item = (u64, u64)> {
        let buckets = BUCKETS.iter().zip(&self.spread);
        buckets.map(|(least, count)| (*least, count.get())).filter(|(_, count)| *count > 0)
    }

    /// Appends the fields that `serverStatus` and `$collStats` show.
    pub fn write(&self, histogram: bool, out: &mut DocWriter<'_>) {
        if histogram {
            let mut list = out.array("histogram");
            for (least, count) in self.histogram() {
                list.document().append("micros", least as i64).append("count", count as i64);
            }
        }
        out.append("latency", self.micros.get() as i64);
        out.append("ops", self.operations.get() as i64);
    }
}

/// The counters of a command.
#[derive(Default)]
pub struct CommandCount {
    /// How many times it ran.
    pub total: Counter,
    /// How many times it failed.
    pub failed: Counter,
}

/// The counters of each command.
#[derive(Default)]
pub struct CommandCounts {
    by_row: PerCommand<CommandCount>,
    /// Requests for commands that do not exist.
    pub unknown: Counter,
}

impl CommandCounts {
    /// Returns zero counts for the commands of a table.
    pub(crate) fn new(rows: &'static [Command]) -> Self {
        let by_row = PerCommand::new(rows, |_| CommandCount::default());
        CommandCounts { by_row, unknown: Counter::default() }
    }

    /// Notes one run.
    pub fn note(&self, command: &Command, failed: bool) {
        if let Some(count) = self.by_row.get(command) {
            count.total.add(1);
            if failed {
                count.failed.add(1);
            }
        }
    }

    /// Returns the names of all commands in alphabetical order, and their counts.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &CommandCount)> {
        let mut all: Vec<_> = self.by_row.iter().map(|(row, count)| (row.name, count)).collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all.into_iter()
    }
}

/// Counts updates that are pipelines and updates with array filters.
#[derive(Default)]
pub struct UpdateForms {
    /// Updates that are pipelines.
    pub pipeline: Counter,
    /// Updates with array filters.
    pub array_filters: Counter,
}

impl UpdateForms {
    /// Notes one update.
    pub fn note(&self, update: Option<Value<'_>>, has_array_filters: bool) {
        if matches!(update, Some(Value::Array(_))) {
            self.pipeline.add(1);
        }
        if has_array_filters {
            self.array_filters.add(1);
        }
    }
}

/// All counters of a server.
#[derive(Default)]
pub struct Metrics {
    /// The counters of the listener.
    pub network: NetworkMetrics,
    /// Counters of encrypted connections.
    pub transport: TransportMetrics,
    /// Logins by MONGODB-X509.
    pub x509: LoginMetrics,
    /// Logins by SCRAM-SHA-1.
    pub scram_sha1: LoginMetrics,
    /// Logins by SCRAM-SHA-256.
    pub scram_sha256: LoginMetrics,
    /// Documents that were inserted.
    pub inserts: Counter,
    /// Queries that were run.
    pub queries: Counter,
    /// Update statements that were run.
    pub updates: Counter,
    /// How the statements of `update` change documents.
    pub update_forms: UpdateForms,
    /// How `findAndModify` changes documents.
    pub find_and_modify_forms: UpdateForms,
    /// Delete statements that were run.
    pub deletes: Counter,
    /// Runs of the command `getMore`.
    pub getmores: Counter,
    /// Runs of all other commands.
    pub commands: Counter,
    /// Latency of reading commands.
    pub reads_latency: Latency,
    /// Latency of writing commands.
    pub writes_latency: Latency,
    /// Latency of other commands.
    pub commands_latency: Latency,
    /// Documents that writes and reads returned, inserted, updated, deleted.
    pub documents_returned: Counter,
    /// Documents that were inserted.
    pub documents_inserted: Counter,
    /// Documents that were updated.
    pub documents_updated: Counter,
    /// Documents that were deleted.
    pub documents_deleted: Counter,
    /// Index keys examined.
    pub keys_examined: Counter,
    /// Documents that were examined.
    pub docs_examined: Counter,
    /// Operations that sorted.
    pub sorts: Counter,
    /// Operations that scanned a whole collection.
    pub collection_scans: Counter,
    /// The counters of each command.
    pub by_command: CommandCounts,
    /// Documents that TTL indexes removed.
    pub ttl_deleted: Counter,
    /// Passes over the expiring indexes.
    pub ttl_passes: Counter,
    /// Rounds of these passes in which each index got its share.
    pub ttl_sub_passes: Counter,
    /// Write concerns that were not satisfied.
    pub write_concerns: WriteConcernMetrics,
    /// Assertions: errors that users caused.
    pub user_errors: Counter,
    /// Commands that failed with an internal error or a panic.
    pub internal_errors: Counter,
}

/// The counters of write concerns that were not satisfied.
#[derive(Default)]
pub struct WriteConcernMetrics {
    /// Concerns that were not satisfied within their `wtimeout`.
    pub timed_out: Counter,
    /// Of these, the ones of the server's default.
    pub default_timed_out: Counter,
    /// Concerns of the server's default that one member cannot satisfy.
    pub default_unsatisfiable: Counter,
}

impl WriteConcernMetrics {
    /// Counts the error of a concern, which is the client's own or the server's default.
    pub fn note(&self, error: &Error, is_default: bool) {
        match error.code() {
            ErrorCode::WriteConcernTimeout => {
                self.timed_out.add(1);
                self.default_timed_out.add(u64::from(is_default));
            }
            _ => self.default_unsatisfiable.add(u64::from(is_default)),
        }
    }
}

impl Metrics {
    /// Returns zero counters for the commands of a table.
    pub(crate) fn new(rows: &'static [Command]) -> Self {
        Metrics { by_command: CommandCounts::new(rows), ..Metrics::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_concerns_are_counted_by_their_origin() {
        let counts = WriteConcernMetrics::default();
        let timed_out = Error::new(ErrorCode::WriteConcernTimeout, "late");
        let unsatisfiable = Error::new(ErrorCode::UnsatisfiableWriteConcern, "too few");
        counts.note(&timed_out, false);
        counts.note(&timed_out, true);
        counts.note(&unsatisfiable, false);
        let shown = [&counts.timed_out, &counts.default_timed_out, &counts.default_unsatisfiable];
        assert_eq!(shown.map(Counter::get), [2, 1, 0]);
        counts.note(&unsatisfiable, true);
        assert_eq!(shown.map(Counter::get), [2, 1, 1]);
    }

    #[test]
    fn buckets_rise_and_each_counts_its_range() {
        assert!(BUCKETS.is_sorted());
        assert_eq!(BUCKETS[..4], [0, 2, 4, 8]);
        assert_eq!(BUCKETS[11..15], [2048, 3072, 4096, 6144]);
        assert_eq!(BUCKETS[50], 1 << 40);
        let latency = Latency::default();
        [0, 1, 2, 3071, 3072, u64::MAX].into_iter().for_each(|micros| latency.note(micros));
        let shown: Vec<_> = latency.histogram().collect();
        assert_eq!(shown, [(0, 2), (2, 1), (2048, 1), (3072, 1), (1 << 40, 1)]);
    }
}
