//! The listener: sockets, connections and threads.
//!
//! One thread a connection reads a message, runs its command and writes the reply, so a request
//! never changes threads. Read [`server`] (start and stop) first, then `connection` (the loop),
//! `inbox` (from bytes to messages) and `watch` (who notices that a client has gone).

mod audit;
mod budget;
mod clients;
mod connection;
mod inbox;
mod listener;
pub mod log;
mod refuse;
pub mod server;
pub mod signals;
mod socket;
pub mod tls;
mod watch;

pub use audit::AuditFile;
pub use listener::{Endpoint, Listeners, StartError};
pub use server::{Server, ServerOptions};
pub use signals::Stop;
pub use tls::{Encryption, TlsMode};
