//! The table of open connections, for the watcher and the shutdown.

use crate::socket::Socket;
use quire_access::origin;
use quire_commands::IdleConnection;
use quire_storage::Interrupt;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An open connection, as other threads use it.
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) socket: Socket,
    /// The client's address, if it has one: a closed socket no longer has it.
    pub(crate) peer: Option<SocketAddr>,
    /// True after it has sent a message and, with access control, has logged in.
    proven: AtomicBool,
    running: Mutex<Option<RunningClient>>,
    /// The large reply that is being sent.
    sending: Mutex<Option<Sending>>,
}

/// A large reply that a client has not read whole.
#[derive(Clone, Copy)]
pub(crate) struct Sending {
    pub since: Instant,
    /// The memory that it takes.
    pub bytes: u64,
}

/// The running operation of a connection.
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
    /// The connections by origin that are not proven.
    unproven: Mutex<HashMap<IpAddr, usize>>,
    changed: Condvar,
}

impl Client {
    pub(crate) fn new(id: u64, socket: Socket) -> Arc<Client> {
        let peer = socket.peer();
        let proven = AtomicBool::new(false);
        let (running, sending) = (Mutex::new(None), Mutex::new(None));
        Arc::new(Client { id, socket, peer, proven, running, sending })
    }

    /// Returns the origin for which the limit on connections counts it.
    fn origin(&self) -> Option<IpAddr> {
        self.peer.map(|peer| origin(peer.ip()))
    }

    /// Sends a large reply, which takes `bytes` of memory.
    pub(crate) fn send(&self, parts: [&[u8]; 3], bytes: u64) -> io::Result<()> {
        *lock(&self.sending) = Some(Sending { since: Instant::now(), bytes });
        let sent = self.socket.write_all(parts);
        *lock(&self.sending) = None;
        sent
    }

    /// Returns the large reply that is being sent.
    pub(crate) fn sending(&self) -> Option<Sending> {
        *lock(&self.sending)
    }

    /// Notes that an operation begins.
    pub(crate) fn begin(&self, interrupt: &Arc<Interrupt>, awaited: bool) {
        let interrupt = Arc::clone(interrupt);
        *lock(&self.running) = Some(RunningClient { interrupt, since: Instant::now(), awaited });
    }

    /// Notes that the operation ended.
    pub(crate) fn end(&self) {
        *lock(&self.running) = None;
    }

    /// Returns the interrupt of an operation that has run for `age` and whose client waits for a
    /// reply.
    pub(crate) fn running_for(&self, age: Duration) -> Option<Arc<Interrupt>> {
        let running = lock(&self.running);
        let running = running.as_ref().filter(|running| running.awaited)?;
        (running.since.elapsed() >= age).then(|| Arc::clone(&running.interrupt))
    }

    /// Returns true if it runs no operation.
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

    /// Notes that a connection is proven.
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

    /// Returns how many connections from the address of `peer`, or from its IPv6 network, are not
    /// proven.
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

    /// Returns the connections that run no operation, by their numbers.
    pub(crate) fn idle(&self) -> Vec<IdleConnection> {
        let mut idle: Vec<IdleConnection> = self
            .list()
            .iter()
            .filter(|client| client.is_idle())
            .map(|client| IdleConnection { id: client.id, peer: client.peer })
            .collect();
        idle.sort_by_key(|connection| connection.id);
        idle
    }

    /// Waits until the table changes or `timeout` has passed. Returns true if the table is empty.
    pub(crate) fn wait_until_empty(&self, timeout: Duration) -> bool {
        let open = lock(&self.open);
        let waited = self.changed.wait_timeout_while(open, timeout, |open| !open.is_empty());
        waited.unwrap_or_else(PoisonError::into_inner).0.is_empty()
    }
}

/// Locks a mutex. Poisoning is ignored, because a panic leaves no partial change under these locks.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
