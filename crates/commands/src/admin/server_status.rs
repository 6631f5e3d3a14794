//! `serverStatus`: the counters that monitoring reads, in MongoDB's shape.

use crate::admin::server_security;
use crate::frame::MONGODB_VERSION;
use crate::frame::args::is_generic;
use crate::frame::command::Kind;
use crate::frame::context::Context;
use crate::frame::host::{host_name, proc_number};
use crate::frame::metrics::{Latency, Metrics};
use crate::frame::service::{Refusals, Service, Topology, now_ms};
use quire_catalog::Collection;
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::Result;
use quire_mql::expression::is_true;

/// Writes a section. The value is what the request says about the section.
type Write = fn(&Service, Option<Value<'_>>, &mut DocWriter<'_>);

/// A section: its name, whether it is shown by default, and its writer.
type Section = (&'static str, bool, Write);

/// The sections in the order of the reply.
const SECTIONS: &[Section] = &[
    ("asserts", true, asserts),
    ("catalogStats", true, catalog),
    ("connections", true, connections),
    ("extra_info", true, extra_info),
    ("globalLock", true, global_lock),
    ("indexBuilds", true, index_builds),
    ("jobs", true, jobs),
    ("locks", true, empty),
    ("logicalSessionRecordCache", true, sessions),
    ("mem", true, memory),
    ("metrics", true, metrics),
    ("mirroredReads", false, mirrored_reads),
    ("network", true, network),
    ("opLatencies", true, latencies),
    ("opcounters", true, opcounters),
    ("opcountersRepl", true, opcounters_repl),
    ("repl", true, repl),
    ("security", true, server_security::security),
    ("storageEngine", true, storage_engine),
    ("transactions", true, transactions),
    ("transportSecurity", true, server_security::transport),
    ("wiredTiger", true, wired_tiger),
];

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    write(cx.service, body, reply);
    Ok(())
}

impl Service {
    /// Returns what `serverStatus` shows by default.
    pub fn status(&self) -> DocBuf {
        DocBuf::build(|out| write(self, Doc::empty(), out))
    }
}

fn write(service: &Service, body: Doc<'_>, reply: &mut DocWriter<'_>) {
    let uptime = service.started.elapsed();
    reply.append("host", host_name().as_str()).append("version", MONGODB_VERSION);
    reply.append("process", "mongod");
    reply.array("service").push("shard");
    reply.append("pid", i64::from(std::process::id()));
    reply.append("uptime", uptime.as_secs() as f64);
    reply.append("uptimeMillis", uptime.as_millis() as i64);
    reply.append("uptimeEstimate", uptime.as_secs() as i64);
    reply.append("localTime", Value::Date(now_ms()));
    let member = service.options.topology != Topology::Standalone;
    for (name, shown, write) in SECTIONS {
        if wanted(body, name).unwrap_or(*shown) && (member || *name != "repl") {
            write(service, body.get(name), &mut reply.document(name));
        }
    }
}

/// Returns true if the request includes a section, false if it excludes it, `None` if it does not
/// mention it.
fn wanted(body: Doc<'_>, section: &str) -> Option<bool> {
    let asked = |name: &str| body.get(name).map(|flag| is_true(Some(flag)));
    let none = asked("none").unwrap_or(false) || asked("all") == Some(false);
    let all = asked("all") == Some(true);
    match asked(section).filter(|_| !is_generic(section.as_bytes())) {
        Some(answer) => Some(answer),
        None if none => Some(false),
        None if all => Some(true),
        None => None,
    }
}

/// Writes nothing: document locks do not outlive a statement, so there is nothing to count.
fn empty(_service: &Service, _asked: Option<Value<'_>>, _section: &mut DocWriter<'_>) {}

fn catalog(service: &Service, _asked: Option<Value<'_>>, section: &mut DocWriter<'_>) {
    let catalog = service.store.catalog();
    let internal = |collection: &Collection| {
        let namespace = &collection.namespace;
        namespace.is_system() || matches!(namespace.db(), "admin" | "config" | "local")
    };
    let own = catalog.collections().filter(|collection| internal(collection)).count();
    let all = catalog.collections().count();
    let users = |is: fn(&Collection) -> bool| {
        catalog.collections().filter(|found| !internal(found) && is(found)).count() as i64
    };
    let capped = users(|found| found.options.capped().is_some());
    let clustered = users(|found| found.options.clustered_index().is_some());
    let series = users(Collection::is_time_series);
    section.append("collections", (all - own) as i64).append("capped", capped);
    section.append("clustered", clustered).append("timeseries", series).append("views", 0i64);
    section.append("internalCollections", own as i64).append("internalViews", 0i64);
}

/// Writes zeros: a replica set with one member has no other member to mirror reads to.
fn mirrored_reads(_service: &Service, _asked: Option<Value<'_>>, section: &mut DocWriter<'_>) {
    section.append("seen", 0i64).append("sent", 0i64);
}

fn asserts(service: &Service, _asked: Option<Value<'_>>, section: &mut DocWriter<'_>) {
    section.append("regular", 0).append("warning", 0).append("msg", 0);
    section.append("user", service.metrics.user_errors.get() as i32);
    section.append("tripwire", service.metrics.internal_errors.get() as i32);
    section.append("rollovers", 0);
}

fn connections(service: &Service, _asked: Option<Value<'_>>, section: &mut DocWriter<'_>) {
    let network = &service.metrics.network;
    let (current, total) = (network.connections_current.get(), network.connections_total.get());
    section.append("current", current as i32);
    section.append("available", network.connections_max.get().saturating_sub(current) as i32);
    section.append("totalCreated", total as i32);
    section.append("rejected", network.connections_rejected.get() as i32);
    section.append("active", service.operations.list().len() as i32);
    section.append("threaded", current as i32);
}

fn extra_info(_service: &Service, _asked: Option<Value<'_>>, section: &mut DocWriter<'_>) {
    section.append("note", "fields vary by platform");
    section.append("page_faults", 0i64);
}

fn global_lock(service: &Service, _asked: Option<Value<'_>>, section: &mut DocWriter<'_>) {
    section.append("totalTime", service.started.elapsed().as_micros() as i64);
    let waiting = service.write_gate.state().1 as i32;
    {
        let mut queue = section.document("currentQueue");
        queue.append("total", waiting).append("readers", 0).append("writers", waiting);
    }
    let running = service.operations.list();
    let of = |kind: Kind| running.iter().filter(|row| row.command.kind == kind).count() as i32;
    let (readers, writers) = (of(Kind::Read), of(Kind::Write));
    let mut clients = section.document("activeClients");
    clients.append("total", readers + writers);
    clients.append("readers", readers).append("writers", writers);
}

/// Writes the counts of index builds. A build needs no side table and no votes.
fn index_builds(service: &Service, _asked: Option<Value<'_>>, section: &mut DocWriter<'_>) {
    let counts = service.store.index_build_counts();
    section.append("total", counts.begun as i32);
    section.append("killedDueToInsufficientDiskSpace", 0).append("failedDueToDataCorruption", 0);
    let mut phases = section.document("phases");
    phases.append("scanCollection", counts.begun as i32).append("drainSideWritesTable", 0);
    phases.append("waitForCommitQuorum", 0).append("drainSideWritesTableOnCommit", 0);
    phases.append("processConstraintsViolatonTableOnCommit", counts.scanned as i32);
    phases.append("commit", counts.committed as i32);
}

fn sessions(service: &Service, _asked: Option<Value<'_>>, section: &mut DocWriter<'_>) {
    section.append("activeSessionsCount", service.sessions.len() as i32);
}

fn memory(service: &Service, _asked: Option<Value<'_>>, section: &mut DocWriter<'_>) {
    section.append("bits", usize::BITS as i32);
    section.append("resident", (proc_number("/proc/self/status", "VmRSS:") / 1024) as i32);
    section.append("virtual", (proc_number("/proc/self/status", "VmSize:") / 1024) as i32);
    section.append("supported", true);
    // Quire's own: the memory that all requests share.
    service.write_memory(&mut section.document("requests"));
}

fn metrics(service: &Service, _asked: Option<Value<'_>>, section: &mut DocWriter<'_>) {
    let metrics = &service.metrics;
    command_counts(metrics, &mut section.document("commands"));
    {
        let cursors = service.cursors.counts();
        let mut cursor = section.document("cursor");
        cursor.append("timedOut", cursors.timed_out as i64);
        cursor.append("totalOpened", cursors.total_opened as i64);
        let mut open = cursor.document("open");
        open.append("noTimeout", cursors.open_no_timeout as i64);
        open.append("pinned", cursors.pinned as i64);
        open.append("total", cursors.open as i64);
    }
    {
        let mut document = section.document("document");
        document.append("deleted", metrics.documents_deleted.get() as i64);
        document.append("inserted", metrics.documents_inserted.get() as i64);
        document.append("returned", metrics.documents_returned.get() as i64);
        document.append("updated", metrics.documents_updated.get() as i64);
    }
    {
        let concerns = &metrics.write_concerns;
        let mut last_error = section.document("getLastError");
        {
            let mut default = last_error.document("default");
            default.append("unsatisfiable", concerns.default_unsatisfiable.get() as i64);
            default.append("wtimeouts", concerns.default_timed_out.get() as i64);
        }
        // A replica set of one member waits for no other.
        last_error.document("wtime").append("num", 0).append("totalMillis", 0);
        last_error.append("wtimeouts", concerns.timed_out.get() as i64);
    }
    {
        let mut operation = section.document("operation");
        operation.append("scanAndOrder", metrics.sorts.get() as i64);
        operation.append("writeConflicts", service.engine.stats().conflicts as i64);
    }
    {
        let mut executor = section.document("queryExecutor");
        executor.append("scanned", metrics.keys_examined.get() as i64);
        executor.append("scannedObjects", metrics.docs_examined.get() as i64);
        let scans = metrics.collection_scans.get() as i64;
        executor.document("collectionScans").append("nonTailable", scans).append("total", scans);
    }
    let mut ttl = section.document("ttl");
    ttl.append("deletedDocuments", metrics.ttl_deleted.get() as i64);
    ttl.append("invalidTTLIndexSkips", 0i64);
    ttl.append("passes", metrics.ttl_passes.get() as i64);
    ttl.append("subPasses", metrics.ttl_sub_passes.get() as i64);
}

/// Writes the counters of each kind of jobs, and the number of dropped ranges whose space the engine
/// still has to free.
fn jobs(service: &Service, _asked: Option<Value<'_>>, section: &mut DocWriter<'_>) {
    for (kind, counts, current) in service.jobs.counts() {
        let mut row = section.document(kind);
        row.append("current", current as i64);
        row.append("steps", counts.steps as i64).append("done", counts.done as i64);
        row.append("failures", counts.failures as i64).append("ended", counts.ended as i64);
    }
    let ranges = service.engine.stats().ranges_dropped;
    section.document("droppedRanges").append("current", ranges as i64);
}

/// Appends how often each command ran and failed.
fn command_counts(metrics: &Metrics, section: &mut DocWriter<'_>) {
    let counts = &metrics.by_command;
    section.append("<UNKNOWN>", counts.unknown.get() as i64);
    for (name, count) in counts.all().filter(|(_, count)| count.total.get() > 0) {
        let forms = match name {
            "update" => Some(&metrics.update_forms),
            "findAndModify" => Some(&metrics.find_and_modify_forms),
            _ => None,
        };
        let mut entry = section.document(name);
        if let Some(forms) = forms {
            entry.append("arrayFilters", forms.array_filters.get() as i64);
        }
        entry.append("failed", count.failed.get() as i64);
        if let Some(forms) = forms {
            entry.append("pipeline", forms.pipeline.get() as i64);
        }
        entry.append("total", count.total.get() as i64);
    }
}

fn network(service: &Service, _asked: Option<Value<'_>>, section: &mut DocWriter<'_>) {
    let network = &service.metrics.network;
    let compressors =
        [("snappy", &network.snappy), ("zstd", &network.zstd), ("zlib", &network.zlib)];
    // The bytes of the messages as they are without compression.
    let (mut bytes_in, mut bytes_out) = (network.bytes_in.get(), network.bytes_out.get());
    for (_, metrics) in compressors {
        let (requests, replies) = (&metrics.decompressor, &metrics.compressor);
        bytes_in = (bytes_in + requests.bytes_out.get()).saturating_sub(requests.bytes_in.get());
        bytes_out = (bytes_out + replies.bytes_in.get()).saturating_sub(replies.bytes_out.get());
    }
    section.append("bytesIn", bytes_in as i64).append("bytesOut", bytes_out as i64);
    section.append("physicalBytesIn", network.bytes_in.get() as i64);
    section.append("physicalBytesOut", network.bytes_out.get() as i64);
    section.append("numRequests", network.requests.get() as i64);
    let mut compression = section.document("compression");
    for (name, metrics) in compressors {
        let mut shown = compression.document(name);
        for (way, flow) in
            [("compressor", &metrics.compressor), ("decompressor", &metrics.decompressor)]
        {
            let mut shown = shown.document(way);
            shown.append("bytesIn", flow.bytes_in.get() as i64);
            shown.append("bytesOut", flow.bytes_out.get() as i64);
        }
    }
}

fn latencies(service: &Service, asked: Option<Value<'_>>, section: &mut DocWriter<'_>) {
    let metrics = &service.metrics;
    let options = asked.and_then(|asked| asked.as_document());
    let histograms = is_true(options.and_then(|options| options.get("histograms")));
    let none = Latency::default();
    for (name, latency) in [
        ("reads", &metrics.reads_latency),
        ("writes", &metrics.writes_latency),
        ("commands", &metrics.commands_latency),
        ("transactions", &none),
    ] {
        latency.write(histograms, &mut section.document(name));
    }
}

fn opcounters(service: &Service, _asked: Option<Value<'_>>, section: &mut DocWriter<'_>) {
    let metrics = &service.metrics;
    section.append("insert", metrics.inserts.get() as i64);
    section.append("query", metrics.queries.get() as i64);
    section.append("update", metrics.updates.get() as i64);
    section.append("delete", metrics.deletes.get() as i64);
    section.append("getmore", metrics.getmores.get() as i64);
    section.append("command", metrics.commands.get() as i64);
}

fn opcounters_repl(_service: &Service, _asked: Option<Value<'_>>, section: &mut DocWriter<'_>) {
    for name in ["insert", "query", "update", "delete", "getmore", "command"] {
        section.append(name, 0i64);
    }
}

fn repl(service: &Service, _asked: Option<Value<'_>>, section: &mut DocWriter<'_>) {
    if let crate::Topology::ReplicaSet(set) = &service.options.topology {
        section.append("setName", set.as_str()).append("setVersion", service.config_version.get());
        section.append("isWritablePrimary", true).append("secondary", false);
    }
}

fn storage_engine(service: &Service, _asked: Option<Value<'_>>, section: &mut DocWriter<'_>) {
    section.append("name", service.options.storage_engine);
    section.append("supportsCommittedReads", true);
    section.append("oldestRequiredTimestampForCrashRecovery", quire_document::Timestamp::default());
    section.append("supportsPendingDrops", true);
    section.append("supportsSnapshotReadConcern", true);
    section.append("readOnly", false);
    section.append("persistent", service.options.data_directory.is_some());
    section.append("backupCursorOpen", false);
    section.append("isShortOfSpace", service.engine.stats().is_short_of_space);
    let Refusals { memory, clock } = service.refusals();
    let mut refused = section.document("refusedRequests");
    refused.append("memory", memory as i64).append("clock", clock as i64);
}

fn transactions(service: &Service, _asked: Option<Value<'_>>, section: &mut DocWriter<'_>) {
    let counts = service.sessions.transaction_counts();
    let open = service.sessions.open_transactions() as i64;
    for name in ["retriedCommandsCount", "retriedStatementsCount"] {
        section.append(name, 0i64);
    }
    section.append("currentOpen", open);
    section.append("totalStarted", counts.started as i64);
    section.append("totalAborted", counts.aborted as i64);
    section.append("totalCommitted", counts.committed as i64);
}

/// Writes the cache statistics in the form that monitoring tools expect. The values are those of
/// this engine: its block cache, and the write buffers, which are separate from the cache here.
fn wired_tiger(service: &Service, _asked: Option<Value<'_>>, section: &mut DocWriter<'_>) {
    let stats = service.engine.stats();
    let mut cache = section.document("cache");
    cache.append("bytes currently in the cache", stats.cache_bytes as i64);
    cache.append("maximum bytes configured", stats.cache_capacity_bytes as i64);
    cache.append("tracked dirty bytes in the cache", stats.memtable_bytes as i64);
}
