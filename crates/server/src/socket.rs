//! TCP and unix sockets as one type, encrypted or not.

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

/// How long a write may make no progress before the client counts as lost.
const WRITE_STALL: Duration = Duration::from_secs(30);

/// The time that a reply may take in addition to that at `SLOWEST_BYTES_PER_S`.
const WRITE_GRACE: Duration = Duration::from_secs(60);

/// A client that reads more slowly counts as lost, because its reply stays in memory.
const SLOWEST_BYTES_PER_S: u64 = 16 * 1024;

/// How long a TCP peer may be silent before the kernel sends a probe.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(120);

/// No message fits into an encrypted record of this size: the smallest has 26 bytes, and 47 as a
/// record. The last TLS record, the alert `close_notify`, has 24 to 31 bytes.
const CLOSE_NOTIFY_BYTES_MAX: usize = 46;

/// A client's socket. Reading and writing take `&self`, so that the watcher can use it too.
pub(crate) struct Socket {
    stream: Stream,
    /// The encryption after the handshake; only on TCP.
    tls: OnceLock<Box<ServerSession>>,
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Takes an accepted TCP connection.
    pub(crate) fn tcp(stream: TcpStream) -> Socket {
        // If the peer is already gone these calls fail, and the first read reports it.
        let _ = stream.set_nodelay(true);
        let _ = sockopt::set_socket_keepalive(&stream, true);
        let _ = sockopt::set_tcp_keepidle(&stream, KEEPALIVE_AFTER);
        Socket { stream: Stream::Tcp(stream), tls: OnceLock::new() }
    }

    /// Takes an accepted connection of a unix socket.
    pub(crate) fn unix(stream: UnixStream) -> Socket {
        Socket { stream: Stream::Unix(stream), tls: OnceLock::new() }
    }

    /// Returns the TCP stream; `None` for a unix socket.
    pub(crate) fn as_tcp(&self) -> Option<&TcpStream> {
        match &self.stream {
            Stream::Tcp(stream) => Some(stream),
            Stream::Unix(_) => None,
        }
    }

    /// Makes all later reads and writes use `session`.
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

    /// Returns the server's address of the connection.
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

    /// Writes all parts in order, if possible in one system call. Fails with `TimedOut` if the
    /// client reads nothing for a while, or is slower than a slow line.
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
                    // Most replies are written by now and need no time limit.
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

    /// Sets a time-out for writes without progress.
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

    /// Sends the last TLS record on an encrypted connection, then ends both directions. Only the
    /// thread that reads and writes the connection may call it.
    pub(crate) fn finish(&self) {
        if let Some((session, stream)) = self.encryption() {
            session.finish(stream);
        }
        self.close();
    }

    /// Ends both directions. A thread that reads or writes the socket wakes up.
    pub(crate) fn close(&self) {
        let _ = rustix::net::shutdown(self, Shutdown::Both);
    }

    /// Ends only the reading side: a thread that waits for a request sees the end of the stream.
    pub(crate) fn close_reading(&self) {
        let _ = rustix::net::shutdown(self, Shutdown::Read);
    }

    /// Returns true if the client has closed its side and nothing is left to read. Reads nothing.
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

    /// Does the same for an encrypted connection. While a command runs, the client's `close_notify`
    /// stays unread in the socket, so the end of the stream is not visible: the client is gone if
    /// it has shut its side and at most the bytes of this record are left.
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

/// Returns how long a client may take to read `bytes`.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// 200 replies of 5,000 documents stayed in memory for as long as a client left them there.
    #[test]
    fn a_reply_that_is_not_read_fails_and_a_slow_reader_gets_its_time() -> io::Result<()> {
        let (ours, theirs) = UnixStream::pair()?;
        let socket = Socket::unix(ours);
        socket.set_write_timeout(Some(Duration::from_millis(20)))?;
        let reply = vec![0; 48_000_000];
        let unread = socket.write_all([&reply, &[], &[]]).expect_err("nobody reads");
        let kinds = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
        assert!(kinds.contains(&unread.kind()), "{unread:?}");
        assert_eq!(patience(0), WRITE_GRACE);
        assert_eq!(patience(SLOWEST_BYTES_PER_S * 10), WRITE_GRACE + Duration::from_secs(10));
        drop(theirs);
        Ok(())
    }
}
