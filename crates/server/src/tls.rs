//! When connections are encrypted: the mode of the server, and what a new connection must do first.

use crate::server::Shared;
use crate::socket::Socket;
use quire_commands::ServerCertificate;
use quire_error::{Error, ErrorCode, Result};
use quire_tls::ServerTls;
use rustix::net::RecvFlags;
use std::fmt;
use std::io;
use std::time::{Duration, Instant};

/// The first byte of a handshake (RFC 8446, section 5.1: the content type of a record).
const HANDSHAKE_RECORD: u8 = 22;

/// Which clients are encrypted. A mode without encryption has no [`Encryption`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsMode {
    /// Those that begin a handshake (`allowTLS`, `preferTLS`: they differ towards other members).
    Optional,
    /// All; a client that speaks without encryption is disconnected (`requireTLS`).
    Required,
}

/// The encryption of TCP connections. Unix sockets have none: their clients sit at this machine.
pub struct Encryption {
    /// Who has to be encrypted.
    pub mode: TlsMode,
    /// What the server shows and asks.
    pub tls: ServerTls,
}

impl fmt::Debug for Encryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encryption").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl ServerCertificate for Encryption {
    fn rotate(&self) -> Result<()> {
        let failed = |error: quire_tls::TlsError| {
            Error::new(ErrorCode::InvalidSSLConfiguration, error.to_string())
        };
        self.tls.rotate().map_err(failed)
    }

    fn subject(&self) -> String {
        self.tls.certificate().subject
    }

    fn not_after_ms(&self) -> i64 {
        i64::try_from(self.tls.certificate().not_after_s)
            .map_or(i64::MAX, |s| s.saturating_mul(1000))
    }
}

/// Does what comes before the first message of a connection. The error ends it.
pub(crate) fn secure(shared: &Shared, socket: &Socket) -> Result<()> {
    let (Some(encryption), Some(stream)) = (&shared.options.encryption, socket.as_tcp()) else {
        return Ok(());
    };
    let limit = shared.options.handshake_limit;
    let deadline = Instant::now() + limit;
    let failed = |error: io::Error| {
        let text = match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                "the client did not finish its handshake in time".to_owned()
            }
            _ => format!("the handshake failed: {error}"),
        };
        Error::new(ErrorCode::SSLHandshakeFailed, text)
    };
    match first_byte(socket, limit).map_err(failed)? {
        // The connection's own loop sees the end of the stream.
        None => Ok(()),
        Some(HANDSHAKE_RECORD) => {
            let session = encryption.tls.accept(stream, deadline).map_err(failed)?;
            let transport = &shared.service.metrics.transport;
            if session.is_tls13() { &transport.tls13 } else { &transport.tls12 }.add(1);
            socket.encrypt(session);
            Ok(())
        }
        Some(_) if encryption.mode == TlsMode::Optional => Ok(()),
        Some(_) => {
            let text = "The server is configured to only allow SSL connections";
            Err(Error::new(ErrorCode::SSLHandshakeFailed, text))
        }
    }
}

/// Waits for the first byte that the client sends and leaves it where it is.
fn first_byte(socket: &Socket, limit: Duration) -> io::Result<Option<u8>> {
    socket.set_read_timeout(Some(limit))?;
    let mut byte = [0u8; 1];
    let count = loop {
        match rustix::net::recv(socket, &mut byte[..], RecvFlags::PEEK) {
            Ok((_, count)) => break count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    };
    socket.set_read_timeout(None)?;
    Ok((count > 0).then(|| byte[0]))
}
