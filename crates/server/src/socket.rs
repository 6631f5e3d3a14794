//! TCP and unix sockets behind one type.

use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, sockopt};
use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

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

    /// Writes all parts in order, in one system call where the kernel takes them at once.
    pub(crate) fn write_all(&self, parts: [&[u8]; 3]) -> io::Result<()> {
        let mut slices = parts.map(IoSlice::new);
        let mut rest: &mut [IoSlice<'_>] = &mut slices;
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let result = match self {
                Socket::Tcp(stream) => (&*stream).write_vectored(rest),
                Socket::Unix(stream) => (&*stream).write_vectored(rest),
            };
            match result {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut rest, written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
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

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
        }
    }
}
