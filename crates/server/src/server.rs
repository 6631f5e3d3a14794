//! Start and stop: what all connections share, and the order in which things end.

use crate::budget::Budget;
use crate::clients::{Client, Clients, lock};
use crate::listener::{Endpoint, Listeners, StartError};
use crate::refuse::Refusals;
use crate::socket::Socket;
use crate::tls::Encryption;
use crate::{connection, watch};
use quire_commands::Service;
use quire_commands::log::{LogLine, Severity};
use quire_document::DocBuf;
use quire_error::Error;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long running operations may take to notice that the server stops.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// How long the stop may take in all. Sockets are closed after `STOP_GRACE`; a thread that still
/// runs at this limit is left behind.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// How a server treats its connections.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Connections beyond this are refused.
    pub connections_max: usize,
    /// Connections that come and go are not logged.
    pub quiet: bool,
    /// Stack of a connection's thread: virtual memory, taken page by page as it is used. Deep
    /// enough for expressions nested 200 levels.
    pub stack_bytes: usize,
    /// Bytes of messages from clients that are in memory at the same time over all connections. A
    /// message that does not fit is not read until there is room; those up to 64 KiB always are.
    pub request_bytes_max: u64,
    /// The same for replies: a client whose last reply was large waits before its next request runs.
    pub reply_bytes_max: u64,
    /// How long a client may take from its connection to the end of its handshake of TLS, and from
    /// there to its first message.
    pub handshake_limit: Duration,
    /// Limit for the connections of one address (of one /64 network in IPv6) that have sent nothing
    /// yet or, where users log in, have not logged in. It holds while at least half of
    /// `connections_max` are open: one client cannot take all connections without a password, and
    /// many clients behind one address are refused only when room is short.
    pub unproven_max: usize,
    /// TLS on the TCP endpoints; `None` for plain connections only.
    pub encryption: Option<Arc<Encryption>>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        ServerOptions {
            connections_max: 20_000,
            quiet: false,
            stack_bytes: 4 << 20,
            request_bytes_max: 128 << 20,
            reply_bytes_max: 256 << 20,
            handshake_limit: Duration::from_secs(30),
            unproven_max: 5_000,
            encryption: None,
        }
    }
}

/// A server that listens. Dropping it stops it.
pub struct Server {
    shared: Arc<Shared>,
    endpoints: Vec<Endpoint>,
    threads: Vec<JoinHandle<()>>,
    bell: UnixStream,
}

/// What all threads of a server share.
pub(crate) struct Shared {
    pub(crate) service: Arc<Service>,
    pub(crate) options: ServerOptions,
    pub(crate) clients: Clients,
    pub(crate) refusals: Refusals,
    pub(crate) requests: Budget,
    pub(crate) replies: Budget,
    pub(crate) stopping: AtomicBool,
    pub(crate) next_connection: AtomicU64,
    watcher_gate: Mutex<()>,
    watcher_bell: Condvar,
}

impl Server {
    /// Serves a service at bound endpoints.
    ///
    /// # Errors
    /// [`StartError::Thread`] if the system gives no thread.
    pub fn start(
        service: Arc<Service>,
        listeners: Listeners,
        options: ServerOptions,
    ) -> Result<Server, StartError> {
        service.metrics.network.connections_max.add(options.connections_max as u64);
        let shared = Arc::new(Shared {
            service,
            requests: Budget::new(options.request_bytes_max),
            replies: Budget::new(options.reply_bytes_max),
            options,
            clients: Clients::default(),
            refusals: Refusals::default(),
            stopping: AtomicBool::new(false),
            next_connection: AtomicU64::new(0),
            watcher_gate: Mutex::new(()),
            watcher_bell: Condvar::new(),
        });
        let endpoints = listeners.endpoints();
        let (bell, wake) = UnixStream::pair().map_err(StartError::Thread)?;
        let owner = Arc::clone(&shared);
        let listener = spawn("listener", move || listeners.run(&owner, &wake))?;
        let mut server = Server { shared, endpoints, threads: vec![listener], bell };
        let owner = Arc::clone(&server.shared);
        server.threads.push(spawn("watcher", move || watch::run(&owner))?);
        Ok(server)
    }

    /// Where it listens, with the ports that were taken.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// The service behind it.
    pub fn service(&self) -> &Arc<Service> {
        &self.shared.service
    }

    /// Returns the number of open connections.
    pub fn connections(&self) -> usize {
        self.shared.clients.len()
    }

    /// Stops accepting, interrupts what runs, lets replies out and waits for the connections to
    /// end. The service stays open: close it afterwards. Calling it again does nothing.
    pub fn stop(&mut self) {
        if self.shared.stopping.swap(true, Ordering::AcqRel) {
            return;
        }
        // The listener and the watcher look at `stopping` when they wake.
        let _ = self.bell.write_all(&[1]);
        self.shared.wake_watcher();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        self.drain();
    }

    fn drain(&self) {
        let began = Instant::now();
        let clients = &self.shared.clients;
        loop {
            self.shared.service.interrupt_all();
            let late = began.elapsed() > STOP_GRACE;
            for client in clients.list() {
                if late {
                    client.socket.close();
                } else if client.is_idle() {
                    client.socket.close_reading();
                }
            }
            if clients.wait_until_empty(Duration::from_millis(20)) || began.elapsed() > STOP_LIMIT {
                return;
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    /// The body of a connection's thread.
    pub(crate) fn serve(&self, client: &Arc<Client>) {
        self.log_connection(22943, "Connection accepted", client, None);
        let served = catch_unwind(AssertUnwindSafe(|| connection::serve(self, client)));
        client.end();
        let reason = served.unwrap_or_else(|_| "the connection's thread panicked".to_owned());
        client.socket.finish();
        self.leave(client);
        self.log_connection(22944, "Connection ended", client, Some(&reason));
    }

    pub(crate) fn enter(&self, client: &Arc<Client>) {
        self.service.metrics.network.connections_current.add(1);
        self.clients.insert(client);
        if self.clients.len() == 1 {
            self.wake_watcher();
        }
    }

    pub(crate) fn leave(&self, client: &Client) {
        self.service.metrics.network.connections_current.sub(1);
        self.clients.remove(client);
    }

    /// The watcher's pause: without clients it lasts until one comes.
    pub(crate) fn pause_watcher(&self, pause: Duration) {
        let gate = lock(&self.watcher_gate);
        if self.stopping.load(Ordering::Acquire) {
            return;
        }
        if self.clients.len() == 0 {
            drop(self.watcher_bell.wait(gate).unwrap_or_else(PoisonError::into_inner));
        } else {
            let waited = self.watcher_bell.wait_timeout(gate, pause);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn wake_watcher(&self) {
        let _gate = lock(&self.watcher_gate);
        self.watcher_bell.notify_all();
    }

    pub(crate) fn log_bad_input(&self, context: &str, error: &Error) {
        let attributes = DocBuf::build(|writer| {
            let mut shown = writer.document("error");
            shown.append("code", error.code().number());
            shown.append("codeName", &*error.code().name());
            shown.append("errmsg", error.message());
        });
        self.log(
            Severity::Warning,
            22988,
            context,
            "Error receiving request from client",
            attributes,
        );
    }

    pub(crate) fn log_refused(&self, socket: &Socket, limit: usize) {
        let attributes = DocBuf::build(|writer| {
            writer.append("remote", peer_name(socket.peer()).as_str());
            writer.append("connectionCount", self.clients.len() as i64);
            writer.append("limit", limit as i64);
        });
        let message = "Connection refused because there are too many open connections";
        self.log(Severity::Warning, 22942, "listener", message, attributes);
    }

    pub(crate) fn log_accept_failed(&self, error: &io::Error) {
        let attributes = DocBuf::build(|writer| {
            writer.append("error", error.to_string().as_str());
        });
        let message = "Error accepting new connection";
        self.log(Severity::Error, 23022, "listener", message, attributes);
    }

    fn log_connection(&self, id: u32, message: &str, client: &Client, reason: Option<&str>) {
        if self.options.quiet {
            return;
        }
        let attributes = DocBuf::build(|writer| {
            writer.append("remote", peer_name(client.peer).as_str());
            writer.append("connectionId", client.id as i64);
            writer.append("connectionCount", self.clients.len() as i64);
            if let Some(reason) = reason {
                writer.append("reason", reason);
            }
        });
        let context = match reason {
            None => "listener".to_owned(),
            Some(_) => format!("conn{}", client.id),
        };
        self.log(Severity::Info, id, &context, message, attributes);
    }

    fn log(&self, severity: Severity, id: u32, context: &str, message: &str, attributes: DocBuf) {
        let line = LogLine { severity, component: "NETWORK", id, context, message, attributes };
        self.service.log().write(line);
    }
}

fn peer_name(peer: Option<SocketAddr>) -> String {
    peer.map_or_else(|| "anonymous unix socket".to_owned(), |peer| peer.to_string())
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StartError> {
    let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(256 << 10);
    thread.spawn(body).map_err(StartError::Thread)
}
