//! The families of metrics: names and labels for the numbers of `serverStatus`. A metric is a row
//! of [`FAMILIES`].

use Kind::{Counter, Gauge};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use quire_commands::Service;
use quire_document::{DocBuf, Value};
use std::fmt;
use std::sync::Arc;

/// What a number can do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It only grows while the server runs.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// What a number is measured in.
#[derive(Clone, Copy)]
enum Measure {
    Things,
    Seconds,
    Bytes,
}

impl Measure {
    fn unit(self) -> Option<Unit> {
        match self {
            Measure::Things => None,
            Measure::Seconds => Some(Unit::Seconds),
            Measure::Bytes => Some(Unit::Bytes),
        }
    }
}

/// A family of metrics.
#[derive(Clone, Copy)]
struct Family {
    /// The name after `quire_`; that of a counter gets `_total`.
    name: &'static str,
    help: &'static str,
    kind: Kind,
    /// The unit, which ends the name.
    measure: Measure,
    /// What a number of the status is multiplied by.
    scale: f64,
    /// The name of the label; empty for a family of one metric without a label.
    label: &'static str,
    /// The values of the label, and the paths of their numbers in `serverStatus`.
    numbers: &'static [(&'static str, &'static str)],
}

const fn row(
    name: &'static str,
    help: &'static str,
    kind: Kind,
    label: &'static str,
    numbers: &'static [(&'static str, &'static str)],
) -> Family {
    Family { name, help, kind, measure: Measure::Things, scale: 1.0, label, numbers }
}

const fn seconds(scale: f64, family: Family) -> Family {
    Family { measure: Measure::Seconds, scale, ..family }
}

const fn bytes(scale: f64, family: Family) -> Family {
    Family { measure: Measure::Bytes, scale, ..family }
}

const MICROSECOND: f64 = 1e-6;
const MEBIBYTE: f64 = 1_048_576.0;

static FAMILIES: &[Family] = &[
    seconds(0.001, row("uptime", "The time since the start.", Gauge, "", &[("", "uptimeMillis")])),
    row(
        "connections",
        "Connections of clients; the available ones are those that may still come.",
        Gauge,
        "state",
        &[
            ("current", "connections.current"),
            ("active", "connections.active"),
            ("available", "connections.available"),
        ],
    ),
    row(
        "connections_created",
        "Connections that clients have opened.",
        Counter,
        "",
        &[("", "connections.totalCreated")],
    ),
    row(
        "connections_rejected",
        "Connections that were refused.",
        Counter,
        "",
        &[("", "connections.rejected")],
    ),
    row(
        "operations",
        "Statements and commands, by their type.",
        Counter,
        "type",
        &[
            ("insert", "opcounters.insert"),
            ("query", "opcounters.query"),
            ("update", "opcounters.update"),
            ("delete", "opcounters.delete"),
            ("getmore", "opcounters.getmore"),
            ("command", "opcounters.command"),
        ],
    ),
    row(
        "latency_operations",
        "The operations that quire_latency_seconds_total is about.",
        Counter,
        "class",
        &[
            ("reads", "opLatencies.reads.ops"),
            ("writes", "opLatencies.writes.ops"),
            ("commands", "opLatencies.commands.ops"),
        ],
    ),
    seconds(
        MICROSECOND,
        row(
            "latency",
            "The time that operations took.",
            Counter,
            "class",
            &[
                ("reads", "opLatencies.reads.latency"),
                ("writes", "opLatencies.writes.latency"),
                ("commands", "opLatencies.commands.latency"),
            ],
        ),
    ),
    row(
        "documents",
        "Documents that operations have returned or written.",
        Counter,
        "action",
        &[
            ("returned", "metrics.document.returned"),
            ("inserted", "metrics.document.inserted"),
            ("updated", "metrics.document.updated"),
            ("deleted", "metrics.document.deleted"),
        ],
    ),
    row(
        "examined",
        "What operations have looked at: keys of indexes, and documents.",
        Counter,
        "what",
        &[
            ("keys", "metrics.queryExecutor.scanned"),
            ("documents", "metrics.queryExecutor.scannedObjects"),
        ],
    ),
    row(
        "collection_scans",
        "Queries that read a collection without an index.",
        Counter,
        "",
        &[("", "metrics.queryExecutor.collectionScans.total")],
    ),
    row(
        "sorts",
        "Queries that sorted their results.",
        Counter,
        "",
        &[("", "metrics.operation.scanAndOrder")],
    ),
    row(
        "write_conflicts",
        "Writes that began again because another one had changed the same document.",
        Counter,
        "",
        &[("", "metrics.operation.writeConflicts")],
    ),
    row(
        "errors",
        "Operations that failed: by their request, or by the server's fault.",
        Counter,
        "cause",
        &[("request", "asserts.user"), ("server", "asserts.tripwire")],
    ),
    row(
        "transactions",
        "Transactions, by what became of them.",
        Counter,
        "state",
        &[
            ("started", "transactions.totalStarted"),
            ("committed", "transactions.totalCommitted"),
            ("aborted", "transactions.totalAborted"),
        ],
    ),
    row(
        "transactions_open",
        "Transactions that are open.",
        Gauge,
        "",
        &[("", "transactions.currentOpen")],
    ),
    row(
        "sessions",
        "Sessions of clients.",
        Gauge,
        "",
        &[("", "logicalSessionRecordCache.activeSessionsCount")],
    ),
    row(
        "cursors",
        "Open cursors; pinned ones are those that an operation reads.",
        Gauge,
        "state",
        &[
            ("open", "metrics.cursor.open.total"),
            ("pinned", "metrics.cursor.open.pinned"),
            ("no_timeout", "metrics.cursor.open.noTimeout"),
        ],
    ),
    row(
        "cursors_timed_out",
        "Cursors that were closed because no client read them in time.",
        Counter,
        "",
        &[("", "metrics.cursor.timedOut")],
    ),
    row(
        "expired_documents",
        "Documents that indexes with expireAfterSeconds have deleted.",
        Counter,
        "",
        &[("", "metrics.ttl.deletedDocuments")],
    ),
    bytes(
        1.0,
        row(
            "network",
            "What clients have sent and received.",
            Counter,
            "direction",
            &[("in", "network.bytesIn"), ("out", "network.bytesOut")],
        ),
    ),
    row("requests", "Messages of clients.", Counter, "", &[("", "network.numRequests")]),
    bytes(
        MEBIBYTE,
        row(
            "memory",
            "Memory of the process.",
            Gauge,
            "kind",
            &[("resident", "mem.resident"), ("virtual", "mem.virtual")],
        ),
    ),
    bytes(
        1.0,
        row(
            "request_memory",
            "Memory that requests hold, the most that they have held, and the most that they may hold.",
            Gauge,
            "kind",
            &[
                ("used", "mem.requests.usedBytes"),
                ("most", "mem.requests.mostUsedBytes"),
                ("limit", "mem.requests.limitBytes"),
            ],
        ),
    ),
    row(
        "requests_refused",
        "Requests that were refused because a limit was reached.",
        Counter,
        "limit",
        &[
            ("memory", "storageEngine.refusedRequests.memory"),
            ("clock", "storageEngine.refusedRequests.clock"),
        ],
    ),
    bytes(
        1.0,
        row(
            "cache",
            "The engine's cache of blocks: what it holds and may hold; and the write buffers beside it.",
            Gauge,
            "kind",
            &[
                ("used", "wiredTiger.cache.bytes currently in the cache"),
                ("limit", "wiredTiger.cache.maximum bytes configured"),
                ("write_buffers", "wiredTiger.cache.tracked dirty bytes in the cache"),
            ],
        ),
    ),
    row(
        "short_of_space",
        "1 while the disk is full and writes are refused.",
        Gauge,
        "",
        &[("", "storageEngine.isShortOfSpace")],
    ),
    row(
        "writers_waiting",
        "Operations that wait because writes are blocked.",
        Gauge,
        "",
        &[("", "globalLock.currentQueue.writers")],
    ),
    row(
        "catalog",
        "What the databases of users have.",
        Gauge,
        "kind",
        &[
            ("collections", "catalogStats.collections"),
            ("views", "catalogStats.views"),
            ("capped", "catalogStats.capped"),
            ("timeseries", "catalogStats.timeseries"),
        ],
    ),
];

/// Returns the numbers of a service in the OpenMetrics text format.
pub(super) fn text(service: &Service) -> String {
    let mut registry = Registry::with_prefix("quire");
    registry.register_collector(Box::new(Status(Arc::new(service.status()))));
    let mut text = String::new();
    // A string takes all that is written into it.
    let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
    text
}

/// The reply of `serverStatus`.
#[derive(Debug)]
struct Status(Arc<DocBuf>);

impl Status {
    /// Returns the number at a path, whose parts are separated by dots.
    fn number(&self, path: &str) -> Option<f64> {
        let mut value = Value::Document(self.0.as_doc());
        for name in path.split('.') {
            value = value.as_document()?.get(name)?;
        }
        match value {
            Value::Int32(number) => Some(f64::from(number)),
            Value::Int64(number) => Some(number as f64),
            Value::Double(number) => Some(number),
            Value::Bool(is) => Some(f64::from(u8::from(is))),
            _ => None,
        }
    }
}

impl Collector for Status {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for family in FAMILIES {
            let of_family = |number| match family.kind {
                Counter => ConstCounter::new(number).metric_type(),
                Gauge => ConstGauge::new(number).metric_type(),
            };
            let unit = family.measure.unit();
            let (name, help) = (family.name, family.help);
            let mut rows = encoder.encode_descriptor(name, help, unit.as_ref(), of_family(0.0))?;
            for (value, path) in family.numbers {
                let Some(number) = self.number(path) else { continue };
                let number = number * family.scale;
                let labels: &[(&str, &str)] = &[(family.label, *value)];
                let labels = if family.label.is_empty() { &[] } else { labels };
                let row = rows.encode_family(&labels)?;
                match family.kind {
                    Counter => ConstCounter::new(number).encode(row)?,
                    Gauge => ConstGauge::new(number).encode(row)?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_distinct_and_labelled() {
        let names: BTreeSet<&str> = FAMILIES.iter().map(|family| family.name).collect();
        assert_eq!(names.len(), FAMILIES.len());
        for family in FAMILIES {
            assert_eq!(family.label.is_empty(), family.numbers.len() == 1, "{}", family.name);
        }
    }
}
