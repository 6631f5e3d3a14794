//! TCP and unix sockets behind one type.

use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, sockopt};
use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long one write may make no progress before the client counts as lost.
const WRITE_STALL: Duration = Duration::from_secs(30);

/// How long a reply may take besides what it takes at `SLOWEST_BYTES_PER_S`.
const WRITE_GRACE: Duration = Duration::from_secs(60);

/// A client that reads more slowly keeps a reply in memory for its own sake.
const SLOWEST_BYTES_PER_S: u64 = 16 * 1024;

/// How long a silent TCP peer may be gone before the kernel asks.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(120);

/// A client's socket. Reading and writing take `&self`, so that the watcher can look at it too.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Takes over an accepted TCP connection.
    pub(crate) fn tcp(stream: TcpStream) -> Socket {
        // A peer that is already gone makes these fail; the first read then says so.
        let _ = stream.set_nodelay(true);
        let _ = sockopt::set_socket_keepalive(&stream, true);
        let _ = sockopt::set_tcp_keepidle(&stream, KEEPALIVE_AFTER);
        Socket::Tcp(stream)
    }

    /// The client's address, if it has one.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        match self {
            Socket::Tcp(stream) => stream.peer_addr().ok(),
            Socket::Unix(_) => None,
        }
    }

    /// The server's address that the client reached.
    pub(crate) fn local(&self) -> Option<SocketAddr> {
        match self {
            Socket::Tcp(stream) => stream.local_addr().ok(),
            Socket::Unix(_) => None,
        }
    }

    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let result = match self {
                Socket::Tcp(stream) => (&*stream).read(buffer),
                Socket::Unix(stream) => (&*stream).read(buffer),
            };
            match result {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Writes all parts in order, in one system call where the kernel takes them at once. Fails with
    /// `TimedOut` if the client reads nothing for a while, or less than a slow line would carry.
    pub(crate) fn write_all(&self, parts: [&[u8]; 3]) -> io::Result<()> {
        let mut slices = parts.map(IoSlice::new);
        let mut rest: &mut [IoSlice<'_>] = &mut slices;
        IoSlice::advance_slices(&mut rest, 0);
        let mut deadline: Option<Instant> = None;
        while !rest.is_empty() {
            let result = match self {
                Socket::Tcp(stream) => (&*stream).write_vectored(rest),
                Socket::Unix(stream) => (&*stream).write_vectored(rest),
            };
            match result {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    IoSlice::advance_slices(&mut rest, written);
                    // Most replies are gone by now, and ask no clock.
                    let bytes: u64 = rest.iter().map(|part| part.len() as u64).sum();
                    if bytes > 0 {
                        let now = Instant::now();
                        let at = *deadline.get_or_insert_with(|| now + patience(bytes));
                        if now > at {
                            return Err(io::ErrorKind::TimedOut.into());
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Lets writes fail that make no progress.
    pub(crate) fn bound_writes(&self) -> io::Result<()> {
        self.set_write_timeout(Some(WRITE_STALL))
    }

    pub(crate) fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.set_read_timeout(timeout),
            Socket::Unix(stream) => stream.set_read_timeout(timeout),
        }
    }

    pub(crate) fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.set_write_timeout(timeout),
            Socket::Unix(stream) => stream.set_write_timeout(timeout),
        }
    }

    /// Ends both directions; a thread that reads or writes it wakes up.
    pub(crate) fn close(&self) {
        let _ = rustix::net::shutdown(self, Shutdown::Both);
    }

    /// Ends the reading side only: a thread that waits for a request sees the end of the stream.
    pub(crate) fn close_reading(&self) {
        let _ = rustix::net::shutdown(self, Shutdown::Read);
    }

    /// True if the client has closed its side and left nothing to read. Takes nothing out.
    pub(crate) fn is_gone(&self) -> bool {
        let mut byte = [0u8; 1];
        match rustix::net::recv(self, &mut byte[..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((_, 0)) => true,
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => false,
            Err(_) => true,
        }
    }
}

/// How long a client may take to read `bytes`.
fn patience(bytes: u64) -> Duration {
    WRITE_GRACE + Duration::from_secs(bytes / SLOWEST_BYTES_PER_S)
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
        }
    }
}
