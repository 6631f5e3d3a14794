//! What happens around every command, in one visible list: find its row, read the fields that
//! all commands take, check API version and concerns, register the operation, run it under a
//! panic guard, finish the reply, count and log.

use crate::args::{self, Arg};
use crate::concern::{ReadConcern, WriteConcern};
use crate::fail_points::FAIL_COMMAND;
use crate::gossip;
use crate::log::{LogLine, Severity};
use crate::operation::Operation;
use crate::operation_session::{self, TransactionFields};
use crate::registry::{self, Command, Kind};
use crate::reply;
use crate::service::{Connection, Outcome, Request, Sequence, Service, Topology};
use quire_catalog::Namespace;
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::context::Shared;
use quire_session::{Session, SessionId};
use quire_storage::{CommitOptions, Interrupt};
use std::cell::Cell;
use std::collections::HashSet;
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
    /// The operation's number.
    pub operation_id: i64,
    /// The client takes several replies.
    pub exhaust_allowed: bool,
    /// What the listener does afterwards.
    pub outcome: Outcome,
    /// A fault of a write closes the connection, whatever comes of the command.
    pub write_hangs_up: Cell<bool>,
}

/// The fields that every command takes, checked.
#[derive(Default)]
pub struct Generic<'c> {
    /// `maxTimeMS`, 0 for none.
    pub max_time_ms: u64,
    /// `comment`.
    pub comment: Option<Value<'c>>,
    /// `lsid`.
    pub session: Option<SessionId>,
    /// `txnNumber`.
    pub txn_number: Option<i64>,
    /// `autocommit` and `startTransaction`.
    pub transaction: TransactionFields,
    /// `readConcern`.
    pub read_concern: ReadConcern,
    /// `writeConcern`; `None` means the default.
    pub write_concern: Option<WriteConcern>,
    /// `apiVersion`, `apiStrict`, `apiDeprecationErrors` as given.
    pub api: ApiParameters,
}

/// The Stable API's parameters of one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiParameters {
    /// `apiVersion`.
    pub version: Option<String>,
    /// `apiStrict`.
    pub strict: Option<bool>,
    /// `apiDeprecationErrors`.
    pub deprecation_errors: Option<bool>,
}

impl ApiParameters {
    /// The parameters as a cursor keeps them.
    pub fn to_doc(&self) -> DocBuf {
        DocBuf::build(|writer| {
            if let Some(version) = &self.version {
                writer.append("apiVersion", version.as_str());
            }
            if let Some(strict) = self.strict {
                writer.append("apiStrict", strict);
            }
            if let Some(errors) = self.deprecation_errors {
                writer.append("apiDeprecationErrors", errors);
            }
        })
    }
}

impl Context<'_> {
    /// The write concern of this command.
    pub fn write_concern(&self) -> WriteConcern {
        self.generic.write_concern.clone().unwrap_or_else(WriteConcern::majority)
    }

    /// How far a commit of this command must get before the reply.
    pub fn commit_options(&self) -> CommitOptions {
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

    /// What evaluating the command's expressions shares: clock, interrupts, randomness.
    pub fn shared(&self) -> Shared {
        let interrupt = Arc::clone(&self.interrupt);
        let check = move || interrupt.check().map_err(reply::from_interruption);
        let mut shared = Shared::new(crate::service::now_ms()).with_interrupt(Arc::new(check));
        if self.service.options.topology != Topology::Standalone {
            shared.cluster_time = Some(self.service.cluster_time());
        }
        shared.with_random(Arc::new(crate::service::random_u64))
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

/// Runs one request and appends its reply document.
pub fn handle(connection: &mut Connection, request: &Request<'_>, out: &mut Vec<u8>) -> Outcome {
    let started = Instant::now();
    let service = Arc::clone(&connection.service);
    let start = out.len();
    let mut outcome = Outcome::default();
    let result =
        catch_unwind(AssertUnwindSafe(|| run(&service, connection, request, out, &mut outcome)));
    let (kind, result) = match result {
        Ok((kind, result)) => (kind, result),
        Err(panic) => {
            service.metrics.internal_errors.add(1);
            let text = panic_text(&*panic);
            log_panic(&service, connection, request.body, &text);
            (Kind::Other, Err(Error::internal("the server failed on this command; see its log")))
        }
    };
    if let Err(error) = result {
        out.truncate(start);
        let mut reply = DocWriter::new(out);
        reply::write_error_reply(&mut reply, &error);
        gossip::write_times(&service, &mut reply);
        service.metrics.user_errors.add(1);
    }
    count(&service, connection, request.body, kind, started);
    outcome
}

/// From the request to a finished reply; the error is not written yet.
fn run(
    service: &Arc<Service>,
    connection: &mut Connection,
    request: &Request<'_>,
    out: &mut Vec<u8>,
    outcome: &mut Outcome,
) -> (Kind, Result<()>) {
    let first = match request.body.first() {
        Some(first) => first,
        None => return (Kind::Other, Err(no_such_command(""))),
    };
    let tests = || service.parameters.flag("enableTestCommands");
    let Some(command) = registry::find(first.key()).filter(|row| !row.test_only || tests()) else {
        return (Kind::Other, Err(no_such_command(first.key())));
    };
    let result = prepare(service, connection, request, command, first.key()).and_then(|mut cx| {
        let running = service.operations.begin(describe(&cx, request.body));
        let mut reply = DocWriter::new(out);
        let fault = service.fail_points.strike(FAIL_COMMAND, &cx, request.body);
        let result = fault.as_ref().map_or(Ok(()), |fault| fault.before(&mut cx));
        let result = result.and_then(|()| match command.run {
            Some(run) => run(&mut cx, request.body, &mut reply),
            None => Err(Error::not_built(&format!("the command {}", command.name))),
        });
        drop(running);
        *outcome = cx.outcome;
        outcome.hang_up |= cx.write_hangs_up.get();
        let unsatisfied = match command.kind {
            Kind::Write => cx.generic.write_concern.as_ref().and_then(WriteConcern::unsatisfied),
            _ => None,
        };
        if result.is_ok() {
            let told = fault.is_some_and(|fault| fault.after(&mut reply));
            if let Some(error) = unsatisfied.as_ref().filter(|_| !told) {
                reply::write_write_concern_error(&mut reply, error);
            }
            reply.append("ok", 1.0);
            gossip::write_times(service, &mut reply);
        }
        result
    });
    (command.kind, result)
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
    let session = operation_session::attach(service, generic.session, command)?;
    let operation_id = service.operations.next_id();
    Ok(Context {
        service,
        connection,
        command,
        spelling,
        db,
        sequences: request.sequences,
        interrupt: Arc::clone(&request.interrupt),
        generic,
        session,
        operation_id,
        exhaust_allowed: request.exhaust_allowed,
        outcome: Outcome::default(),
        write_hangs_up: Cell::new(false),
    })
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

/// Reads the fields that every command takes, and refuses a field that comes twice.
fn generic_fields<'c>(body: Doc<'c>, command: &'static Command) -> Result<Generic<'c>> {
    let mut generic = Generic::default();
    // A short body is compared name by name; a long one, which is hostile, must not cost its square.
    const SHORT: usize = 32;
    let mut rest = HashSet::new();
    for (at, element) in body.iter().enumerate().skip(1) {
        let name = element.key_bytes();
        let twice = body.iter().take(at.min(SHORT)).any(|earlier| earlier.key_bytes() == name)
            || at >= SHORT && !rest.insert(name);
        if twice {
            let (command, name) = (command.name, element.key());
            let text = format!("BSON field '{command}.{name}' is a duplicate field");
            return Err(Error::new(ErrorCode::IDLDuplicateField, text));
        }
        if args::is_generic(name) {
            generic_field(&mut generic, Arg::new(command.name, element), command)?;
        }
    }
    Ok(generic)
}

fn generic_field<'c>(
    generic: &mut Generic<'c>,
    arg: Arg<'c>,
    command: &'static Command,
) -> Result<()> {
    let name = arg.name();
    if arg.is_null() {
        return Ok(());
    }
    match name {
        "maxTimeMS" if command.name == "getMore" => {}
        "maxTimeMS" => generic.max_time_ms = max_time(&arg)?,
        "maxTimeMSOpOnly" => {
            let text = "Can not specify maxTimeMSOpOnly for non internal clients";
            return Err(Error::new(ErrorCode::InvalidOptions, text));
        }
        "comment" => generic.comment = Some(arg.value()),
        "lsid" => generic.session = Some(operation_session::lsid(arg.value())?),
        "txnNumber" => {
            generic.txn_number = Some(operation_session::transaction_number(arg.value())?);
        }
        "readConcern" => {
            let concern = ReadConcern::parse(arg.document()?)?;
            let document_write = matches!(
                command.name,
                "insert" | "update" | "delete" | "findAndModify" | "bulkWrite"
            );
            if !concern.is_plain() && !command.takes_read_concern && !document_write {
                let text = format!("Command {} does not support this readConcern", command.name);
                return Err(Error::new(ErrorCode::InvalidOptions, text));
            }
            generic.read_concern = concern;
        }
        "writeConcern" => {
            let concern = WriteConcern::parse(arg.document()?)?;
            if command.kind != Kind::Write
                && !matches!(command.name, "aggregate" | "setDefaultRWConcern")
            {
                let text = "Command does not support writeConcern";
                return Err(Error::new(ErrorCode::InvalidOptions, text));
            }
            generic.write_concern = Some(concern);
        }
        "apiVersion" => generic.api.version = Some(arg.string()?.to_owned()),
        "apiStrict" => generic.api.strict = Some(arg.bool()?),
        "apiDeprecationErrors" => generic.api.deprecation_errors = Some(arg.bool()?),
        "autocommit" => generic.transaction.autocommit = Some(arg.bool()?),
        "startTransaction" => generic.transaction.start = Some(arg.bool()?),
        _ => {}
    }
    Ok(())
}

/// Reads `maxTimeMS`.
pub fn max_time(arg: &Arg<'_>) -> Result<u64> {
    let value = arg.value();
    if !value.is_number() {
        return Err(Error::type_mismatch("maxTimeMS must be a number"));
    }
    let Some(whole) = value.exact_i64() else {
        return Err(Error::failed_to_parse("maxTimeMS has non-integral value"));
    };
    if !(0..=i64::from(i32::MAX)).contains(&whole) {
        let text = format!("{whole} value for maxTimeMS is out of range");
        return Err(Error::bad_value(text));
    }
    Ok(whole as u64)
}

/// Checks the Stable API's parameters against the command and its fields.
fn check_api(
    api: &ApiParameters,
    command: &Command,
    body: Doc<'_>,
    service: &Service,
) -> Result<()> {
    let Some(version) = &api.version else {
        if api.strict.is_some() || api.deprecation_errors.is_some() {
            let text = "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion";
            return Err(Error::location(4886600, text));
        }
        if service.parameters.require_api_version() && command.name != "getMore" {
            let text = "The apiVersion parameter is required, please configure your MongoClient's API version";
            return Err(Error::location(498870, text));
        }
        return Ok(());
    };
    if version != "1" {
        let text = format!("Cannot accept API version {version}");
        return Err(Error::new(ErrorCode::APIVersionError, text));
    }
    if api.strict != Some(true) {
        return Ok(());
    }
    if !command.in_api_v1 {
        let text = format!(
            "Provided apiStrict:true, but the command {} is not in API Version 1",
            command.name
        );
        return Err(Error::new(ErrorCode::APIStrictError, text));
    }
    if let Some(field) = command.outside_api_v1.iter().find(|field| body.contains(field)) {
        let owner = if command.name == "find" { "FindCommandRequest" } else { command.name };
        let text = format!("BSON field '{owner}.{field}' is not allowed with apiStrict:true.");
        return Err(Error::new(ErrorCode::APIStrictError, text));
    }
    Ok(())
}

/// What `currentOp` shows of the operation.
fn describe(cx: &Context<'_>, body: Doc<'_>) -> Operation {
    let namespace = match body.first().map(|first| first.value()) {
        Some(Value::String(collection)) if cx.command.kind != Kind::Other => {
            [cx.db, ".", collection].concat()
        }
        _ => [cx.db, ".$cmd"].concat(),
    };
    Operation {
        id: cx.operation_id,
        started: Instant::now(),
        command: cx.command.name,
        namespace,
        body: shown_body(body),
        connection: (cx.connection.name.clone(), cx.connection.info.id),
        peer: cx.connection.info.peer,
        client: cx.connection.client.clone(),
        session: cx.generic.session,
        interrupt: Arc::clone(&cx.interrupt),
    }
}

/// The command document, without long arrays of documents.
fn shown_body(body: Doc<'_>) -> DocBuf {
    const BYTES_MAX: usize = 1024;
    if body.len() <= BYTES_MAX {
        return body.to_owned();
    }
    DocBuf::build(|writer| {
        for element in body.iter() {
            if element.value_bytes().len() <= BYTES_MAX {
                writer.append_element(element);
            } else {
                writer.append(element.key(), "(too long to show)");
            }
        }
    })
}

/// Adds the operation to the counters, and to the log if it was slow.
fn count(service: &Service, connection: &Connection, body: Doc<'_>, kind: Kind, started: Instant) {
    let micros = started.elapsed().as_micros() as u64;
    let metrics = &service.metrics;
    match kind {
        Kind::Read => metrics.reads_latency.note(micros),
        Kind::Write => metrics.writes_latency.note(micros),
        Kind::Other => metrics.commands_latency.note(micros),
    }
    if micros / 1000 < service.parameters.slow_ms() || kind == Kind::Other {
        return;
    }
    let attributes = DocBuf::build(|writer| {
        writer.append("type", "command");
        writer.append("command", &shown_body(body));
        writer.append("durationMillis", (micros / 1000) as i64);
    });
    service.log().write(LogLine {
        severity: Severity::Info,
        component: "COMMAND",
        id: 51803,
        context: &connection.name,
        message: "Slow query",
        attributes,
    });
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

fn log_panic(service: &Service, connection: &Connection, body: Doc<'_>, text: &str) {
    let attributes = DocBuf::build(|writer| {
        writer.append("panic", text).append("command", &shown_body(body));
    });
    service.log().write(LogLine {
        severity: Severity::Error,
        component: "COMMAND",
        id: 1,
        context: &connection.name,
        message: "A command panicked",
        attributes,
    });
}
