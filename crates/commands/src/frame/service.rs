//! What one server holds, and the door through which the listener hands in requests.

use crate::frame::accounts::{AccessControl, Identity};
use crate::frame::audit::LogoutReason;
use crate::frame::audit_log::{AuditLog, AuditOptions};
use crate::frame::certificate::ServerCertificate;
use crate::frame::command::Commands;
use crate::frame::concern_defaults::ConcernDefaults;
use crate::frame::dispatch;
use crate::frame::fail_points::FailPoints;
use crate::frame::log::LogSink;
use crate::frame::login::Login;
use crate::frame::metrics::Metrics;
use crate::frame::operation::Operations;
use crate::frame::parameters::Parameters;
use crate::frame::profiler::Profiler;
use crate::frame::usage::Usage;
use crate::frame::write_gate::WriteGate;
use quire_collections::{Store, StoreOptions};
use quire_document::{Doc, DocBuf, ObjectId, Timestamp};
use quire_error::Result;
use quire_session::{Cursors, Sessions};
use quire_storage::{ClusterTime, Engine, Interrupt, rng};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Instant;

/// What the server shows itself as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// The primary of a replica set with one member, of this name.
    ReplicaSet(String),
    /// A standalone server.
    Standalone,
}

/// What a service needs to know when it opens.
pub struct ServiceOptions {
    /// What drivers see.
    pub topology: Topology,
    /// `host:port` under which clients reach the server, where it is not the address that their
    /// connection came in on.
    pub advertise: Option<String>,
    /// The command line as given.
    pub argv: Vec<String>,
    /// The command line as understood, in the shape of mongod's configuration file.
    pub parsed_options: DocBuf,
    /// The engine's name for `serverStatus`.
    pub storage_engine: &'static str,
    /// Parameters of `--setParameter`, by name.
    pub parameters: Vec<(String, String)>,
    /// Where log lines go.
    pub log: Arc<dyn LogSink>,
    /// The audit log; `None` for none.
    pub audit: Option<AuditOptions>,
    /// Called once when the `shutdown` command asks the process to stop.
    pub on_shutdown: Arc<dyn Fn() + Send + Sync>,
    /// Clients log in, and need privileges for what they do.
    pub access_control: bool,
    /// The directory of the data, `None` for memory only.
    pub data_directory: Option<std::path::PathBuf>,
    /// The certificate that clients see; `None` without TLS.
    pub certificate: Option<Arc<dyn ServerCertificate>>,
}

/// One database server without its sockets.
pub struct Service {
    pub(crate) commands: &'static Commands,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) store: Arc<Store>,
    pub(crate) options: ServiceOptions,
    pub(crate) parameters: Parameters,
    pub(crate) operations: Operations,
    pub(crate) fail_points: FailPoints,
    pub(crate) write_gate: WriteGate,
    pub(crate) profiler: Profiler,
    pub(crate) usage: Usage,
    pub(crate) cursors: Cursors,
    pub(crate) sessions: Sessions,
    pub(crate) concern_defaults: ConcernDefaults,
    pub(crate) access: AccessControl,
    pub(crate) audit: Option<AuditLog>,
    /// The time that clients have been told, or have told.
    clock: AtomicU64,
    pub(crate) process_id: ObjectId,
    pub(crate) started: Instant,
    pub(crate) started_ms: i64,
    next_request_id: AtomicI32,
    /// Where blocking stages go on when memory ends; `None` for the system's own place.
    pub(crate) spill_directory: Option<Arc<Path>>,
    /// Counters for `serverStatus`.
    pub metrics: Metrics,
}

/// How a connection came in.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    /// The server's number of the connection.
    pub id: u64,
    /// The client's address; `None` for an embedded or unix-socket client.
    pub peer: Option<SocketAddr>,
    /// The server's address that the client reached.
    pub local: Option<SocketAddr>,
    /// The subject of the certificate that the client has shown, verified.
    pub certificate_subject: Option<String>,
}

/// The documents of one OP_MSG section of kind 1.
pub struct Sequence<'a> {
    /// The argument that they are: `documents`, `updates`, `deletes`, `ops`.
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
    /// It came as OP_QUERY: only the handshake is allowed.
    pub legacy_query: bool,
    /// The client takes several replies to one request.
    pub exhaust_allowed: bool,
    /// Ends the operation early.
    pub interrupt: Arc<Interrupt>,
}

/// What the listener does after a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// More replies follow without a request: call [`Connection::next_exhaust`].
    pub more_to_come: bool,
    /// Close the connection after sending the reply.
    pub close: bool,
    /// Close the connection without sending the reply.
    pub hang_up: bool,
}

/// One client's state.
pub struct Connection {
    pub(crate) service: Arc<Service>,
    pub(crate) info: ConnectionInfo,
    /// `conn12`: how log lines name it.
    pub(crate) name: String,
    /// What the client told about itself in its first `hello`.
    pub(crate) client: Option<DocBuf>,
    /// The request that an exhaust stream repeats.
    pub(crate) exhaust: Option<DocBuf>,
    pub(crate) seen_hello: bool,
    /// Who is logged in.
    pub(crate) identity: Option<Arc<Identity>>,
    /// The login that the client has begun and not finished.
    pub(crate) login: Option<Box<Login>>,
    /// The number of logins that failed on this connection since the last one that succeeded.
    pub(crate) failed_logins: u32,
    /// When the login ended that is in force, in milliseconds since 1970.
    pub(crate) login_ms: i64,
    /// Which connection events of the audit log belong to; zeros without one.
    pub(crate) uuid: [u8; 16],
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(identity) = self.identity.take() {
            self.audit_logout(&identity.name, self.login_ms, LogoutReason::Disconnected);
        }
    }
}

impl Connection {
    /// Returns true if access control is on and the client has not logged in: it may run only the
    /// commands that need no login.
    pub fn needs_login(&self) -> bool {
        self.service.access.enforced && self.identity.is_none()
    }
}

impl ConnectionInfo {
    /// Returns whether the client's address is not a loopback address. A unix socket has no address and
    /// is not remote.
    pub fn is_remote(&self) -> bool {
        self.peer.is_some_and(|peer| !peer.ip().to_canonical().is_loopback())
    }
}

impl Service {
    /// Returns the certificate that clients see, if there is TLS.
    pub fn certificate(&self) -> Option<&dyn ServerCertificate> {
        self.options.certificate.as_deref()
    }

    /// Opens a service over an engine that answers the commands of a table.
    ///
    /// # Errors
    /// What the catalog reports, and `BadValue` for a parameter that does not exist.
    pub(crate) fn open_with(
        commands: &'static Commands,
        engine: Arc<dyn Engine>,
        options: ServiceOptions,
    ) -> Result<Arc<Service>> {
        let parameters = Parameters::new(&options.parameters)?;
        engine.keep_history(parameters.history_window());
        let spill_directory: Option<Arc<Path>> =
            options.data_directory.as_ref().map(|data| data.join("_tmp").into());
        let mut store_options = StoreOptions::default();
        if let Some(directory) = &spill_directory {
            store_options.temporary = Arc::clone(directory);
        }
        let store = Store::open(Arc::clone(&engine), store_options)?;
        let concern_defaults = ConcernDefaults::load(&store)?;
        let access = AccessControl::new(options.access_control)?;
        let audit = options.audit.as_ref().map(AuditLog::new).transpose()?;
        let seed = rng::word();
        let started_ms = now_ms();
        let mut process = [0; 5];
        process.copy_from_slice(&seed.to_be_bytes()[..5]);
        let service = Arc::new(Service {
            commands,
            engine,
            store,
            options,
            parameters,
            operations: Operations::default(),
            fail_points: FailPoints::default(),
            write_gate: WriteGate::default(),
            profiler: Profiler::default(),
            usage: Usage::default(),
            cursors: Cursors::default(),
            sessions: Sessions::default(),
            concern_defaults,
            access,
            audit,
            clock: AtomicU64::new(0),
            process_id: ObjectId::from_parts((started_ms / 1000) as u32, process, 0),
            started: Instant::now(),
            started_ms,
            next_request_id: AtomicI32::new(1),
            spill_directory,
            metrics: Metrics::new(commands.rows()),
        });
        service.advance_clock(Timestamp { seconds: (started_ms / 1000) as u32, increment: 1 });
        service.audit_start();
        Ok(service)
    }

    /// Tells the store how much memory the index builds that begin now may take.
    pub(crate) fn bound_builds(&self) {
        self.store.set_build_memory(self.parameters.build_bytes());
    }

    /// Begins a client's connection.
    pub fn connect(self: &Arc<Self>, info: ConnectionInfo) -> Connection {
        let name = format!("conn{}", info.id);
        let service = Arc::clone(self);
        let uuid = self.audit.as_ref().map_or([0; 16], |_| rng::uuid());
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
        }
    }

    /// Returns the id of the next message that the server sends.
    pub fn next_request_id(&self) -> i32 {
        self.next_request_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Interrupts every running operation: the first step of a shutdown.
    pub fn interrupt_all(&self) {
        self.operations.interrupt_all(quire_storage::Interruption::ShuttingDown);
    }

    /// Flushes and closes the engine. Call it when no connection is left.
    pub fn close(&self) -> Result<()> {
        self.audit(None, "shutdown", &DocBuf::new(), 0);
        self.engine.close().map_err(crate::frame::reply::from_storage)
    }

    /// Appends the reply to a message that never became a request.
    pub fn error_reply(&self, error: &quire_error::Error, reply: &mut Vec<u8>) {
        crate::frame::reply::write_error_reply(&mut quire_document::DocWriter::new(reply), error);
    }

    /// The time of the last commit, or a later one that a client knows; never before the start of
    /// this process.
    pub(crate) fn cluster_time(&self) -> Timestamp {
        let clock = self.clock.load(Ordering::Acquire);
        Timestamp::from_u64(self.engine.cluster_time().0.max(clock))
    }

    /// Moves the clock on: every later commit has a later time.
    pub(crate) fn advance_clock(&self, to: Timestamp) {
        let to = to.to_u64();
        if self.clock.fetch_max(to, Ordering::AcqRel) < to {
            self.engine.advance_clock(ClusterTime(to));
        }
    }

    /// Returns a time after all others.
    pub(crate) fn tick(&self) -> Timestamp {
        let next = ClusterTime(self.cluster_time().to_u64()).next(now_ms() as u64);
        self.advance_clock(Timestamp::from_u64(next.0));
        Timestamp::from_u64(next.0)
    }

    /// Returns the store of the databases.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Where log lines go.
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

    /// Returns the name that the client gave its application.
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

    /// What the client told about itself, if anything.
    pub fn client_metadata(&self) -> Option<Doc<'_>> {
        self.client.as_ref().map(DocBuf::as_doc)
    }
}

/// Returns the name of the application in what a client tells about itself.
pub(crate) fn application_name(client: Doc<'_>) -> Option<&str> {
    client.get("application")?.as_document()?.get("name")?.as_str()
}

/// Milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |elapsed| elapsed.as_millis() as i64)
}
