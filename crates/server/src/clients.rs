//! The table of open connections: what the watcher and the shutdown look through.

use crate::socket::Socket;
use quire_access::origin;
use quire_storage::Interrupt;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One open connection, as other threads see it.
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) socket: Socket,
    /// The client's address, if it has one: a closed socket would not tell it any more.
    pub(crate) peer: Option<SocketAddr>,
    /// It has sent a message and, where users log in, has logged in.
    proven: AtomicBool,
    running: Mutex<Option<RunningClient>>,
}

/// The operation that a connection runs now.
struct RunningClient {
    interrupt: Arc<Interrupt>,
    since: Instant,
    /// False for a command without a reply, whose client may close its socket at once.
    awaited: bool,
}

/// All open connections of a server.
#[derive(Default)]
pub(crate) struct Clients {
    open: Mutex<HashMap<u64, Arc<Client>>>,
    /// Connections by origin that have not proven themselves.
    unproven: Mutex<HashMap<IpAddr, usize>>,
    changed: Condvar,
}

impl Client {
    pub(crate) fn new(id: u64, socket: Socket) -> Arc<Client> {
        let peer = socket.peer();
        let proven = AtomicBool::new(false);
        Arc::new(Client { id, socket, peer, proven, running: Mutex::new(None) })
    }

    /// What the limit on connections counts it for.
    fn origin(&self) -> Option<IpAddr> {
        self.peer.map(|peer| origin(peer.ip()))
    }

    /// Notes that an operation begins.
    pub(crate) fn begin(&self, interrupt: &Arc<Interrupt>, awaited: bool) {
        let interrupt = Arc::clone(interrupt);
        *lock(&self.running) = Some(RunningClient { interrupt, since: Instant::now(), awaited });
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
    /// Adds a connection.
    pub(crate) fn insert(&self, client: &Arc<Client>) {
        if let Some(origin) = client.origin() {
            *lock(&self.unproven).entry(origin).or_default() += 1;
        }
        lock(&self.open).insert(client.id, Arc::clone(client));
        self.changed.notify_all();
    }

    /// Removes a connection.
    pub(crate) fn remove(&self, client: &Client) {
        self.prove(client);
        lock(&self.open).remove(&client.id);
        self.changed.notify_all();
    }

    /// Notes that a connection no longer counts among those that have not proven themselves.
    pub(crate) fn prove(&self, client: &Client) {
        let Some(origin) = client.origin() else { return };
        if client.proven.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut unproven = lock(&self.unproven);
        if let Some(count) = unproven.get_mut(&origin) {
            *count -= 1;
            if *count == 0 {
                unproven.remove(&origin);
            }
        }
    }

    /// Returns how many connections from the address of `peer`, or from its IPv6 network, have not
    /// proven themselves.
    pub(crate) fn unproven(&self, peer: Option<SocketAddr>) -> usize {
        let origin = peer.map(|peer| origin(peer.ip()));
        origin.and_then(|origin| lock(&self.unproven).get(&origin).copied()).unwrap_or(0)
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
