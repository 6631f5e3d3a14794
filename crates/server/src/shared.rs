//! The state that all threads of a server share: options, clients, memory budgets, counters for the
//! log.

use crate::budget::Budget;
use crate::clients::{Client, Clients, lock};
use crate::socket::Socket;
use crate::tls::Encryption;
use quire_commands::Service;
use quire_commands::log::{LogLine, Severity};
use quire_document::DocBuf;
use quire_error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The options of a server's connections.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Further connections are refused.
    pub connections_max: usize,
    /// True if opened and closed connections are not logged.
    pub quiet: bool,
    /// The stack size of a connection's thread: virtual memory, which is allocated page by page.
    /// Enough for expressions nested 200 levels.
    pub stack_bytes: usize,
    /// The bytes of messages from clients that may be in memory at the same time over all
    /// connections. A message that does not fit is not read until there is room; messages up to 64
    /// KiB are always read.
    pub request_bytes_max: u64,
    /// The same for replies: a client whose last reply was large waits before its next request
    /// runs.
    pub reply_bytes_max: u64,
    /// The time limit of the TLS handshake after the connection, and of the first message after the
    /// handshake.
    pub handshake_limit: Duration,
    /// The limit on connections of one address (of one /64 network in IPv6) that have sent nothing
    /// yet or, with access control, have not logged in. It applies while at least half of
    /// `connections_max` are open: one client cannot take all connections without a password, and
    /// many clients behind one address are refused only when connections are scarce.
    pub unproven_max: usize,
    /// TLS on the TCP endpoints; `None` for plain connections only.
    pub encryption: Option<Arc<Encryption>>,
    /// Called by the thread of a connection when no message has come for a second (`true`), and when
    /// this wait has ended (`false`). An allocator may free what it caches for the thread.
    pub on_rest: fn(bool),
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
            on_rest: |_| {},
        }
    }
}

/// Lets one line of a kind pass each minute, so that clients cannot fill the log with refusals.
#[derive(Default)]
pub(crate) struct OncePerMinute(Mutex<Option<Instant>>);

impl OncePerMinute {
    /// Returns true if no line has passed in the minute before `now`.
    fn passes(&self, now: Instant) -> bool {
        let mut last = lock(&self.0);
        let is_due =
            last.is_none_or(|last| now.saturating_duration_since(last) >= Duration::from_secs(60));
        if is_due {
            *last = Some(now);
        }
        is_due
    }
}

/// The state that all threads of a server share.
pub(crate) struct Shared {
    pub(crate) service: Arc<Service>,
    pub(crate) options: ServerOptions,
    pub(crate) clients: Clients,
    /// The number of refusals that are being written.
    pub(crate) refusals: AtomicUsize,
    pub(crate) requests: Budget,
    pub(crate) replies: Budget,
    pub(crate) stopping: AtomicBool,
    pub(crate) next_connection: AtomicU64,
    watcher_gate: Mutex<()>,
    watcher_bell: Condvar,
    /// The lines about refused connections, and about connections that cannot be accepted.
    refused_lines: OncePerMinute,
    failed_lines: OncePerMinute,
}

impl Shared {
    /// Returns the shared state of a new server.
    pub(crate) fn new(service: Arc<Service>, options: ServerOptions) -> Self {
        Shared {
            service,
            requests: Budget::new(options.request_bytes_max),
            replies: Budget::new(options.reply_bytes_max),
            options,
            clients: Clients::default(),
            refusals: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            next_connection: AtomicU64::new(0),
            watcher_gate: Mutex::new(()),
            watcher_bell: Condvar::new(),
            refused_lines: OncePerMinute::default(),
            failed_lines: OncePerMinute::default(),
        }
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

    /// Pauses the watcher; without clients until one connects.
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

    pub(crate) fn wake_watcher(&self) {
        let _gate = lock(&self.watcher_gate);
        self.watcher_bell.notify_all();
    }

    pub(crate) fn log_bad_input(&self, context: &str, error: &Error) {
        let values = self.service.logged_values();
        let attributes = DocBuf::build(|writer| {
            let mut shown = writer.document("error");
            shown.append("code", error.code().number());
            shown.append("codeName", &*error.code().name());
            shown.append("errmsg", values.text(error.message()));
        });
        self.log(
            Severity::Warning,
            22988,
            context,
            "Error receiving request from client",
            attributes,
        );
    }

    /// Logs a refused connection, the first of each minute, with the number of all refused ones.
    pub(crate) fn log_refused(&self, socket: &Socket, limit: usize) {
        if !self.refused_lines.passes(Instant::now()) {
            return;
        }
        let refused = self.service.metrics.network.connections_rejected.get();
        let attributes = DocBuf::build(|writer| {
            writer.append("remote", peer_name(socket.peer()).as_str());
            writer.append("connectionCount", self.clients.len() as i64);
            writer.append("limit", limit as i64);
            writer.append("refused", refused as i64);
        });
        let message = "Connection refused because there are too many open connections";
        self.log(Severity::Warning, 22942, "listener", message, attributes);
    }

    /// Logs that a connection could not be accepted, for example because the process may open no more
    /// files: the first time of each minute.
    pub(crate) fn log_accept_failed(&self, error: &io::Error) {
        if !self.failed_lines.passes(Instant::now()) {
            return;
        }
        let attributes = DocBuf::build(|writer| {
            writer.append("error", error.to_string().as_str());
        });
        let message = "Error accepting new connection";
        self.log(Severity::Error, 23022, "listener", message, attributes);
    }

    pub(crate) fn log_connection(
        &self,
        id: u32,
        message: &str,
        client: &Client,
        reason: Option<&str>,
    ) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_passes_each_minute() {
        let (lines, begun) = (OncePerMinute::default(), Instant::now());
        let after = |seconds| begun + Duration::from_secs(seconds);
        let passed: Vec<bool> =
            [0, 1, 59, 60, 61, 130].map(|seconds| lines.passes(after(seconds))).to_vec();
        assert_eq!(passed, [true, false, false, true, false, true]);
    }
}
