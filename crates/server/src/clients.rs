//! The table of open connections: what the watcher and the shutdown look through.

use crate::socket::Socket;
use quire_storage::Interrupt;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One open connection, as other threads see it.
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) socket: Socket,
    /// The client's address, if it has one: a closed socket would not tell it any more.
    pub(crate) peer: Option<SocketAddr>,
    running: Mutex<Option<Running>>,
}

/// The operation that a connection runs now.
struct Running {
    interrupt: Arc<Interrupt>,
    since: Instant,
    /// False where nobody waits for the reply, so that a closed socket says nothing.
    awaited: bool,
}

/// All open connections of a server.
#[derive(Default)]
pub(crate) struct Clients {
    open: Mutex<HashMap<u64, Arc<Client>>>,
    changed: Condvar,
}

impl Client {
    pub(crate) fn new(id: u64, socket: Socket) -> Arc<Client> {
        let peer = socket.peer();
        Arc::new(Client { id, socket, peer, running: Mutex::new(None) })
    }

    /// Notes that an operation begins.
    pub(crate) fn begin(&self, interrupt: &Arc<Interrupt>, awaited: bool) {
        let interrupt = Arc::clone(interrupt);
        *lock(&self.running) = Some(Running { interrupt, since: Instant::now(), awaited });
    }

    /// Notes that it ended.
    pub(crate) fn end(&self) {
        *lock(&self.running) = None;
    }

    /// The interrupt of an operation that has run for `age` and whose reply is awaited.
    pub(crate) fn running_for(&self, age: Duration) -> Option<Arc<Interrupt>> {
        let running = lock(&self.running);
        let running = running.as_ref().filter(|running| running.awaited)?;
        (running.since.elapsed() >= age).then(|| Arc::clone(&running.interrupt))
    }

    /// True if it runs nothing now.
    pub(crate) fn is_idle(&self) -> bool {
        lock(&self.running).is_none()
    }
}

impl Clients {
    pub(crate) fn insert(&self, client: &Arc<Client>) {
        lock(&self.open).insert(client.id, Arc::clone(client));
        self.changed.notify_all();
    }

    pub(crate) fn remove(&self, id: u64) {
        lock(&self.open).remove(&id);
        self.changed.notify_all();
    }

    pub(crate) fn len(&self) -> usize {
        lock(&self.open).len()
    }

    pub(crate) fn list(&self) -> Vec<Arc<Client>> {
        lock(&self.open).values().cloned().collect()
    }

    /// Waits until the table changes or `timeout` has passed; true if it is empty then.
    pub(crate) fn wait_until_empty(&self, timeout: Duration) -> bool {
        let open = lock(&self.open);
        let waited = self.changed.wait_timeout_while(open, timeout, |open| !open.is_empty());
        waited.unwrap_or_else(PoisonError::into_inner).0.is_empty()
    }
}

/// Locks; a panic elsewhere leaves nothing half-done behind these locks.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
