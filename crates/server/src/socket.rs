//! TCP and unix sockets behind one type, encrypted or not.

use quire_tls::ServerSession;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, sockopt};
use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long one write may make no progress before the client counts as lost.
const WRITE_STALL: Duration = Duration::from_secs(30);

/// How long a reply may take besides what it takes at `SLOWEST_BYTES_PER_S`.
const WRITE_GRACE: Duration = Duration::from_secs(60);

/// A client that reads more slowly keeps a reply in memory for its own sake.
const SLOWEST_BYTES_PER_S: u64 = 16 * 1024;

/// How long a silent TCP peer may be gone before the kernel asks.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(120);

/// No message fits into an encrypted record of this size: the smallest has 26 bytes, and 47 as a
/// record. The last record of TLS, the alert `close_notify`, has 24 to 31.
const CLOSE_NOTIFY_BYTES_MAX: usize = 46;

/// A client's socket. Reading and writing take `&self`, so that the watcher can look at it too.
pub(crate) struct Socket {
    stream: Stream,
    /// The encryption that the handshake agreed on, on TCP only.
    tls: OnceLock<Box<ServerSession>>,
}

enum Stream {
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
        Socket { stream: Stream::Tcp(stream), tls: OnceLock::new() }
    }

    /// Takes over an accepted connection of this machine.
    pub(crate) fn unix(stream: UnixStream) -> Socket {
        Socket { stream: Stream::Unix(stream), tls: OnceLock::new() }
    }

    /// Returns the stream below, if it is TCP.
    pub(crate) fn as_tcp(&self) -> Option<&TcpStream> {
        match &self.stream {
            Stream::Tcp(stream) => Some(stream),
            Stream::Unix(_) => None,
        }
    }

    /// Reads and writes through `session` from now on.
    pub(crate) fn encrypt(&self, session: ServerSession) {
        let fresh = self.tls.set(Box::new(session)).is_ok();
        debug_assert!(fresh, "a connection has one handshake");
    }

    /// Returns the encryption and the stream below it, if the connection is encrypted.
    pub(crate) fn encryption(&self) -> Option<(&ServerSession, &TcpStream)> {
        self.tls.get().map(Box::as_ref).zip(self.as_tcp())
    }

    /// Returns the client's address, if it has one.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.as_tcp()?.peer_addr().ok()
    }

    /// Returns the server's address that the client reached.
    pub(crate) fn local(&self) -> Option<SocketAddr> {
        self.as_tcp()?.local_addr().ok()
    }

    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some((session, stream)) = self.encryption() {
            return session.read(stream, buffer);
        }
        loop {
            let result = match &self.stream {
                Stream::Tcp(stream) => (&*stream).read(buffer),
                Stream::Unix(stream) => (&*stream).read(buffer),
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
            let result = self.write(rest);
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

    fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match (self.encryption(), &self.stream) {
            (Some((session, stream)), _) => session.write(stream, parts),
            (None, Stream::Tcp(stream)) => (&*stream).write_vectored(parts),
            (None, Stream::Unix(stream)) => (&*stream).write_vectored(parts),
        }
    }

    /// Lets writes fail that make no progress.
    pub(crate) fn bound_writes(&self) -> io::Result<()> {
        self.set_write_timeout(Some(WRITE_STALL))
    }

    pub(crate) fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match &self.stream {
            Stream::Tcp(stream) => stream.set_read_timeout(timeout),
            Stream::Unix(stream) => stream.set_read_timeout(timeout),
        }
    }

    pub(crate) fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match &self.stream {
            Stream::Tcp(stream) => stream.set_write_timeout(timeout),
            Stream::Unix(stream) => stream.set_write_timeout(timeout),
        }
    }

    /// Sends the last record of TLS on an encrypted connection, then ends both directions. Only the
    /// thread that reads and writes the connection calls it.
    pub(crate) fn finish(&self) {
        if let Some((session, stream)) = self.encryption() {
            session.finish(stream);
        }
        self.close();
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
        if self.encryption().is_some() {
            return self.has_closed_tls();
        }
        let mut byte = [0u8; 1];
        match rustix::net::recv(self, &mut byte[..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((_, 0)) => true,
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => false,
            Err(_) => true,
        }
    }

    /// As [`is_gone`](Self::is_gone) for an encrypted connection. The client's `close_notify` stays
    /// unread in the socket while a command runs, so the end of the stream alone is not seen: the
    /// client is gone if it has shut its side and at most the bytes of this record are left.
    fn has_closed_tls(&self) -> bool {
        let closed = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        let mut looked = [PollFd::new(self, closed)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if !poll(&mut looked, Some(&now)).is_ok_and(|ready| ready > 0) {
            return false;
        }
        let mut bytes = [0u8; CLOSE_NOTIFY_BYTES_MAX + 1];
        match rustix::net::recv(self, &mut bytes[..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((_, count)) => count <= CLOSE_NOTIFY_BYTES_MAX,
            Err(Errno::AGAIN | Errno::INTR) => false,
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
        match &self.stream {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}
