//! What happens around every command, in one visible list: find its row, read the fields that
//! all commands take, check API version and concerns, register the operation, run it under a
//! panic guard, finish the reply, count and log.

use crate::account::{Ended, end_command, log_panic, shown_body};
use crate::concern::{ReadLevel, WriteConcern};
use crate::fail_points::FAIL_COMMAND;
use crate::generic_fields::{Generic, check_api, generic_fields};
use crate::gossip;
use crate::operation::Operation;
use crate::operation_session;
use crate::registry::{self, Command, Kind};
use crate::reply;
use crate::service::{
    Connection, Outcome, Request, Sequence, Service, Topology, now_ms, random_u64,
};
use crate::tally::Tally;
use crate::usage::Class;
use quire_catalog::Namespace;
use quire_document::{Doc, DocWriter, Timestamp, Value};
use quire_error::{Error, ErrorClass, ErrorCode, Label, Result};
use quire_mql::context::Shared;
use quire_session::Session;
use quire_storage::{CommitOptions, Interrupt};
use std::cell::{Cell, OnceCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a command sees besides its arguments.
pub struct Context<'c> {
    /// The server.
    pub service: &'c Arc<Service>,
    /// The client.
    pub connection: &'c mut Connection,
    /// The command's row.
    pub command: &'static Command,
    /// The name as the client spelt it.
    pub spelling: &'c str,
    /// The database of `$db`.
    pub db: &'c str,
    /// Document sequences.
    pub sequences: &'c [Sequence<'c>],
    /// Ends the operation early.
    pub interrupt: Arc<Interrupt>,
    /// The fields that every command takes.
    pub generic: Generic<'c>,
    /// The session that the command uses.
    pub session: Option<Arc<Session>>,
    /// The command has begun to write: its reply tells of its write concern, also if it fails.
    pub writing: Cell<bool>,
    /// The disk had not got the command's writes when its `wtimeout` was over.
    pub timed_out: Cell<bool>,
    /// What [`Context::clock`] read.
    clock: OnceCell<(i64, Option<Timestamp>)>,
    /// The operation's number.
    pub operation_id: i64,
    /// The client takes several replies.
    pub exhaust_allowed: bool,
    /// What the listener does afterwards.
    pub outcome: Outcome,
    /// A fault of a write closes the connection, whatever comes of the command.
    pub write_hangs_up: Cell<bool>,
    /// What the operation has looked at and changed.
    pub tally: Tally,
}

impl Context<'_> {
    /// The write concern of this command: its own, completed or replaced by the default.
    pub fn write_concern(&self) -> WriteConcern {
        let default =
            || self.service.concern_defaults.write().unwrap_or_else(WriteConcern::majority);
        match &self.generic.write_concern {
            Some(own) if own.w.is_some() => own.clone(),
            Some(own) => WriteConcern { w: default().w, ..own.clone() },
            None => default(),
        }
    }

    /// The error of a write concern that one member can't satisfy, of a command that has begun to
    /// write.
    fn unsatisfied(&self) -> Option<Error> {
        if !self.writing.get() {
            return None;
        }
        let provenance = match &self.generic.write_concern {
            Some(_) => "clientSupplied",
            None => "customDefault",
        };
        let concern = self.write_concern();
        let timed_out = || self.timed_out.get().then(|| concern.timed_out(provenance));
        concern.unsatisfied(provenance).or_else(timed_out)
    }

    /// The level at which this command reads.
    pub fn read_level(&self) -> ReadLevel {
        let own = self.generic.read_concern.level;
        own.or_else(|| self.service.concern_defaults.read()).unwrap_or_default()
    }

    /// Waits until what was read is on disk, if the read concern asks for that.
    pub fn await_durable_reads(&self, level: ReadLevel) -> Result<()> {
        match level.is_durable() {
            true => self
                .service
                .engine
                .barrier(self.service.engine.version())
                .map_err(reply::from_storage),
            false => Ok(()),
        }
    }

    /// Fails on a standalone.
    pub fn check_member(&self) -> Result<()> {
        match self.service.options.topology {
            Topology::Standalone => {
                let text = format!("'{}' is not supported on standalone nodes.", self.command.name);
                Err(Error::location(51300, text))
            }
            Topology::ReplicaSet(_) => Ok(()),
        }
    }

    /// How far a commit of this command must get before the reply.
    pub fn commit_options(&self) -> CommitOptions {
        self.writing.set(true);
        let durability = self.write_concern().durability();
        CommitOptions { durability, interrupt: Some(Arc::clone(&self.interrupt)) }
    }

    /// The namespace that the command's first field names.
    pub fn target(&self, body: Doc<'_>) -> Result<Namespace> {
        match body.first().map(|first| first.value()) {
            Some(Value::String(collection)) => Namespace::new(self.db, collection),
            other => {
                let found = other.map_or("missing", |value| value.type_name());
                let text = format!("collection name has invalid type {found}");
                Err(Error::new(ErrorCode::InvalidNamespace, text))
            }
        }
    }

    /// `$$NOW` in milliseconds and `$$CLUSTER_TIME` (none on a standalone): one reading for the
    /// whole command.
    pub fn clock(&self) -> (i64, Option<Timestamp>) {
        *self.clock.get_or_init(|| {
            let replicates = self.service.options.topology != Topology::Standalone;
            (now_ms(), replicates.then(|| self.service.cluster_time()))
        })
    }

    /// What evaluating the command's expressions shares: clock, interrupts, randomness.
    pub fn shared(&self) -> Shared {
        let interrupt = Arc::clone(&self.interrupt);
        let check = move || interrupt.check().map_err(reply::from_interruption);
        let (now, cluster_time) = self.clock();
        let mut shared = Shared::new(now).with_interrupt(Arc::new(check));
        shared.cluster_time = cluster_time;
        shared.with_random(Arc::new(random_u64))
    }

    /// Fails if the operation was killed, timed out, or lost its client.
    pub fn check_interrupt(&self) -> Result<()> {
        self.interrupt.check().map_err(reply::from_interruption)
    }

    /// The documents of an argument that may come as a sequence.
    pub fn sequence(&self, name: &str) -> Option<&[Doc<'_>]> {
        self.sequences.iter().find(|sequence| sequence.name == name).map(|found| &*found.documents)
    }
}

/// How far a request has come.
#[derive(Default)]
struct Attempt {
    command: Option<&'static Command>,
    operation: Option<Arc<Operation>>,
    tally: Tally,
    outcome: Outcome,
}

/// Runs one request and appends its reply document.
pub fn handle(connection: &mut Connection, request: &Request<'_>, out: &mut Vec<u8>) -> Outcome {
    let started = Instant::now();
    let service = Arc::clone(&connection.service);
    let start = out.len();
    let mut attempt = Attempt::default();
    let result =
        catch_unwind(AssertUnwindSafe(|| run(&service, connection, request, out, &mut attempt)));
    let result = result.unwrap_or_else(|panic| {
        service.metrics.internal_errors.add(1);
        log_panic(&service, connection, request.body, &*panic);
        Err(Error::internal("the server failed on this command; see its log").into())
    });
    if let Err(Failed { error, unsatisfied }) = &result {
        out.truncate(start);
        let mut reply = DocWriter::new(out);
        reply::write_error_reply(&mut reply, error);
        if let Some(unsatisfied) = unsatisfied {
            reply::write_write_concern_error(&mut reply, unsatisfied);
        }
        gossip::write_times(&service, &mut reply);
        service.metrics.user_errors.add(1);
    }
    let Some(command) = attempt.command else {
        service.metrics.by_command.unknown.add(1);
        return attempt.outcome;
    };
    let ended = Ended {
        op: Class::of(command),
        namespace: attempt.operation.as_ref().map_or("", |operation| operation.namespace.as_str()),
        command: request.body,
        is_statement: false,
        tally: &attempt.tally,
        error: result.as_ref().err().map(|failed| &failed.error),
        micros: started.elapsed().as_micros() as u64,
        reply_bytes: out.len() - start,
    };
    end_command(&service, connection, command, &ended);
    attempt.outcome
}

/// What a command failed with, and the write concern that failed beside it.
struct Failed {
    error: Error,
    unsatisfied: Option<Error>,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed { error, unsatisfied: None }
    }
}

/// From the request to a finished reply; the error is not written yet.
fn run(
    service: &Arc<Service>,
    connection: &mut Connection,
    request: &Request<'_>,
    out: &mut Vec<u8>,
    attempt: &mut Attempt,
) -> Result<(), Failed> {
    let name = request.body.first().map_or("", |first| first.key());
    let tests = || service.parameters.flag("enableTestCommands");
    let Some(command) = registry::find(name).filter(|row| !row.test_only || tests()) else {
        return Err(no_such_command(name).into());
    };
    attempt.command = Some(command);
    let mut cx = prepare(service, connection, request, command, name)?;
    let running = service.operations.begin(describe(&cx, request.body));
    attempt.operation = Some(Arc::clone(&running.operation));
    let mut reply = DocWriter::new(out);
    let fault = service.fail_points.strike(FAIL_COMMAND, &cx, request.body);
    let result = fault.as_ref().map_or(Ok(()), |fault| fault.before(&mut cx));
    let result = result.and_then(|()| execute(&mut cx, request.body, &mut reply));
    drop(running);
    (attempt.outcome, attempt.tally) = (cx.outcome, std::mem::take(&mut cx.tally));
    attempt.outcome.hang_up |= cx.write_hangs_up.get();
    let unsatisfied = cx.unsatisfied();
    if let Err(error) = result {
        return Err(Failed { error: labelled(&cx, error), unsatisfied });
    }
    let told = fault.is_some_and(|fault| fault.after(&mut reply));
    if let Some(error) = unsatisfied.filter(|_| !told) {
        reply::write_write_concern_error(&mut reply, &error);
    }
    reply.append("ok", 1.0);
    gossip::write_times(service, &mut reply);
    Ok(())
}

/// The command itself. A write passes the gate that `fsync` closes; what a read shows is on disk
/// where its concern asks for that.
fn execute(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let Some(run) = cx.command.run else {
        return Err(Error::not_built(&format!("the command {}", cx.command.name)));
    };
    let service = cx.service;
    let _writing = match cx.command.kind {
        Kind::Write => Some(service.write_gate.enter(&cx.interrupt)?),
        Kind::Read | Kind::Other => None,
    };
    run(cx, body, reply)?;
    match cx.command.takes_read_concern {
        true => cx.await_durable_reads(cx.read_level()),
        false => Ok(()),
    }
}

/// The checks before a command runs.
fn prepare<'c>(
    service: &'c Arc<Service>,
    connection: &'c mut Connection,
    request: &'c Request<'_>,
    command: &'static Command,
    spelling: &'c str,
) -> Result<Context<'c>> {
    let handshake = matches!(command.name, "hello" | "isMaster");
    if request.legacy_query && !handshake {
        let text = format!(
            "Unsupported OP_QUERY command: {spelling}. The client driver may require an upgrade."
        );
        return Err(Error::new(ErrorCode::UnsupportedOpQueryCommand, text));
    }
    let db = database(request)?;
    let generic = generic_fields(request.body, command)?;
    check_api(&generic.api, command, request.body, service)?;
    operation_session::check(&generic, command, &service.options.topology)?;
    gossip::receive(service, request.body)?;
    let member = service.options.topology != Topology::Standalone;
    generic.read_concern.check_reached(member.then(|| service.cluster_time()))?;
    if command.admin_only && db != "admin" {
        let text = format!("{} may only be run against the admin database.", command.name);
        return Err(Error::new(ErrorCode::Unauthorized, text));
    }
    if generic.max_time_ms > 0 {
        request
            .interrupt
            .set_deadline(Some(Instant::now() + Duration::from_millis(generic.max_time_ms)));
    }
    let session = operation_session::attach(service, generic.session)?;
    let operation_id = service.operations.next_id();
    Ok(Context {
        service,
        connection,
        command,
        spelling,
        db,
        sequences: request.sequences,
        interrupt: Arc::clone(&request.interrupt),
        clock: OnceCell::new(),
        generic,
        session,
        writing: Cell::new(false),
        timed_out: Cell::new(false),
        operation_id,
        exhaust_allowed: request.exhaust_allowed,
        outcome: Outcome::default(),
        write_hangs_up: Cell::new(false),
        tally: Tally::default(),
    })
}

/// Tells a driver that it may repeat a retryable write that failed so.
fn labelled(cx: &Context<'_>, error: Error) -> Error {
    match cx.generic.txn_number.is_some() && error.code().is_a(ErrorClass::RetriableError) {
        true => error.with_label(Label::RetryableWriteError),
        false => error,
    }
}

fn no_such_command(name: &str) -> Error {
    Error::new(ErrorCode::CommandNotFound, format!("no such command: '{name}'"))
}

/// The database that the command runs against.
fn database<'c>(request: &'c Request<'_>) -> Result<&'c str> {
    let db = match request.body.get("$db") {
        Some(Value::String(db)) => db,
        Some(other) => {
            let text = format!("wrong type for field ($db) {} != string", other.type_name());
            return Err(Error::location(13111, text));
        }
        None if request.legacy_query => "admin",
        None => {
            let text = "OP_MSG requests require a $db argument";
            return Err(Error::location(40571, text));
        }
    };
    quire_catalog::validate_db_name(db)?;
    Ok(db)
}

/// What `currentOp` shows of the operation.
fn describe(cx: &Context<'_>, body: Doc<'_>) -> Operation {
    let namespace = match body.first().map(|first| first.value()) {
        Some(Value::String(collection)) if cx.command.kind != Kind::Other => {
            [cx.db, ".", collection].concat()
        }
        _ => match body.get("collection").and_then(|name| name.as_str()) {
            Some(collection) if cx.command.name == "getMore" => [cx.db, ".", collection].concat(),
            _ if cx.command.name == "aggregate" => [cx.db, ".$cmd.aggregate"].concat(),
            _ => [cx.db, ".$cmd"].concat(),
        },
    };
    Operation {
        id: cx.operation_id,
        started: Instant::now(),
        command: cx.command,
        namespace,
        body: shown_body(body),
        connection: (cx.connection.name.clone(), cx.connection.info.id),
        peer: cx.connection.info.peer,
        client: cx.connection.client.clone(),
        session: cx.generic.session,
        interrupt: Arc::clone(&cx.interrupt),
    }
}
