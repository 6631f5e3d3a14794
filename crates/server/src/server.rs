//! Start and stop: the threads of a server, and the order in which they end.

use crate::listener::{Endpoint, Listeners, StartError};
use crate::shared::{ServerOptions, Shared};
use crate::watch;
use quire_commands::Service;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long running operations may take to end after the server begins to stop.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// The time limit of the stop. Sockets are closed after `STOP_GRACE`; a thread that still runs at
/// this limit is abandoned.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// A listening server. Dropping it stops it.
pub struct Server {
    shared: Arc<Shared>,
    endpoints: Vec<Endpoint>,
    threads: Vec<JoinHandle<()>>,
    bell: UnixStream,
}

impl Server {
    /// Serves a service at bound endpoints.
    ///
    /// # Errors
    /// [`StartError::Thread`] if the system cannot start a thread.
    pub fn start(
        service: Arc<Service>,
        listeners: Listeners,
        options: ServerOptions,
    ) -> Result<Server, StartError> {
        service.metrics.network.connections_max.add(options.connections_max as u64);
        let shared = Arc::new(Shared::new(service, options));
        let known = Arc::downgrade(&shared);
        shared.service.set_idle_connections(Box::new(move || {
            known.upgrade().map(|shared| shared.clients.idle()).unwrap_or_default()
        }));
        let endpoints = listeners.endpoints();
        let (bell, wake) = UnixStream::pair().map_err(StartError::Thread)?;
        let owner = Arc::clone(&shared);
        let listener = spawn("listener", move || listeners.run(&owner, &wake))?;
        let mut server = Server { shared, endpoints, threads: vec![listener], bell };
        let owner = Arc::clone(&server.shared);
        server.threads.push(spawn("watcher", move || watch::run(&owner))?);
        Ok(server)
    }

    /// Returns the endpoints, with the ports that were chosen.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Returns the service of the server.
    pub fn service(&self) -> &Arc<Service> {
        &self.shared.service
    }

    /// Returns the number of open connections.
    pub fn connections(&self) -> usize {
        self.shared.clients.len()
    }

    /// Stops accepting, interrupts running operations, sends their replies and waits for the
    /// connections to end. The service stays open: close it afterwards. A second call does nothing.
    pub fn stop(&mut self) {
        if self.shared.stopping.swap(true, Ordering::AcqRel) {
            return;
        }
        // The listener and the watcher check `stopping` when they wake.
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

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StartError> {
    let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(256 << 10);
    thread.spawn(body).map_err(StartError::Thread)
}
