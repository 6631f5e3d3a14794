//! Commands on a service in memory: behaviour that no recorded case shows.

#![allow(clippy::unwrap_used)]

mod access;
mod administration;
mod advise_indexes;
mod advise_totals;
mod advise_truth;
#[path = "../../../mql/tests/it/allocator.rs"]
mod allocator;
mod analyze_schema;
mod attacks;
mod audit;
mod buckets;
mod change_streams;
mod changes;
mod clustered;
mod counters;
mod cursors;
mod dumps;
mod durability;
mod fail_points;
mod fsync;
mod full_disk;
mod geo;
mod hidden_metadata;
mod index_builds;
mod index_filters;
mod isolation;
mod job_lanes;
mod job_slots;
mod jobs;
mod late;
mod maintenance;
mod many_documents;
mod matrix;
mod memory;
mod oplog;
mod ownership;
mod parameters;
mod patterns;
mod plan_cache;
mod plan_fuzz;
mod pool;
mod profile;
mod query_settings;
mod recorder;
mod redaction;
mod refusals;
mod refusals_of_reads;
mod refusals_of_writes;
mod requests;
mod retryable;
mod rights_fuzz;
mod rollups;
mod server_stages;
mod sessions;
mod shard_key;
mod snapshot_reads;
mod stage_rights;
mod stats;
mod tailing;
mod text_search;
mod time_series;
mod transactions;
mod user_jobs;
mod validate;
mod validators;
mod waits;
mod what_if;

use quire_commands::Outcome;
use quire_commands::log::{LogLine, LogSink, NoLog};
use quire_commands::{Connection, ConnectionInfo, Request, Service, ServiceOptions, Topology};
use quire_document::{Doc, DocBuf, Value};
use quire_storage::{Clock, Engine, Interrupt, open_memory};
use std::sync::{Arc, Mutex};

/// A service in memory.
struct Server(Arc<Service>);

/// A client of it.
struct Client(Connection);

/// A line of the log: message, component and attributes.
type Line = (String, &'static str, DocBuf);

/// Keeps the lines of the log.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<Line>>>);

impl Lines {
    /// Returns the component and the attributes of the lines with this message.
    fn with_message(&self, message: &str) -> Vec<(&'static str, DocBuf)> {
        let lines = self.0.lock().unwrap();
        let of_message = lines.iter().filter(|line| line.0 == message);
        of_message.map(|(_, component, attributes)| (*component, attributes.clone())).collect()
    }

    fn slow(&self) -> Vec<(&'static str, DocBuf)> {
        self.with_message("Slow query")
    }
}

impl LogSink for Lines {
    fn write(&self, line: LogLine<'_>) {
        self.0.lock().unwrap().push((line.message.to_owned(), line.component, line.attributes));
    }

    fn lines_written(&self) -> u64 {
        0
    }

    fn recent(&self) -> Vec<String> {
        Vec::new()
    }

    fn startup_warnings(&self) -> Vec<String> {
        Vec::new()
    }

    fn rotate(&self) -> std::io::Result<()> {
        Ok(())
    }
}

fn replica_set() -> Topology {
    Topology::ReplicaSet("rs0".into())
}

impl Server {
    fn new() -> Server {
        Server::with(&[("enableTestCommands", "1")])
    }

    fn with(parameters: &[(&str, &str)]) -> Server {
        Server::open(open_memory().unwrap(), replica_set(), parameters, Arc::new(NoLog))
    }

    /// Returns a server with access control.
    fn guarded() -> Server {
        Server::guarded_logging(Arc::new(NoLog))
    }

    fn guarded_logging(log: Arc<dyn LogSink>) -> Server {
        Server::open_with(open_memory().unwrap(), replica_set(), &[], log, true)
    }

    fn of(topology: Topology) -> Server {
        Server::open(open_memory().unwrap(), topology, &[], Arc::new(NoLog))
    }

    fn logging(lines: &Lines) -> Server {
        Server::open(open_memory().unwrap(), replica_set(), &[], Arc::new(lines.clone()))
    }

    /// Returns a new process on the same data.
    fn reopened(&self) -> Server {
        let engine = Arc::clone(self.0.store().engine());
        Server::open(engine, replica_set(), &[], Arc::new(NoLog))
    }

    /// A process on this engine that begins when `clock` shows it.
    fn at(engine: Arc<dyn Engine>, clock: Arc<dyn Clock>) -> Server {
        let options = ServiceOptions { clock, ..ServiceOptions::in_process("memory", None) };
        Server(Service::open(engine, options).unwrap())
    }

    fn open(
        engine: Arc<dyn Engine>,
        topology: Topology,
        parameters: &[(&str, &str)],
        log: Arc<dyn LogSink>,
    ) -> Server {
        Server::open_with(engine, topology, parameters, log, false)
    }

    fn open_with(
        engine: Arc<dyn Engine>,
        topology: Topology,
        parameters: &[(&str, &str)],
        log: Arc<dyn LogSink>,
        access_control: bool,
    ) -> Server {
        let parameters = parameters.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let options = ServiceOptions {
            topology,
            argv: Vec::new(),
            parameters: parameters.collect(),
            log,
            access_control,
            ..ServiceOptions::in_process("memory", None)
        };
        Server(Service::open(engine, options).unwrap())
    }

    fn client(&self, id: u64) -> Client {
        Client(self.0.connect(ConnectionInfo {
            id,
            peer: None,
            local: None,
            certificate_subject: None,
        }))
    }
}

impl Client {
    /// Returns a reply and the outcome for the listener.
    fn exchange(&mut self, command: &DocBuf, interrupt: Arc<Interrupt>) -> (DocBuf, Outcome) {
        let mut reply = Vec::new();
        let request = Request {
            body: command.as_doc(),
            sequences: &[],
            legacy_query: false,
            exhaust_allowed: false,
            interrupt,
        };
        let outcome = self.0.handle(&request, &mut reply);
        (DocBuf::from_valid_bytes(reply), outcome)
    }

    fn run(&mut self, command: DocBuf) -> DocBuf {
        self.exchange(&command, Interrupt::new()).0
    }

    /// Runs a command that must succeed, and returns its reply.
    fn works(&mut self, command: DocBuf) -> DocBuf {
        let reply = self.run(command.clone());
        assert_eq!(code(&reply), 0, "{command:?}: {reply:?}");
        reply
    }
}

/// Returns the code of an error reply, 0 for one that says `ok: 1`.
fn code(reply: &DocBuf) -> i32 {
    match (reply.get("ok"), reply.get("code")) {
        (Some(Value::Double(1.0) | Value::Int32(1)), None) => 0,
        (_, Some(Value::Int32(code))) => code,
        _ => panic!("neither ok nor an error: {reply:?}"),
    }
}

/// Returns a field by its dotted path.
fn at<'a>(reply: &'a DocBuf, path: &str) -> Option<Value<'a>> {
    let mut doc: Doc<'a> = reply.as_doc();
    let (parents, last) = path.rsplit_once('.').map_or((None, path), |(a, b)| (Some(a), b));
    for name in parents.into_iter().flat_map(|parents| parents.split('.')) {
        doc = match doc.get(name)? {
            Value::Array(array) => array.as_doc(),
            value => value.as_document()?,
        };
    }
    doc.get(last)
}

/// Returns a whole number by its dotted path.
fn number(reply: &DocBuf, path: &str) -> Option<i64> {
    match at(reply, path)? {
        Value::Int32(number) => Some(number.into()),
        Value::Int64(number) => Some(number),
        Value::Double(number) if number.fract() == 0.0 => Some(number as i64),
        other => panic!("{path} is no whole number: {other:?}"),
    }
}

/// Returns a boolean by its dotted path.
fn flag(reply: &DocBuf, path: &str) -> Option<bool> {
    at(reply, path)?.as_bool()
}

/// Returns a string by its dotted path.
fn text<'a>(reply: &'a DocBuf, path: &str) -> Option<&'a str> {
    at(reply, path)?.as_str()
}
