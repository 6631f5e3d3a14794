//! The state of one server, and the entry point for requests from the listener.

use crate::frame::accounts::{AccessControl, Identity};
use crate::frame::audit::LogoutReason;
use crate::frame::audit_log::{AuditLog, AuditOptions};
use crate::frame::auto_compact::AutoCompact;
use crate::frame::certificate::ServerCertificate;
use crate::frame::change_log::{ChangeLogOptions, ChangeLogSize};
use crate::frame::cluster_clock::ClusterClock;
use crate::frame::cluster_parameters::ClusterParameters;
use crate::frame::command::Commands;
use crate::frame::concern_defaults::ConcernDefaults;
use crate::frame::config_version::ConfigVersion;
use crate::frame::dispatch;
use crate::frame::fail_points::FailPoints;
use crate::frame::idle_connections::IdleConnections;
use crate::frame::job_list::JobList;
use crate::frame::laboratory_gate::LaboratoryGate;
use crate::frame::log::LogSink;
use crate::frame::login::Login;
use crate::frame::metrics::Metrics;
use crate::frame::operation::Operations;
use crate::frame::parameters::Parameters;
use crate::frame::profiler::Profiler;
use crate::frame::query_settings::QuerySettingsOfServer;
use crate::frame::recorder::{ConnectionCells, Recorder};
use crate::frame::set_name;
use crate::frame::usage::Usage;
use crate::frame::write_block::WriteBlock;
use crate::frame::write_gate::WriteGate;
use quire_collections::{Store, StoreOptions};
use quire_document::memory::Pool;
use quire_document::{Doc, DocBuf, DocWriter, ObjectId};
use quire_error::Result;
use quire_session::{Cursors, Sessions};
use quire_storage::{Clock, Engine, Interrupt, rng};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Instant;

/// The topology that the server presents to drivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// The primary of a replica set with one member, of this name.
    ReplicaSet(String),
    /// A standalone server.
    Standalone,
}

/// The options of a service.
pub struct ServiceOptions {
    /// The topology that drivers see.
    pub topology: Topology,
    /// True if the user chose the name of the replica set: a directory of another set is refused
    /// then. Otherwise the set has the name that the directory has.
    pub set_name_given: bool,
    /// The commit that the program was built from, for `buildInfo`.
    pub git_version: &'static str,
    /// The `host:port` under which clients reach the server; `None` for the local address of each
    /// connection.
    pub advertise: Option<String>,
    /// The command line as given.
    pub argv: Vec<String>,
    /// The parsed command line, in the form of mongod's configuration file.
    pub parsed_options: DocBuf,
    /// The engine's name for `serverStatus`.
    pub storage_engine: &'static str,
    /// Parameters of `--setParameter`, by name.
    pub parameters: Vec<(String, String)>,
    /// The wall clock that cluster times follow.
    pub clock: Arc<dyn Clock>,
    /// The destination of log lines.
    pub log: Arc<dyn LogSink>,
    /// The audit log; `None` for none.
    pub audit: Option<AuditOptions>,
    /// Called once when the `shutdown` command stops the process.
    pub on_shutdown: Arc<dyn Fn() + Send + Sync>,
    /// True if clients must log in and need privileges.
    pub access_control: bool,
    /// The directory of the data, `None` for memory only.
    pub data_directory: Option<std::path::PathBuf>,
    /// The certificate that clients see; `None` without TLS.
    pub certificate: Option<Arc<dyn ServerCertificate>>,
    /// The bytes of memory that all requests may use together; `usize::MAX` for no limit.
    pub request_bytes_max: usize,
    /// The log of changes, which change streams read.
    pub change_log: ChangeLogOptions,
    /// False to count no statements (`--recorder off`).
    pub recorder: bool,
    /// The folder with the history of `serverStatus`; `None` to keep none.
    pub status_history: Option<std::path::PathBuf>,
}

/// One database server without its sockets.
pub struct Service {
    pub(crate) commands: &'static Commands,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) store: Arc<Store>,
    pub(crate) options: ServiceOptions,
    pub(crate) parameters: Parameters,
    pub(crate) operations: Operations,
    pub(crate) idle_connections: IdleConnections,
    pub(crate) jobs: JobList,
    pub(crate) fail_points: FailPoints,
    pub(crate) write_gate: WriteGate,
    pub(crate) laboratory: LaboratoryGate,
    pub(crate) profiler: Profiler,
    pub(crate) usage: Usage,
    pub(crate) cursors: Cursors,
    pub(crate) sessions: Sessions,
    pub(crate) concern_defaults: ConcernDefaults,
    pub(crate) query_settings: QuerySettingsOfServer,
    pub(crate) recorder: Recorder,
    pub(crate) cluster_parameters: ClusterParameters,
    pub(crate) config_version: ConfigVersion,
    pub(crate) change_log_size: ChangeLogSize,
    pub(crate) write_block: WriteBlock,
    pub(crate) auto_compact: AutoCompact,
    pub(crate) access: AccessControl,
    pub(crate) audit: Option<AuditLog>,
    pub(crate) clock: ClusterClock,
    pub(crate) process_id: ObjectId,
    pub(crate) started: Instant,
    pub(crate) started_ms: i64,
    next_request_id: AtomicI32,
    /// The directory in which blocking stages spill; `None` for the system's directory.
    pub(crate) spill_directory: Option<Arc<Path>>,
    /// The memory that all requests use together.
    memory: Arc<Pool>,
    /// Counters for `serverStatus`.
    pub metrics: Metrics,
}

/// The origin of a connection.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    /// The server's number of the connection.
    pub id: u64,
    /// The client's address; `None` for an embedded or unix-socket client.
    pub peer: Option<SocketAddr>,
    /// The server's address of the connection.
    pub local: Option<SocketAddr>,
    /// The subject of the client's verified certificate.
    pub certificate_subject: Option<String>,
}

/// The documents of one OP_MSG section of kind 1.
pub struct Sequence<'a> {
    /// The name of the argument: `documents`, `updates`, `deletes`, `ops`.
    pub name: &'a str,
    /// The documents in order.
    pub documents: Vec<Doc<'a>>,
}

/// One request, validated as BSON.
pub struct Request<'a> {
    /// The command document.
    pub body: Doc<'a>,
    /// Document sequences, each name once.
    pub sequences: &'a [Sequence<'a>],
    /// True if it came as OP_QUERY: only the handshake is allowed.
    pub legacy_query: bool,
    /// True if the client accepts several replies to one request.
    pub exhaust_allowed: bool,
    /// Ends the operation early.
    pub interrupt: Arc<Interrupt>,
}

/// What the listener does after a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// True if more replies follow without a request: call [`Connection::next_exhaust`].
    pub more_to_come: bool,
    /// True to close the connection after the reply.
    pub close: bool,
    /// True to close the connection without the reply.
    pub hang_up: bool,
}

/// One client's state.
pub struct Connection {
    pub(crate) service: Arc<Service>,
    pub(crate) info: ConnectionInfo,
    /// The name in log lines: `conn12`.
    pub(crate) name: Arc<str>,
    /// The client's metadata of its first `hello`.
    pub(crate) client: Option<Arc<DocBuf>>,
    /// The request that an exhaust stream repeats.
    pub(crate) exhaust: Option<DocBuf>,
    pub(crate) seen_hello: bool,
    /// The logged-in user.
    pub(crate) identity: Option<Arc<Identity>>,
    /// The login that the client has begun and not finished.
    pub(crate) login: Option<Box<Login>>,
    /// The number of logins that failed on this connection since the last one that succeeded.
    pub(crate) failed_logins: u32,
    /// The end of the current login, in milliseconds since 1970.
    pub(crate) login_ms: i64,
    /// The UUID of the connection in audit events; zeros without an audit log.
    pub(crate) uuid: [u8; 16],
    /// True if a job runs its commands: it has not logged in, and has the rights of its owner.
    pub(crate) runs_job: bool,
    /// The cells in which the recorder counts its statements; `None` without a recorder.
    pub(crate) cells: Option<Arc<ConnectionCells>>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(cells) = &self.cells {
            self.service.recorder.disconnect(cells);
        }
        if self.runs_job {
            return;
        }
        if let Some(identity) = self.identity.take() {
            self.audit_logout(&identity.name, self.login_ms, LogoutReason::Disconnected);
        }
    }
}

impl Connection {
    /// Returns true if access control is on and the client has not logged in: it may run only
    /// commands that need no login.
    pub fn needs_login(&self) -> bool {
        self.service.access.enforced && self.identity.is_none()
    }
}

impl ConnectionInfo {
    /// Returns true if the client's address is not a loopback address. A unix socket has no address
    /// and is not remote.
    pub fn is_remote(&self) -> bool {
        self.peer.is_some_and(|peer| !peer.ip().to_canonical().is_loopback())
    }
}

/// The numbers of refused requests since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// The memory of all requests together was exhausted.
    pub memory: u64,
    /// The cluster time of the request was too far ahead of the wall clock.
    pub clock: u64,
}

impl Service {
    /// Returns the server's certificate, if there is TLS.
    pub fn certificate(&self) -> Option<&dyn ServerCertificate> {
        self.options.certificate.as_deref()
    }

    /// Opens a service over an engine, with the commands of a table.
    ///
    /// # Errors
    /// The errors of the catalog; `BadValue` for a parameter that does not exist, and for a replica set
    /// of another name than the directory's.
    pub(crate) fn open_with(
        commands: &'static Commands,
        engine: Arc<dyn Engine>,
        mut options: ServiceOptions,
    ) -> Result<Arc<Service>> {
        let parameters = Parameters::new(&options.parameters)?;
        engine.keep_history(parameters.history_window());
        let spill_directory: Option<Arc<Path>> =
            options.data_directory.as_ref().map(|data| data.join("_tmp").into());
        let change_log = options.change_log.mode;
        let mut store_options = StoreOptions { change_log, ..StoreOptions::default() };
        if let Some(directory) = &spill_directory {
            store_options.temporary = Arc::clone(directory);
        }
        let store = Store::open(Arc::clone(&engine), store_options)?;
        set_name::settle(&mut options, &store)?;
        let concern_defaults = ConcernDefaults::load(&store)?;
        let query_settings = QuerySettingsOfServer::load(&store)?;
        let recorder = Recorder::open(options.recorder, &store)?;
        let cluster_parameters = ClusterParameters::load(&store)?;
        let config_version = ConfigVersion::load(&store)?;
        let change_log_size = ChangeLogSize::load(&store, &options.change_log)?;
        let write_block = WriteBlock::load(&store)?;
        parameters.load_feature_compatibility(&store)?;
        let access = AccessControl::new(options.access_control)?;
        let audit = options.audit.as_ref().map(AuditLog::new).transpose()?;
        let clock = ClusterClock::open(&engine, &store, Arc::clone(&options.clock))?;
        let seed = rng::word();
        let started_ms = now_ms();
        let mut process = [0; 5];
        process.copy_from_slice(&seed.to_be_bytes()[..5]);
        let memory = Pool::new(options.request_bytes_max);
        let service = Arc::new(Service {
            commands,
            engine,
            store,
            options,
            parameters,
            operations: Operations::default(),
            idle_connections: IdleConnections::default(),
            jobs: JobList::default(),
            fail_points: FailPoints::default(),
            write_gate: WriteGate::default(),
            laboratory: LaboratoryGate::default(),
            profiler: Profiler::default(),
            usage: Usage::default(),
            cursors: Cursors::default(),
            sessions: Sessions::default(),
            concern_defaults,
            query_settings,
            recorder,
            cluster_parameters,
            config_version,
            change_log_size,
            write_block,
            auto_compact: AutoCompact::default(),
            access,
            audit,
            clock,
            process_id: ObjectId::from_parts((started_ms / 1000) as u32, process, 0),
            started: Instant::now(),
            started_ms,
            next_request_id: AtomicI32::new(1),
            spill_directory,
            memory,
            metrics: Metrics::new(commands.rows()),
        });
        service.clock.start();
        // A full disk does not stop a server that reads; the background job tries again.
        let _ = service.keep_clock();
        service.audit_start()?;
        service.log_violations()?;
        Ok(service)
    }

    /// Sets the memory of index builds that begin later.
    pub(crate) fn bound_builds(&self) {
        self.store.set_build_memory(self.parameters.build_bytes());
    }

    /// Begins a client's connection.
    pub fn connect(self: &Arc<Self>, info: ConnectionInfo) -> Connection {
        let name = format!("conn{}", info.id).into();
        let service = Arc::clone(self);
        let uuid = self.audit.as_ref().map_or([0; 16], |_| rng::uuid());
        let cells = self.recorder.connect();
        Connection {
            service,
            info,
            name,
            client: None,
            exhaust: None,
            seen_hello: false,
            identity: None,
            login: None,
            failed_logins: 0,
            login_ms: 0,
            uuid,
            runs_job: false,
            cells,
        }
    }

    /// Returns the wall clock that cluster times follow, in milliseconds since 1970.
    pub(crate) fn wall_ms(&self) -> i64 {
        i64::try_from(self.options.clock.now_ms()).unwrap_or(i64::MAX)
    }

    /// Returns the id of the next message that the server sends.
    pub fn next_request_id(&self) -> i32 {
        self.next_request_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Interrupts every running operation: the first step of a shutdown.
    pub fn interrupt_all(&self) {
        self.operations.interrupt_all(quire_storage::Interruption::ShuttingDown);
    }

    /// Flushes and closes the engine. No connection must be left.
    pub fn close(&self) -> Result<()> {
        self.audit(None, "shutdown", &DocBuf::new(), 0);
        // What cannot be stored now is lost: the counts of less than a minute.
        let _ = self.recorder.store_window(&self.store);
        self.engine.close().map_err(crate::frame::reply::from_storage)
    }

    /// Appends the reply to a message that could not be decoded as a request.
    pub fn error_reply(&self, error: &quire_error::Error, reply: &mut Vec<u8>) {
        crate::frame::reply::write_error_reply(&mut quire_document::DocWriter::new(reply), error);
    }

    /// Returns how many requests were refused for a reason that an operator must act on: for want of
    /// memory, and because their cluster time is too far ahead of the wall clock.
    pub fn refusals(&self) -> Refusals {
        Refusals { memory: self.memory.refused(), clock: self.clock.refusals() }
    }

    /// Stores the latest date of the wall clock, if the topology has a cluster time.
    pub(crate) fn keep_clock(&self) -> Result<()> {
        match self.options.topology {
            Topology::ReplicaSet(_) => self.clock.keep(),
            Topology::Standalone => Ok(()),
        }
    }

    /// Returns the memory that all requests use together.
    pub fn memory(&self) -> &Arc<Pool> {
        &self.memory
    }

    /// Appends the state of the memory that all requests use together.
    pub(crate) fn write_memory(&self, out: &mut DocWriter<'_>) {
        let bytes = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
        out.append("limitBytes", bytes(self.memory.max()));
        out.append("usedBytes", bytes(self.memory.used()));
        out.append("mostUsedBytes", bytes(self.memory.most_used()));
        out.append("refused", i64::try_from(self.memory.refused()).unwrap_or(i64::MAX));
    }

    /// Returns the store of the databases.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns the name of the replica set; `None` for a standalone server.
    pub fn set_name(&self) -> Option<&str> {
        match &self.options.topology {
            Topology::ReplicaSet(name) => Some(name),
            Topology::Standalone => None,
        }
    }

    /// Returns the destination of log lines.
    pub fn log(&self) -> &dyn LogSink {
        &*self.options.log
    }
}

impl Connection {
    /// Runs one request and appends the reply document to `reply`.
    pub fn handle(&mut self, request: &Request<'_>, reply: &mut Vec<u8>) -> Outcome {
        dispatch::handle(self, request, reply)
    }

    /// Returns the next reply of an exhaust stream; ends the stream if there is none.
    pub fn next_exhaust(&mut self, interrupt: Arc<Interrupt>, reply: &mut Vec<u8>) -> Outcome {
        let Some(body) = self.exhaust.take() else { return Outcome::default() };
        let request = Request {
            body: body.as_doc(),
            sequences: &[],
            legacy_query: false,
            exhaust_allowed: true,
            interrupt,
        };
        dispatch::handle(self, &request, reply)
    }

    /// Returns the name in log lines: `conn12`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the client's application name.
    pub(crate) fn app_name(&self) -> Option<&str> {
        application_name(self.client_metadata()?)
    }

    /// Returns the client's address with its port.
    pub(crate) fn remote(&self) -> Option<String> {
        self.info.peer.map(|peer| peer.to_string())
    }

    /// Returns the client's address without its port.
    pub(crate) fn remote_host(&self) -> Option<String> {
        self.info.peer.map(|peer| peer.ip().to_string())
    }

    /// Returns true if the client is a tool that describes the data ([`ADVISOR_DRIVER`]).
    pub(crate) fn is_advisor(&self) -> bool {
        let driver = self.client_metadata().and_then(|client| client.get("driver")?.as_document());
        driver.and_then(|driver| driver.get("name")?.as_str()) == Some(ADVISOR_DRIVER)
    }

    /// Ends the count of the connection's statements if the client is a tool that describes the data.
    pub(crate) fn leave_recorder_if_advisor(&mut self) {
        if self.is_advisor()
            && let Some(cells) = self.cells.take()
        {
            self.service.recorder.disconnect(&cells);
        }
    }

    /// Returns the client's metadata, if it sent any.
    pub fn client_metadata(&self) -> Option<Doc<'_>> {
        self.client.as_ref().map(|client| client.as_doc())
    }
}

/// The driver's name in the metadata of tools that read data to describe them: `quire advise` and `quire
/// profile`. What they ask is not what an application asks, so the recorder leaves it out.
pub const ADVISOR_DRIVER: &str = "quire-advisor";

/// Returns the application name in a client's metadata.
pub(crate) fn application_name(client: Doc<'_>) -> Option<&str> {
    client.get("application")?.as_document()?.get("name")?.as_str()
}

/// Returns the milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |elapsed| elapsed.as_millis() as i64)
}
