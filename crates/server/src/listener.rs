//! The endpoints: TCP addresses and unix sockets, and one thread that accepts connections from all
//! of them.

use crate::clients::Client;
use crate::connection;
use crate::shared::Shared;
use crate::socket::Socket;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The number of connections that may wait to be accepted; the kernel limits it further.
const BACKLOG: i32 = 4096;
/// The number of connections accepted from one endpoint before the others are checked.
const TURN: usize = 64;
/// The pause after the process ran out of file descriptors or memory.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// An address at which a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// An address and a port; port 0 takes a free one.
    Tcp(SocketAddr),
    /// A path in the file system, and the permission bits of its file.
    Unix(PathBuf, u32),
}

/// The reason why a server cannot listen.
#[derive(Debug)]
pub enum StartError {
    /// Another process listens at the endpoint.
    AddressInUse(Endpoint),
    /// The operating system refuses to bind the endpoint.
    Bind(Endpoint, io::Error),
    /// The thread of the listener cannot be started.
    Thread(io::Error),
}

/// Endpoints that are bound but not served yet: clients that connect must wait.
pub struct Listeners {
    doors: Vec<Door>,
}

enum Door {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf, u32),
}

impl Listeners {
    /// Binds all endpoints.
    ///
    /// # Errors
    /// [`StartError`] of the first endpoint that cannot be bound.
    pub fn bind(endpoints: &[Endpoint]) -> Result<Listeners, StartError> {
        let doors = endpoints.iter().map(|endpoint| {
            Door::open(endpoint).map_err(|error| match error.kind() {
                io::ErrorKind::AddrInUse => StartError::AddressInUse(endpoint.clone()),
                _ => StartError::Bind(endpoint.clone(), error),
            })
        });
        Ok(Listeners { doors: doors.collect::<Result<_, _>>()? })
    }

    /// Returns the bound endpoints, with the ports that were chosen.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        self.doors.iter().filter_map(Door::endpoint).collect()
    }

    /// Accepts connections until the server stops.
    pub(crate) fn run(self, shared: &Arc<Shared>, wake: &UnixStream) {
        while !shared.stopping.load(Ordering::Acquire) {
            let doors =
                self.doors.iter().map(|door| PollFd::from_borrowed_fd(door.as_fd(), PollFlags::IN));
            let bell = PollFd::from_borrowed_fd(wake.as_fd(), PollFlags::IN);
            let mut waiting: Vec<PollFd<'_>> = doors.chain([bell]).collect();
            if poll(&mut waiting, None).is_err() {
                continue;
            }
            for (door, ready) in self.doors.iter().zip(&waiting) {
                if !ready.revents().is_empty() && !door.accept(shared) {
                    std::thread::sleep(EXHAUSTED_PAUSE);
                }
            }
        }
    }
}

impl Door {
    fn open(endpoint: &Endpoint) -> io::Result<Door> {
        match endpoint {
            Endpoint::Tcp(address) => bind_tcp(*address).map(Door::Tcp),
            Endpoint::Unix(path, mode) => {
                if path.exists() {
                    if UnixStream::connect(path).is_ok() {
                        return Err(io::ErrorKind::AddrInUse.into());
                    }
                    std::fs::remove_file(path)?;
                }
                let listener = UnixListener::bind(path)?;
                listener.set_nonblocking(true)?;
                std::fs::set_permissions(
                    path,
                    std::os::unix::fs::PermissionsExt::from_mode(*mode),
                )?;
                Ok(Door::Unix(listener, path.clone(), *mode))
            }
        }
    }

    fn endpoint(&self) -> Option<Endpoint> {
        match self {
            Door::Tcp(listener) => listener.local_addr().ok().map(Endpoint::Tcp),
            Door::Unix(_, path, mode) => Some(Endpoint::Unix(path.clone(), *mode)),
        }
    }

    /// Accepts the waiting connections of this endpoint. Returns false if the process has run out
    /// of a resource.
    fn accept(&self, shared: &Arc<Shared>) -> bool {
        for _ in 0..TURN {
            let accepted = match self {
                Door::Tcp(listener) => listener.accept().and_then(|(stream, _)| {
                    stream.set_nonblocking(false)?;
                    Ok(Socket::tcp(stream))
                }),
                Door::Unix(listener, ..) => listener.accept().and_then(|(stream, _)| {
                    stream.set_nonblocking(false)?;
                    Ok(Socket::unix(stream))
                }),
            };
            match accepted {
                Ok(socket) => shared.admit(socket),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if gave_up(&error) => {}
                Err(error) => {
                    shared.log_accept_failed(&error);
                    return false;
                }
            }
        }
        true
    }
}

/// Returns true if the client closed the connection before it was accepted.
fn gave_up(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted)
}

fn bind_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
    fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    let listener = TcpListener::from(socket);
    listener.set_nonblocking(true)?;
    Ok(listener)
}

impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Door::Tcp(listener) => listener.as_fd(),
            Door::Unix(listener, ..) => listener.as_fd(),
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        if let Door::Unix(_, path, _) = self {
            // Another process may have removed it, which is harmless.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Shared {
    /// Returns the limit that a new connection would exceed.
    fn limit_reached(&self, socket: &Socket) -> Option<usize> {
        let (open, max) = (self.clients.len(), self.options.connections_max);
        if open >= max {
            return Some(max);
        }
        let unproven_max = self.options.unproven_max;
        let is_tight = open >= max / 2;
        (is_tight && self.clients.unproven(socket.peer()) >= unproven_max).then_some(unproven_max)
    }

    /// Starts the thread of a new connection, or refuses the connection.
    fn admit(self: &Arc<Self>, socket: Socket) {
        let network = &self.service.metrics.network;
        if let Some(limit) = self.limit_reached(&socket) {
            network.connections_rejected.add(1);
            self.log_refused(&socket, limit);
            crate::refuse::refuse(self, socket, limit);
            return;
        }
        let id = self.next_connection.fetch_add(1, Ordering::Relaxed) + 1;
        network.connections_total.add(1);
        let client = Client::new(id, socket);
        self.enter(&client);
        let (shared, served) = (Arc::clone(self), Arc::clone(&client));
        let thread = std::thread::Builder::new()
            .name(format!("conn{id}"))
            .stack_size(self.options.stack_bytes);
        if let Err(error) = thread.spawn(move || connection::run(&shared, &served)) {
            self.log_accept_failed(&error);
            self.leave(&client);
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp(address) => address.fmt(f),
            Endpoint::Unix(path, _) => path.display().fmt(f),
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::AddressInUse(endpoint) => {
                write!(
                    f,
                    "{endpoint} is in use: another program listens there; stop it, or choose another port"
                )
            }
            StartError::Bind(endpoint, error) => write!(f, "cannot listen on {endpoint}: {error}"),
            StartError::Thread(error) => write!(f, "cannot start a thread: {error}"),
        }
    }
}

impl std::error::Error for StartError {}
