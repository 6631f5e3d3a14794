//! What happens after an operation has ended: it is counted, logged if it was slow, and recorded if
//! its database is profiled.

use crate::frame::command::{Command, Kind};
use crate::frame::command_shape::command_shape;
use crate::frame::context::Context;
use crate::frame::fingerprint::{DELETE, UPDATE};
use crate::frame::log::{LogLine, Severity};
use crate::frame::redaction::Values;
use crate::frame::reply::number;
use crate::frame::service::{Connection, Service, now_ms};
use crate::frame::tally::Tally;
use crate::frame::usage::Class;
use quire_access::UserName;
use quire_catalog::{Namespace, debug_doc, split_namespace};
use quire_document::{Doc, DocBuf, DocWriter, Value, doc};
use quire_error::Error;
use std::any::Any;
use std::borrow::Cow;
use std::time::Instant;

/// An operation that has ended: a command, or a statement of a command.
pub struct Ended<'e> {
    /// The class of the operation.
    pub op: Class,
    /// The full name of the collection, `db.collection`.
    pub namespace: &'e str,
    /// The command or the statement.
    pub command: Doc<'e>,
    /// The fields of the command that must not be shown.
    pub secrets: &'static [&'static str],
    /// True for a statement of a command: it is logged and recorded under its own name.
    pub is_statement: bool,
    /// The counts of the keys and documents that it examined and changed.
    pub tally: &'e Tally,
    /// The error with which it failed.
    pub error: Option<&'e Error>,
    /// The duration in microseconds.
    pub micros: u64,
    /// The size of the reply in bytes.
    pub reply_bytes: usize,
}

impl Ended<'_> {
    /// Returns the database of the collection.
    pub fn db(&self) -> &str {
        split_namespace(self.namespace).map_or(self.namespace, |(db, _)| db)
    }
}

impl Context<'_> {
    /// Records a statement of a write as an operation of its own.
    pub fn end_statement(
        &self,
        op: Class,
        namespace: &Namespace,
        statement: Doc<'_>,
        began: Instant,
        ended: Result<Tally, &Error>,
    ) {
        self.count_statement((op, true), namespace, statement, began, ended);
    }

    /// Counts a statement of a `bulkWrite`, which is logged and profiled as one command.
    pub fn end_bulk_statement(
        &self,
        op: Class,
        namespace: &Namespace,
        statement: Doc<'_>,
        began: Instant,
        ended: Result<Tally, &Error>,
    ) {
        self.count_statement((op, false), namespace, statement, began, ended);
    }

    fn count_statement(
        &self,
        (op, is_told): (Class, bool),
        namespace: &Namespace,
        statement: Doc<'_>,
        began: Instant,
        ended: Result<Tally, &Error>,
    ) {
        let (mut tally, error) = match ended {
            Ok(tally) => (tally, None),
            Err(error) => (Tally::default(), Some(error)),
        };
        tally.fingerprint = match op {
            Class::Insert => self.insert_print(namespace),
            Class::Update => self.write_print(UPDATE, namespace, statement),
            _ => self.write_print(DELETE, namespace, statement),
        };
        let ended = Ended {
            op,
            namespace: namespace.as_str(),
            command: statement,
            secrets: &[],
            is_statement: true,
            tally: &tally,
            error,
            micros: began.elapsed().as_micros() as u64,
            reply_bytes: 0,
        };
        count_examined(self.service, &ended);
        note(self.service, self.connection, &ended);
        if is_told {
            tell(self.service, self.connection, &ended, true);
        }
    }
}

/// Counts a command that has ended, and logs and records it if necessary.
pub fn end_command(
    service: &Service,
    connection: &Connection,
    command: &'static Command,
    ended: &Ended<'_>,
) {
    let metrics = &service.metrics;
    metrics.by_command.note(command, ended.error.is_some());
    metrics.commands.add(u64::from(ended.op == Class::Command));
    match command.kind {
        Kind::Read => metrics.reads_latency.note(ended.micros),
        Kind::Write => metrics.writes_latency.note(ended.micros),
        Kind::Other => metrics.commands_latency.note(ended.micros),
    }
    count_examined(service, ended);
    note(service, connection, ended);
    if !reads_statistics(command, ended.command) {
        service.usage.note(&service.store, ended.namespace, ended.op, command.kind, ended.micros);
    }
    if command.handshake {
        return;
    }
    let of_data = command.kind != Kind::Other || ended.tally.explained.is_some();
    let recorded = of_data && !command.has_statements && !ended.tally.failed_early;
    // A cursor over a list of the catalog, such as that of `listCollections`.
    let of_list = ended.op == Class::GetMore && ended.namespace.contains(".$cmd.list");
    let recorded = recorded && !of_list;
    tell(service, connection, ended, recorded);
}

/// Returns true for a pipeline that begins with `$collStats`: the use that it shows does not count it.
fn reads_statistics(command: &Command, body: Doc<'_>) -> bool {
    if command.name != "aggregate" {
        return false;
    }
    // Every aggregate comes here, so only the first name of the first stage is read.
    let stage = body.get("pipeline").and_then(|stages| stages.as_array()?.iter().next());
    let first = stage.and_then(|stage| stage.as_document()?.first());
    first.is_some_and(|stage| stage.key() == "$collStats")
}

/// Counts a statement for the recorder, and samples it if its collection is sampled.
fn note(service: &Service, connection: &Connection, ended: &Ended<'_>) {
    service.recorder.note(connection, ended);
    let samples = service.recorder.samples();
    if samples.any() && ended.error.is_none() && !connection.is_advisor() {
        samples.note(&service.store.catalog(), ended);
    }
}

fn count_examined(service: &Service, ended: &Ended<'_>) {
    let Some(examined) = &ended.tally.examined else { return };
    let (metrics, counters) = (&service.metrics, &examined.counters);
    metrics.keys_examined.add(counters.keys_examined);
    metrics.docs_examined.add(counters.docs_examined);
    metrics.sorts.add(u64::from(counters.sorted));
    if examined.scans_collection() {
        metrics.collection_scans.add(1);
        service.usage.note_collection_scan(&service.store, ended.namespace);
    }
}

/// Logs and records the operation if it is slow, sampled, selected by a filter or profiled.
fn tell(service: &Service, connection: &Connection, ended: &Ended<'_>, recorded: bool) {
    let slow = ended.micros as i64 > service.parameters.cached.slow_ms().saturating_mul(1000);
    let logged_anyway = service.parameters.logs_all(ended.is_statement);
    if !slow && !logged_anyway && !service.profiler.is_engaged() {
        return;
    }
    let entry = || profile_entry(connection, ended);
    let verdict = service.profiler.judge(ended.db(), slow, entry);
    if verdict.log || logged_anyway {
        log(service, connection, ended);
    }
    if verdict.record && recorded {
        service.record_profile(ended.db(), entry().as_doc());
    }
}

fn log(service: &Service, connection: &Connection, ended: &Ended<'_>) {
    let values = service.logged_values();
    let attributes = DocBuf::build(|writer| {
        let kind = if ended.is_statement { ended.op.name() } else { "command" };
        writer.append("type", kind).append("isFromUserConnection", true);
        writer.append("ns", &*shown(ended.namespace));
        writer.append_some("appName", connection.app_name().map(Value::String));
        writer.append("command", &values.of(shown_command(ended)));
        if let Some(summary) = ended.tally.plan_summary() {
            writer.append("planSummary", &*shown(&summary));
        }
        write_origin(ended, values, writer);
        ended.tally.write(writer);
        write_shapes(ended, writer);
        write_error(ended.error, values, writer);
        if !ended.is_statement {
            number(writer, "reslen", ended.reply_bytes as i64);
        }
        writer.append_some("remote", connection.remote().as_deref().map(Value::String));
        writer.append("protocol", "op_msg");
        number(writer, "durationMillis", (ended.micros / 1000) as i64);
    });
    service.log().write(LogLine {
        severity: Severity::Info,
        component: if ended.is_statement { "WRITE" } else { "COMMAND" },
        id: 51803,
        context: connection.name(),
        message: "Slow query",
        attributes,
    });
}

/// Returns an entry of `system.profile`.
fn profile_entry(connection: &Connection, ended: &Ended<'_>) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("op", ended.op.name()).append("ns", &*shown(ended.namespace));
        writer.append("command", &recorded_command(ended));
        write_origin(ended, Values::Shown, writer);
        ended.tally.write(writer);
        write_shapes(ended, writer);
        write_error(ended.error, Values::Shown, writer);
        writer.document("locks").finish();
        writer.document("flowControl").finish();
        writer.document("storage").finish();
        if !ended.is_statement {
            writer.append("responseLength", ended.reply_bytes as i32);
        }
        writer.append("protocol", "op_msg");
        writer.append("millis", (ended.micros / 1000) as i32);
        if let Some(summary) = ended.tally.plan_summary() {
            writer.append("planSummary", &*shown(&summary));
        }
        writer.append("ts", Value::Date(now_ms()));
        writer.append_some("client", connection.remote_host().as_deref().map(Value::String));
        writer.append_some("appName", connection.app_name().map(Value::String));
        write_user(connection, writer);
    })
}

/// Writes the logged-in user: `allUsers`, and `user` as `name@database`, empty without a login.
fn write_user(connection: &Connection, writer: &mut DocWriter<'_>) {
    let user = connection.identity.as_ref().map(|identity| &identity.name);
    let mut users = writer.array("allUsers");
    if let Some(name) = user {
        users.document().append("user", &name.user).append("db", &name.db);
    }
    users.finish();
    writer.append("user", user.map(UserName::to_string).unwrap_or_default().as_str());
}

/// The bytes up to which an entry of `system.profile` has the whole command, as in MongoDB.
const RECORDED_BYTES_MAX: usize = 50 * 1024;

/// Returns the command as an entry of `system.profile` has it: whole, or the beginning of its text and
/// its comment.
fn recorded_command(ended: &Ended<'_>) -> DocBuf {
    let command = ended.command;
    if command.len() <= WHOLE_BYTES_MAX || !ended.secrets.is_empty() {
        return shown_command(ended);
    }
    if command.len() <= RECORDED_BYTES_MAX {
        return command.to_owned();
    }
    let shown = shown_command(ended);
    let begin = debug_doc(shown.as_doc());
    DocBuf::build(|writer| {
        writer.append("$truncated", [&begin, "..."].concat().as_str());
        writer.append_some("comment", shown.get("comment"));
    })
}

/// Returns the command as [`shown_body`] shows it. A `getMore` without a comment gets the comment
/// of its cursor's command.
fn shown_command(ended: &Ended<'_>) -> DocBuf {
    let mut shown = shown_body(ended.secrets, ended.command);
    let origin = ended.tally.originating.as_ref().filter(|_| !ended.command.contains("comment"));
    if let Some(comment) = origin.and_then(|command| command.as_doc().get("comment")) {
        let written = shown_body(&[], doc! { "comment": comment }.as_doc());
        shown.extend(|writer| {
            for element in written.as_doc().iter() {
                writer.append_element(element);
            }
        });
    }
    shown
}

fn write_origin(ended: &Ended<'_>, values: Values, writer: &mut DocWriter<'_>) {
    if let Some(command) = &ended.tally.originating {
        writer.append("originatingCommand", &values.of(shown_body(&[], command.as_doc())));
    }
}

/// Writes the hashes of the request's shape and of its plan's.
fn write_shapes(ended: &Ended<'_>, writer: &mut DocWriter<'_>) {
    let command = ended.tally.originating.as_ref().map_or(ended.command, DocBuf::as_doc);
    if let Some(shape) = command_shape(ended.db(), command).filter(|_| !ended.is_statement) {
        writer.append("queryShapeHash", shape.hash().to_string().as_str());
    }
    ended.tally.write_plan_hashes(writer);
}

fn write_error(error: Option<&Error>, values: Values, writer: &mut DocWriter<'_>) {
    let Some(error) = error else { return };
    writer.append("ok", 0.0).append("errMsg", values.text(&shown(error.message())));
    writer.append("errName", &*error.code().name()).append("errCode", error.code().number());
}

/// The bytes up to which a command is shown in full, and about which are shown of a longer one.
const WHOLE_BYTES_MAX: usize = 4096;

/// The bytes up to which a name, a value or a text is shown in full.
const SHOWN_BYTES_MAX: usize = 1024;

/// Returns the command document without its secrets, for an `explain` also without those of the
/// explained command. Of a long command it has the first fields, with long names and values shortened.
pub fn shown_body(secrets: &[&str], body: Doc<'_>) -> DocBuf {
    if body.len() <= WHOLE_BYTES_MAX && secrets.is_empty() {
        return body.to_owned();
    }
    DocBuf::build(|writer| {
        for element in body.iter() {
            if writer.len() > WHOLE_BYTES_MAX {
                writer.append("$truncated", true);
                break;
            }
            if element.key().len() > SHOWN_BYTES_MAX {
                writer.append(&shown(element.key()), "(too long to show)");
            } else if secrets.contains(&element.key()) {
                writer.append(element.key(), "xxx");
            } else if let ("explain", Value::Document(inner)) = (element.key(), element.value()) {
                writer.append("explain", &shown_body(secrets, inner));
            } else if element.value_bytes().len() <= SHOWN_BYTES_MAX {
                writer.append_element(element);
            } else {
                writer.append(element.key(), "(too long to show)");
            }
        }
    })
}

/// Returns a text, or the beginning and the length of a long one.
fn shown(text: &str) -> Cow<'_, str> {
    if text.len() <= SHOWN_BYTES_MAX {
        return Cow::Borrowed(text);
    }
    let begin = &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)];
    Cow::Owned(format!("{begin}... ({} bytes)", text.len()))
}

/// Logs a command that panicked.
pub fn log_panic(
    service: &Service,
    connection: &Connection,
    (command, secrets): (Doc<'_>, &[&str]),
    panic: &(dyn Any + Send),
) {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    let values = service.logged_values();
    let attributes = DocBuf::build(|writer| {
        writer.append("panic", values.text(&text));
        writer.append("command", &values.of(shown_body(secrets, command)));
    });
    service.log().write(LogLine {
        severity: Severity::Error,
        component: "COMMAND",
        id: 1,
        context: connection.name(),
        message: "A command panicked",
        attributes,
    });
}
