//! The steps around every command, in one visible list: find its row, read the generic fields,
//! check the API version and the concerns, register the operation, run it under a panic guard,
//! finish the reply, count and log.

use crate::frame::account::{Ended, end_command, log_panic, shown_body};
use crate::frame::audit::written_accounts;
use crate::frame::command::{Command, InTransaction, Kind, Target};
use crate::frame::context::Context;
use crate::frame::fail_points::FAIL_COMMAND;
use crate::frame::generic_fields::{check_api, generic_fields};
use crate::frame::gossip;
use crate::frame::operation::Operation;
use crate::frame::operation_session;
use crate::frame::recorder::trace::Traced;
use crate::frame::reply;
use crate::frame::service::{Connection, Outcome, Request, Sequence, Service, Topology};
use crate::frame::tally::Tally;
use crate::frame::write_block::is_blockable;
use quire_document::limits::MESSAGE_BYTES_MAX;
use quire_document::memory;
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, ErrorClass, ErrorCode, Label, Result};
use quire_mql::collation::SHORT_BYTES_MAX;
use quire_mql::context::interruptible;
use quire_mql::stage::{Names, Reads, parse_pipeline, row_of};
use std::cell::{Cell, OnceCell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How far a request has come, for the log.
#[derive(Default)]
struct Attempt {
    command: Option<&'static Command>,
    operation: Option<Arc<Operation>>,
    tally: Tally,
    outcome: Outcome,
}

/// Runs one request and appends its reply document. Its memory is part of that of all requests.
pub fn handle(connection: &mut Connection, request: &Request<'_>, out: &mut Vec<u8>) -> Outcome {
    let service = Arc::clone(&connection.service);
    service.memory().within(|| handle_within(&service, connection, request, out))
}

fn handle_within(
    service: &Arc<Service>,
    connection: &mut Connection,
    request: &Request<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    let started = Instant::now();
    let start = out.len();
    let mut attempt = Attempt::default();
    connection.audit_begin();
    let result =
        catch_unwind(AssertUnwindSafe(|| run(service, connection, request, out, &mut attempt)));
    memory::release();
    let result = result.map(|result| result.and_then(|()| check_length(out.len() - start)));
    let result = result.unwrap_or_else(|panic| {
        service.metrics.internal_errors.add(1);
        let secrets = attempt.command.map_or(&[][..], |command| command.secrets);
        log_panic(service, connection, (request.body, secrets), &*panic);
        Err(Error::internal("the server failed on this command; see its log").into())
    });
    if let Err(Failed { error, unsatisfied }) = &result {
        out.truncate(start);
        let mut reply = DocWriter::new(out);
        reply::write_error_reply(&mut reply, error);
        if let Some(unsatisfied) = unsatisfied {
            reply::write_write_concern_error(&mut reply, unsatisfied);
        }
        gossip::write_times(service, None, &mut reply);
        service.metrics.user_errors.add(1);
    }
    let Some(command) = attempt.command else {
        service.metrics.by_command.unknown.add(1);
        return attempt.outcome;
    };
    let named = attempt.operation.as_ref().map_or("", |operation| operation.namespace.as_str());
    let ended = Ended {
        op: command.class,
        namespace: attempt.tally.explained.as_deref().unwrap_or(named),
        command: request.body,
        secrets: command.secrets,
        is_statement: false,
        tally: &attempt.tally,
        error: result.as_ref().err().map(|failed| &failed.error),
        micros: started.elapsed().as_micros() as u64,
        reply_bytes: out.len() - start,
    };
    connection.audit_command(command, request, ended.error);
    end_command(service, connection, command, &ended);
    if service.recorder.tracing().is_on() && !connection.is_advisor() {
        let (namespace, micros, failed) = (ended.namespace, ended.micros, ended.error.is_some());
        let reply = Doc::from_valid_bytes(out.get(start..).unwrap_or_default());
        let traced = Traced {
            connection,
            command,
            request,
            namespace,
            began: started,
            micros,
            failed,
            reply,
        };
        service.recorder.tracing().add(&traced);
    }
    attempt.outcome
}

/// Fails with 10334 BSONObjectTooLarge if a reply is longer than a message may be.
fn check_length(bytes: usize) -> Result<(), Failed> {
    if bytes <= MESSAGE_BYTES_MAX {
        return Ok(());
    }
    let text = format!("the reply has {bytes} bytes, of at most {MESSAGE_BYTES_MAX}");
    Err(Error::new(ErrorCode::BSONObjectTooLarge, text).into())
}

/// The error of a command, and the write concern error beside it.
struct Failed {
    error: Error,
    unsatisfied: Option<Error>,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed { error, unsatisfied: None }
    }
}

/// Runs a request up to the finished reply; an error is not written yet.
fn run(
    service: &Arc<Service>,
    connection: &mut Connection,
    request: &Request<'_>,
    out: &mut Vec<u8>,
    attempt: &mut Attempt,
) -> Result<(), Failed> {
    let name = request.body.first().map_or("", |first| first.key());
    let tests = || service.parameters.flag("enableTestCommands");
    let Some(command) = service.commands.find(name).filter(|row| !row.test_only || tests()) else {
        return Err(no_such_command(name).into());
    };
    attempt.command = Some(command);
    let mut cx = prepare(service, connection, request, command, name)?;
    cx.authorize(service.commands.requires(command), request.body)?;
    cx.limit_read(request.body);
    let running = service.operations.begin(describe(&cx, request.body));
    attempt.operation = Some(Arc::clone(&running.operation));
    let mut reply = DocWriter::new(out);
    let fault = service.fail_points.strike(FAIL_COMMAND, &cx, request.body);
    let result = fault.as_ref().map_or(Ok(()), |fault| fault.before(&mut cx));
    let result = result
        .and_then(|()| execute(&mut cx, request.body, &running.operation.namespace, &mut reply));
    cx.leave_transaction(result.is_err(), &running.operation.namespace);
    drop(running);
    if written_accounts(command, cx.db, request).is_some() {
        service.access.changed();
    }
    // The commands that can write to or move a collection of `config`.
    let reaches_config =
        cx.db == "config" || matches!(command.name, "bulkWrite" | "renameCollection");
    if command.kind == Kind::Write && reaches_config {
        service.query_settings.reload(&service.store)?;
    }
    (attempt.outcome, attempt.tally) = (cx.outcome, std::mem::take(&mut cx.tally));
    attempt.outcome.hang_up |= cx.write_hangs_up.get();
    let unsatisfied = cx.unsatisfied();
    if let Some(error) = &unsatisfied {
        let is_default = cx.generic.write_concern.is_none();
        service.metrics.write_concerns.note(error, is_default);
    }
    if let Err(error) = result {
        let error = labelled(&cx, error, unsatisfied.is_some());
        return Err(Failed { error, unsatisfied });
    }
    // In a transaction only the commit may be repeated.
    let retryable = cx.generic.txn_number.is_some()
        && (!cx.in_transaction() || cx.command.in_transaction == InTransaction::Ends);
    let told = fault.is_some_and(|fault| fault.after(retryable, &mut reply));
    if let Some(error) = unsatisfied.filter(|_| !told) {
        reply::write_write_concern_error(&mut reply, &error);
    }
    match cx.integer_ok.get() {
        true => reply.append("ok", 1),
        false => reply.append("ok", 1.0),
    };
    gossip::write_times(service, cx.committed.get(), &mut reply);
    Ok(())
}

/// Runs the command itself. A write passes the gate that `fsync` closes, and so does a command that
/// stores a setting. If the read concern asks
/// for it, the data that was read is on disk before the reply.
fn execute(
    cx: &mut Context<'_>,
    body: Doc<'_>,
    namespace: &str,
    reply: &mut DocWriter<'_>,
) -> Result<()> {
    let Some(run) = cx.command.run else {
        return Err(Error::not_built(&format!("the command {}", cx.command.name)));
    };
    if cx.generic.max_time_ms > 0 {
        cx.meet_time_fault(body)?;
    }
    let service = cx.service;
    let _writing = match cx.command.kind {
        Kind::Write if is_blockable(cx.command) => {
            reserve_for_write(body, cx.sequences)?;
            Some(cx.enter_unblocked()?)
        }
        Kind::Write => {
            reserve_for_write(body, cx.sequences)?;
            Some(service.write_gate.enter(&cx.interrupt)?)
        }
        Kind::Other if cx.command.stores_setting => Some(service.write_gate.enter(&cx.interrupt)?),
        Kind::Read | Kind::Other => None,
    };
    if cx.in_transaction() && cx.generic.transaction.start != Some(true) {
        cx.check_transaction_api()?;
    }
    cx.wait_behind_changes(namespace)?;
    if cx.in_transaction() && cx.command.kind == Kind::Read {
        // A write joins after it is parsed: a malformed one leaves the transaction as it is.
        check_stage_names(cx, body)?;
        cx.join_transaction()?;
    }
    // A short command that does not write meets long strings only in what is interruptible itself.
    match cx.command.kind == Kind::Write || body.len() > SHORT_BYTES_MAX {
        true => interruptible(&cx.interrupt_check(), || run(cx, body, reply))?,
        false => run(cx, body, reply)?,
    }
    match cx.command.takes_read_concern() && !cx.in_transaction() {
        true => cx.await_durable_reads(cx.read_level()),
        false => Ok(()),
    }
}

/// Fails for a pipeline with a stage that does not exist or that does not say which collection it
/// joins, before the command joins its transaction.
///
/// # Errors
/// 40323 and 40324; the errors of parsing a stage that may read another collection in a transaction and
/// names none.
fn check_stage_names(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    if cx.command.target != Target::CollectionOrAggregate {
        return Ok(());
    }
    let stages = body.get("pipeline").and_then(|stages| stages.as_array());
    let stages = stages.into_iter().flat_map(|stages| stages.iter());
    // Other values than documents are refused by the command.
    stages.filter(|stage| stage.as_document().is_some()).try_for_each(|stage| {
        let (row, operand) = row_of(stage)?;
        let facts = &row.facts;
        let joins = facts.reads == Reads::OtherCollection && facts.in_transaction;
        match (facts.names, operand.as_document()) {
            (Names::Field(name), Some(fields)) if joins && !fields.contains(name) => {
                parse_pipeline(std::iter::once(stage), &cx.parse_context()).map(drop)
            }
            _ => Ok(()),
        }
    })
}

/// Reserves memory for a write whose message is large: for its parsed form, which is about as large.
/// What it writes is charged beside this.
fn reserve_for_write(body: Doc<'_>, sequences: &[Sequence<'_>]) -> Result<()> {
    const SMALL_BYTES: usize = 256 << 10;
    let documents = sequences.iter().flat_map(|sequence| &sequence.documents);
    let bytes = body.len() + documents.map(|doc| doc.len()).sum::<usize>();
    if bytes <= SMALL_BYTES {
        return Ok(());
    }
    let refused = |_| Error::new(ErrorCode::ExceededMemoryLimit, memory::exhausted());
    memory::reserve(bytes).map_err(refused)
}

/// Does the checks before a command runs.
fn prepare<'c>(
    service: &'c Arc<Service>,
    connection: &'c mut Connection,
    request: &'c Request<'_>,
    command: &'static Command,
    spelling: &'c str,
) -> Result<Context<'c>> {
    if request.legacy_query && !command.handshake {
        let text = format!(
            "Unsupported OP_QUERY command: {spelling}. The client driver may require an upgrade."
        );
        return Err(Error::new(ErrorCode::UnsupportedOpQueryCommand, text));
    }
    // An error of the database name is reported before an error of another field.
    let generic = generic_fields(request.body, command);
    let named = match &generic {
        Ok(generic) => generic.db,
        Err(_) => request.body.get("$db"),
    };
    let db = database(named, request.legacy_query)?;
    let mut generic = generic?;
    check_api(&generic.api, command, request.body, service)?;
    // Transactions of jobs also run on a standalone.
    let topology = (!connection.runs_job).then_some(&service.options.topology);
    operation_session::check(&generic, command, topology)?;
    let identity = if service.access.enforced { connection.identity()? } else { None };
    let trusted = !service.access.enforced || identity.is_some();
    gossip::receive(service, generic.cluster_time, trusted)?;
    let member = service.options.topology != Topology::Standalone;
    generic.read_concern.check_reached(member.then(|| service.clock.now()))?;
    operation_session::check_namespace(&generic, command, db, request.body)?;
    if command.admin_only && db != "admin" {
        let text = format!("{} may only be run against the admin database.", command.name);
        return Err(Error::new(ErrorCode::Unauthorized, text));
    }
    if generic.max_time_ms > 0 {
        request
            .interrupt
            .set_deadline(Some(Instant::now() + Duration::from_millis(generic.max_time_ms)));
    }
    generic.session = operation_session::owned(generic.session, service, identity.as_deref())?;
    let session = operation_session::attach(service, generic.session)?;
    let operation_id = service.operations.next_id();
    Ok(Context {
        service,
        connection,
        command,
        spelling,
        db,
        body: request.body,
        sequences: request.sequences,
        interrupt: Arc::clone(&request.interrupt),
        check: OnceCell::new(),
        clock: OnceCell::new(),
        generic,
        session,
        writing: Cell::new(false),
        transaction: RefCell::new(None),
        rights: RefCell::default(),
        statement_failed: Cell::new(false),
        timed_out: Cell::new(false),
        committed: Cell::new(None),
        integer_ok: Cell::new(false),
        operation_id,
        exhaust_allowed: request.exhaust_allowed,
        outcome: Outcome::default(),
        write_hangs_up: Cell::new(false),
        query_settings: None,
        tally: Tally::default(),
    })
}

/// Adds the label that tells a driver to repeat a retryable write.
fn labelled(cx: &Context<'_>, error: Error, unsatisfied: bool) -> Error {
    if cx.in_transaction() {
        return crate::frame::transactions::labelled(cx, error, unsatisfied);
    }
    match cx.generic.txn_number.is_some() && error.code().is_a(ErrorClass::RetriableError) {
        true => error.with_label(Label::RetryableWriteError),
        false => error,
    }
}

fn no_such_command(name: &str) -> Error {
    Error::new(ErrorCode::CommandNotFound, format!("no such command: '{name}'"))
}

/// Returns the database that the command runs against, from the value of `$db`.
fn database(named: Option<Value<'_>>, legacy_query: bool) -> Result<&str> {
    let db = match named {
        Some(Value::String(db)) => db,
        Some(other) => {
            let text = format!("wrong type for field ($db) {} != string", other.type_name());
            return Err(Error::location(13111, text));
        }
        None if legacy_query => "admin",
        None => {
            let text = "OP_MSG requests require a $db argument";
            return Err(Error::location(40571, text));
        }
    };
    quire_catalog::validate_db_name(db)?;
    Ok(db)
}

/// Returns the description of the operation for `currentOp`.
fn describe(cx: &Context<'_>, body: Doc<'_>) -> Operation {
    let named = match cx.command.target {
        Target::OfCursor => body.get("collection"),
        _ => body.first().map(|first| first.value()),
    };
    let namespace = match (cx.command.target, named) {
        (Target::Namespace, Some(Value::String(namespace))) => namespace.to_owned(),
        (Target::Database, _) | (Target::Namespace, _) => [cx.db, ".$cmd"].concat(),
        (_, Some(Value::String(collection))) => [cx.db, ".", collection].concat(),
        (Target::CollectionOrAggregate, _) => [cx.db, ".$cmd.aggregate"].concat(),
        (Target::Collection | Target::OfCursor, _) => [cx.db, ".$cmd"].concat(),
    };
    Operation {
        id: cx.operation_id,
        started: Instant::now(),
        command: cx.command,
        namespace,
        body: shown_body(cx.command.secrets, body),
        connection: (cx.connection.name.clone(), cx.connection.info.id),
        peer: cx.connection.info.peer,
        client: cx.connection.client.clone(),
        user: cx.identity().cloned(),
        session: cx.generic.session,
        interrupt: Arc::clone(&cx.interrupt),
    }
}
