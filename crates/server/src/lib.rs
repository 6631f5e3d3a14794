//! The listener: sockets, connections and threads.
//!
//! One thread for each connection reads a message, runs the command and writes the reply, so a
//! request never changes threads. Read in this order: [`server`] (start and stop), `shared` (what
//! the threads share), `connection` (the loop), `handshake` and `tls` (encryption), `inbox` (from
//! bytes to messages) and `watch` (detects lost clients). [`metrics`] answers Prometheus at a port of
//! its own.

mod audit;
mod budget;
mod clients;
mod connection;
mod handshake;
mod inbox;
mod listener;
pub mod log;
pub mod metrics;
mod refuse;
pub mod server;
mod shared;
pub mod signals;
mod socket;
pub mod tls;
mod watch;

pub use audit::AuditFile;
pub use listener::{Endpoint, Listeners, StartError};
pub use server::Server;
pub use shared::ServerOptions;
pub use signals::Stop;
pub use tls::{Encryption, TlsMode};
