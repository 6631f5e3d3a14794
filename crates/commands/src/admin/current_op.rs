//! `currentOp`, and the rows of `$currentOp`: the running operations.

use crate::frame::account::shown_body;
use crate::frame::args::is_generic;
use crate::frame::command_shape::command_shape;
use crate::frame::context::Context;
use crate::frame::idle_connections::IdleConnection;
use crate::frame::job_list::{Entry, State};
use crate::frame::lane_name::shown;
use crate::frame::operation::Operation;
use crate::frame::reply::number;
use crate::frame::service::{Service, application_name, now_ms};
use quire_document::{Doc, DocBuf, DocWriter, Timestamp, Value};
use quire_error::{Error, Result};
use quire_session::{Cursor, OpenTransaction};
use std::sync::Arc;
use std::time::Duration;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut filter = DocBuf::new();
    for element in body.iter().skip(1) {
        let (name, value) = (element.key(), element.value());
        match name {
            "$all" | "$ownOps" | "$truncateOps" | "$local" => {
                if value.as_bool().is_none() && !value.is_number() {
                    return Err(Error::type_mismatch(format!("{name} must be a boolean")));
                }
            }
            _ if is_generic(element.key_bytes()) => {}
            _ => {
                filter.append(name, value);
            }
        }
    }
    let own = body.get("$ownOps").and_then(|own| own.as_bool()).unwrap_or(false);
    let mut rows = rows(cx, !own);
    rows.extend(idle_transactions(cx, !own));
    rows.extend(jobs(cx, !own));
    let kept = crate::frame::matching::filter_documents(cx, filter.as_doc(), &rows)?;
    {
        let mut inprog = reply.array("inprog");
        kept.iter().for_each(|row| {
            inprog.push(*row);
        });
    }
    if cx.service.write_gate.is_closed() {
        reply.append("fsyncLock", true);
        let text = "use db.fsyncUnlock() to terminate the fsync write/snapshot lock";
        reply.append("info", text);
    }
    Ok(())
}

/// Returns one document for each running operation, oldest first: those of every user, or the
/// client's own.
pub fn rows(cx: &Context<'_>, all_users: bool) -> Vec<DocBuf> {
    let service = cx.service;
    let own = cx.identity().filter(|_| !all_users).map(|identity| identity.owner);
    let is_shown = |operation: &&Arc<Operation>| {
        own.is_none_or(|own| operation.user.as_ref().is_some_and(|user| user.owner == own))
    };
    let host = crate::frame::host::host_name();
    let builds = service.store.index_builds();
    let open = service.sessions.list_transactions();
    let row = |operation: &Arc<Operation>| {
        let build = builds.iter().find(|build| build.is_stopped_by(&operation.interrupt));
        let inside = operation.session.filter(|_| operation.body.get("autocommit").is_some());
        let transaction = open.iter().find(|open| Some(open.session) == inside);
        let mut row = row(service, operation, build.map(|build| build.progress()), &host);
        if let Some(transaction) = transaction {
            row.append("transaction", &transaction_row(cx, transaction));
        }
        row
    };
    service.operations.list().iter().filter(is_shown).map(row).collect()
}

/// Returns one document for each open transaction that no command runs in: those of every user, or
/// the client's own.
pub fn idle_transactions(cx: &Context<'_>, all_users: bool) -> Vec<DocBuf> {
    let own = cx.identity().filter(|_| !all_users).map(|identity| identity.owner);
    let host = crate::frame::host::host_name();
    let mut open = cx.service.sessions.list_transactions();
    open.retain(|open| !open.is_active && own.is_none_or(|own| own == open.session.user));
    let row = |open: &OpenTransaction| {
        DocBuf::build(|row| {
            row.append("type", "idleSession").append("host", host.as_str());
            row.append("desc", "inactive transaction");
            row.append_all(open.start.client.as_doc());
            open.session.write(&mut row.document("lsid"));
            row.append("active", false);
            row.append("transaction", &transaction_row(cx, open));
            row.append("waitingForLock", false);
            row.document("locks").finish();
            row.document("lockStats").finish();
        })
    };
    open.iter().map(row).collect()
}

/// Returns one document for each connection that runs no operation. It is not known whose they are, so a
/// logged-in client that asks for its own gets none.
pub fn idle_connections(cx: &Context<'_>, all_users: bool) -> Vec<DocBuf> {
    if !all_users && cx.identity().is_some() {
        return Vec::new();
    }
    let (host, now) = (crate::frame::host::host_name(), iso_time(now_ms()));
    let row = |idle: IdleConnection| {
        DocBuf::build(|row| {
            row.append("type", "op").append("host", host.as_str());
            row.append("desc", format!("conn{}", idle.id).as_str());
            row.append("connectionId", idle.id as i64);
            if let Some(peer) = idle.peer {
                row.append("client", peer.to_string().as_str());
            }
            row.append("active", false).append("currentOpTime", now.as_str());
        })
    };
    cx.service.idle_connections().into_iter().map(row).collect()
}

/// The largest number of idle cursors that are shown.
const IDLE_CURSORS_MAX: usize = 1000;

/// Returns one document for each open cursor that no command uses, at most [`IDLE_CURSORS_MAX`]: those of
/// every user, or the client's own.
pub fn idle_cursors(cx: &Context<'_>, all_users: bool) -> Vec<DocBuf> {
    let own = cx.identity().filter(|_| !all_users).map(|identity| identity.owner);
    let (host, mut left) = (crate::frame::host::host_name(), IDLE_CURSORS_MAX);
    let mut row = |id: i64, cursor: &Cursor, rested: Duration| {
        if left == 0 || own.is_some_and(|own| own != cursor.owner) {
            return None;
        }
        left -= 1;
        Some(idle_cursor(id, cursor, rested, &host))
    };
    cx.service.cursors.idle(&mut row)
}

fn idle_cursor(id: i64, cursor: &Cursor, rested: Duration, host: &str) -> DocBuf {
    let flag = |name: &str| cursor.command.get(name).and_then(|flag| flag.as_bool()) == Some(true);
    let rested_ms = i64::try_from(rested.as_millis()).unwrap_or(i64::MAX);
    DocBuf::build(|row| {
        row.append("type", "idleCursor").append("host", host);
        row.append("ns", &*cursor.namespace);
        if let Some(session) = &cursor.session {
            session.write(&mut row.document("lsid"));
        }
        let mut shown = row.document("cursor");
        shown.append("cursorId", id);
        shown.append("lastAccessDate", Value::Date(now_ms().saturating_sub(rested_ms)));
        shown.append("noCursorTimeout", cursor.no_timeout);
        shown.append("tailable", flag("tailable")).append("awaitData", flag("awaitData"));
        shown.append("originatingCommand", &shown_body(&[], cursor.command.as_doc()));
    })
}

/// Returns one document for each job under way, and one for the ranges of dropped collections and
/// indexes whose space the engine still has to free. They belong to the server, so a client that asks
/// for its own operations gets none.
pub fn jobs(cx: &Context<'_>, all_users: bool) -> Vec<DocBuf> {
    if !all_users {
        return Vec::new();
    }
    let host = crate::frame::host::host_name();
    let service = cx.service;
    let mut rows: Vec<_> =
        service.jobs.list().iter().map(|entry| job_row(service, entry, &host)).collect();
    let ranges = service.engine.stats().ranges_dropped;
    if ranges > 0 {
        rows.push(DocBuf::build(|row| {
            row.append("type", "op").append("host", host.as_str());
            row.append("desc", "Reclaimer").append("active", true);
            row.append("currentOpTime", iso_time(now_ms()).as_str());
            row.append("op", "none").append("ns", "");
            row.document("command").finish();
            row.append("msg", "Freeing the space of dropped collections and indexes");
            row.document("job").append("kind", "droppedRanges").append("current", ranges as i64);
        }));
    }
    rows
}

fn job_row(service: &Service, entry: &Entry, host: &str) -> DocBuf {
    let elapsed = entry.since.elapsed();
    let (state, interrupt) = match &entry.state {
        State::Ready => ("ready", None),
        State::Running(interrupt) => ("running", Some(interrupt)),
        State::Until(_) if entry.failures > 0 => ("failed", None),
        State::Until(_) | State::Resting(_) => ("waiting", None),
    };
    DocBuf::build(|row| {
        row.append("type", "op").append("host", host);
        row.append("desc", entry.kind.thread);
        row.append("active", matches!(entry.state, State::Ready | State::Running(_)));
        row.append("currentOpTime", iso_time(now_ms()).as_str());
        row.append("opid", entry.op as i32);
        row.append("secs_running", elapsed.as_secs() as i64);
        row.append("microsecs_running", elapsed.as_micros() as i64);
        row.append("op", entry.kind.op);
        row.append("ns", (entry.kind.namespace)(service, &entry.job).as_str());
        row.document("command").finish();
        {
            let mut job = row.document("job");
            job.append("kind", entry.kind.name).append("name", shown(&entry.job.id.name).as_str());
            job.append("state", state);
            entry.job.write(&mut job);
            if let Some(error) = &entry.error {
                job.append("failures", i64::from(entry.failures));
                job.append("error", error.to_string().as_str());
            }
        }
        row.append("numYields", 0);
        row.append("waitingForLock", false);
        let is_pending = interrupt.is_some_and(|interrupt| interrupt.check().is_err());
        row.append("killPending", is_pending);
    })
}

/// Returns the field `transaction` of a row.
fn transaction_row(cx: &Context<'_>, open: &OpenTransaction) -> DocBuf {
    let limit_s = cx.service.parameters.number("transactionLifetimeLimitSeconds");
    let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    DocBuf::build(|row| {
        row.append("parameters", &open.start.parameters);
        if let Some(time) = open.read_time {
            row.append("readTimestamp", Timestamp::from_u64(time.0));
        }
        row.append("startWallClockTime", iso_time(open.start.now_ms).as_str());
        row.append("timeOpenMicros", micros(open.open));
        row.append("timeActiveMicros", micros(open.active));
        row.append("timeInactiveMicros", micros(open.open.saturating_sub(open.active)));
        let ends_ms = open.start.now_ms.saturating_add(limit_s.saturating_mul(1000));
        row.append("expiryTime", iso_time(ends_ms).as_str());
    })
}

/// `progress` has the number of documents that an index build has read, and of all documents.
fn row(
    service: &Service,
    operation: &Operation,
    progress: Option<(u64, u64)>,
    host: &str,
) -> DocBuf {
    let elapsed = operation.started.elapsed();
    DocBuf::build(|row| {
        row.append("type", "op").append("host", host);
        row.append("desc", &*operation.connection.0);
        row.append("connectionId", operation.connection.1 as i64);
        if let Some(peer) = operation.peer {
            row.append("client", peer.to_string().as_str());
        }
        if let Some(client) = &operation.client {
            let name = application_name(client.as_doc());
            row.append_some("appName", name.map(Value::String));
            row.append("clientMetadata", client.as_doc());
        }
        if let Some(user) = &operation.user {
            let mut users = row.array("effectiveUsers");
            users.document().append("user", &user.name.user).append("db", &user.name.db);
        }
        row.append("active", true);
        row.append("currentOpTime", iso_time(now_ms()).as_str());
        row.append("opid", operation.id as i32);
        if let Some(session) = &operation.session {
            session.write(&mut row.document("lsid"));
        }
        row.append("secs_running", elapsed.as_secs() as i64);
        row.append("microsecs_running", elapsed.as_micros() as i64);
        let op = operation.command.class.name();
        row.append("op", op).append("ns", operation.namespace.as_str());
        row.append("redacted", false);
        row.append("command", &operation.body);
        let db = operation.namespace.split('.').next().unwrap_or_default();
        if let Some(shape) = command_shape(db, operation.body.as_doc()) {
            row.append("queryShapeHash", shape.hash().to_string().as_str());
        }
        if let Some((done, total @ 1..)) = progress {
            let what = "Index Build: scanning collection";
            let text = format!("{what} {what}: {done}/{total} {}%", done * 100 / total);
            row.append("msg", text.as_str());
            let mut progress = row.document("progress");
            number(&mut progress, "done", done as i64);
            number(&mut progress, "total", total as i64);
        }
        let conflicts = i64::from(operation.interrupt.conflicts());
        if conflicts > 0 {
            row.append("writeConflicts", conflicts);
        }
        row.append("numYields", 0);
        row.document("locks").finish();
        let waits = service.write_gate.holds_back(&operation.interrupt)
            || operation.interrupt.is_waiting_for_lock();
        row.append("waitingForLock", waits);
        row.document("lockStats").finish();
        row.append("waitingForFlowControl", false);
        row.document("flowControlStats").finish();
        row.append("killPending", operation.interrupt.check().is_err());
    })
}

/// Returns a time as `2026-01-02T03:04:05.678+00:00`.
fn iso_time(ms: i64) -> String {
    let text = quire_document::calendar::iso_text(ms);
    text.strip_suffix('Z').map_or(text.clone(), |head| format!("{head}+00:00"))
}
