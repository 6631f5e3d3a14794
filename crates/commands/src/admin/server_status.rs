//! `serverStatus`: the counters that monitoring reads, in MongoDB's shape.

use super::host_info::{host_name, proc_number};
use crate::MONGODB_VERSION;
use crate::args::is_generic;
use crate::dispatch::Context;
use crate::metrics::{Latency, Metrics};
use crate::service::{Service, now_ms};
use quire_document::{Doc, DocWriter, Value};
use quire_error::Result;

/// A section: its name, whether it shows without being asked for, and how it is written.
type Section = (&'static str, bool, fn(&Service, &mut DocWriter<'_>));

/// The sections in the order of the reply.
const SECTIONS: &[Section] = &[
    ("asserts", true, asserts),
    ("connections", true, connections),
    ("extra_info", true, extra_info),
    ("globalLock", true, global_lock),
    ("locks", true, empty),
    ("logicalSessionRecordCache", true, sessions),
    ("mem", true, memory),
    ("metrics", true, metrics),
    ("network", true, network),
    ("opLatencies", true, latencies),
    ("opcounters", true, opcounters),
    ("opcountersRepl", true, opcounters_repl),
    ("repl", true, repl),
    ("storageEngine", true, storage_engine),
    ("transactions", true, transactions),
    ("ttl", true, empty),
    ("wiredTiger", true, wired_tiger),
];

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let service = cx.service;
    let uptime = service.started.elapsed();
    reply.append("host", host_name().as_str()).append("version", MONGODB_VERSION);
    reply.append("process", "mongod");
    reply.array("service").push("shard");
    reply.append("pid", i64::from(std::process::id()));
    reply.append("uptime", uptime.as_secs() as f64);
    reply.append("uptimeMillis", uptime.as_millis() as i64);
    reply.append("uptimeEstimate", uptime.as_secs() as i64);
    reply.append("localTime", Value::Date(now_ms()));
    for (name, shown, write) in SECTIONS {
        if wanted(body, name).unwrap_or(*shown) {
            write(service, &mut reply.document(name));
        }
    }
    Ok(())
}

/// Whether the request asks for a section (`true`), leaves it out (`false`) or says nothing.
fn wanted(body: Doc<'_>, section: &str) -> Option<bool> {
    let asked = |name: &str| match body.get(name)? {
        Value::Bool(flag) => Some(flag),
        Value::Document(_) => Some(true),
        other => crate::args::whole(other).map(|number| number != 0),
    };
    let none = asked("none").unwrap_or(false) || asked("all") == Some(false);
    match asked(section).filter(|_| !is_generic(section.as_bytes())) {
        Some(answer) => Some(answer),
        None if none => Some(false),
        None => None,
    }
}

fn empty(_service: &Service, _section: &mut DocWriter<'_>) {}

fn asserts(service: &Service, section: &mut DocWriter<'_>) {
    section.append("regular", 0).append("warning", 0).append("msg", 0);
    section.append("user", service.metrics.user_errors.get() as i32);
    section.append("tripwire", service.metrics.internal_errors.get() as i32);
    section.append("rollovers", 0);
}

fn connections(service: &Service, section: &mut DocWriter<'_>) {
    let network = &service.metrics.network;
    let (current, total) = (network.connections_current.get(), network.connections_total.get());
    section.append("current", current as i32);
    section.append("available", network.connections_max.get().saturating_sub(current) as i32);
    section.append("totalCreated", total as i32);
    section.append("rejected", network.connections_rejected.get() as i32);
    section.append("active", service.operations.list().len() as i32);
    section.append("threaded", current as i32);
}

fn extra_info(_service: &Service, section: &mut DocWriter<'_>) {
    section.append("note", "fields vary by platform");
    section.append("page_faults", 0i64);
}

fn global_lock(service: &Service, section: &mut DocWriter<'_>) {
    section.append("totalTime", service.started.elapsed().as_micros() as i64);
    {
        let mut queue = section.document("currentQueue");
        queue.append("total", 0).append("readers", 0).append("writers", 0);
    }
    let active = service.operations.list().len() as i32;
    let mut clients = section.document("activeClients");
    clients.append("total", active).append("readers", 0).append("writers", 0);
}

fn sessions(service: &Service, section: &mut DocWriter<'_>) {
    section.append("activeSessionsCount", service.sessions.len() as i32);
}

fn memory(_service: &Service, section: &mut DocWriter<'_>) {
    section.append("bits", usize::BITS as i32);
    section.append("resident", (proc_number("/proc/self/status", "VmRSS:") / 1024) as i32);
    section.append("virtual", (proc_number("/proc/self/status", "VmSize:") / 1024) as i32);
    section.append("supported", true);
}

fn metrics(service: &Service, section: &mut DocWriter<'_>) {
    let Metrics {
        documents_returned,
        documents_inserted,
        documents_updated,
        documents_deleted,
        ..
    } = &service.metrics;
    {
        let mut document = section.document("document");
        document.append("deleted", documents_deleted.get() as i64);
        document.append("inserted", documents_inserted.get() as i64);
        document.append("returned", documents_returned.get() as i64);
        document.append("updated", documents_updated.get() as i64);
    }
    let cursors = service.cursors.counts();
    let mut cursor = section.document("cursor");
    cursor.append("timedOut", cursors.timed_out as i64);
    cursor.append("totalOpened", cursors.total_opened as i64);
    let mut open = cursor.document("open");
    open.append("noTimeout", cursors.open_no_timeout as i64);
    open.append("pinned", cursors.pinned as i64);
    open.append("total", cursors.open as i64);
}

fn network(service: &Service, section: &mut DocWriter<'_>) {
    let network = &service.metrics.network;
    section.append("bytesIn", network.bytes_in.get() as i64);
    section.append("bytesOut", network.bytes_out.get() as i64);
    section.append("physicalBytesIn", network.bytes_in.get() as i64);
    section.append("physicalBytesOut", network.bytes_out.get() as i64);
    section.append("numRequests", network.requests.get() as i64);
}

fn latencies(service: &Service, section: &mut DocWriter<'_>) {
    let metrics = &service.metrics;
    let mut write = |name: &str, latency: &Latency| {
        let mut entry = section.document(name);
        entry.append("latency", latency.micros.get() as i64);
        entry.append("ops", latency.operations.get() as i64);
    };
    write("reads", &metrics.reads_latency);
    write("writes", &metrics.writes_latency);
    write("commands", &metrics.commands_latency);
    write("transactions", &Latency::default());
}

fn opcounters(service: &Service, section: &mut DocWriter<'_>) {
    let metrics = &service.metrics;
    section.append("insert", metrics.inserts.get() as i64);
    section.append("query", metrics.queries.get() as i64);
    section.append("update", metrics.updates.get() as i64);
    section.append("delete", metrics.deletes.get() as i64);
    section.append("getmore", metrics.getmores.get() as i64);
    section.append("command", metrics.commands.get() as i64);
}

fn opcounters_repl(_service: &Service, section: &mut DocWriter<'_>) {
    for name in ["insert", "query", "update", "delete", "getmore", "command"] {
        section.append(name, 0i64);
    }
}

fn repl(service: &Service, section: &mut DocWriter<'_>) {
    if let crate::Topology::ReplicaSet(set) = &service.options.topology {
        section.append("setName", set.as_str()).append("setVersion", 1);
        section.append("isWritablePrimary", true).append("secondary", false);
    }
}

fn storage_engine(service: &Service, section: &mut DocWriter<'_>) {
    section.append("name", service.options.storage_engine);
    section.append("supportsCommittedReads", true);
    section.append("oldestRequiredTimestampForCrashRecovery", quire_document::Timestamp::default());
    section.append("supportsPendingDrops", true);
    section.append("supportsSnapshotReadConcern", true);
    section.append("readOnly", false);
    section.append("persistent", service.options.data_directory.is_some());
    section.append("backupCursorOpen", false);
}

fn transactions(_service: &Service, section: &mut DocWriter<'_>) {
    for name in ["retriedCommandsCount", "retriedStatementsCount", "currentOpen", "totalStarted"] {
        section.append(name, 0i64);
    }
    for name in ["totalAborted", "totalCommitted"] {
        section.append(name, 0i64);
    }
}

/// The shape that monitoring tools expect for the cache; the figures are those of this engine.
fn wired_tiger(service: &Service, section: &mut DocWriter<'_>) {
    let stats = service.engine.stats();
    let mut cache = section.document("cache");
    cache.append("bytes currently in the cache", stats.cache_bytes as i64);
    cache.append("maximum bytes configured", stats.cache_bytes as i64);
    cache.append("tracked dirty bytes in the cache", 0i64);
}
