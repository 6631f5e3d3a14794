//! The connections that run no operation, as the listener knows them: `$currentOp` shows them on
//! request.

use crate::frame::service::Service;
use std::net::SocketAddr;
use std::sync::OnceLock;

/// A connection that runs no operation.
#[derive(Clone, Copy, Debug)]
pub struct IdleConnection {
    /// The number of the connection.
    pub id: u64,
    /// The client's address; `None` for a Unix socket.
    pub peer: Option<SocketAddr>,
}

/// Lists the idle connections of a listener.
pub type ListIdle = Box<dyn Fn() -> Vec<IdleConnection> + Send + Sync>;

/// The listener's list, once there is a listener.
#[derive(Default)]
pub struct IdleConnections(OnceLock<ListIdle>);

impl Service {
    /// Sets the list of the listener. The first call sets it.
    pub fn set_idle_connections(&self, list: ListIdle) {
        let _ = self.idle_connections.0.set(list);
    }

    /// Returns the idle connections; none without a listener.
    pub(crate) fn idle_connections(&self) -> Vec<IdleConnection> {
        self.idle_connections.0.get().map(|list| list()).unwrap_or_default()
    }
}
