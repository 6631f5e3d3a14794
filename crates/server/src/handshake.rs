//! The first step of a new connection: the TLS handshake, if the server requires or allows one.

use crate::shared::Shared;
use crate::socket::Socket;
use crate::tls::TlsMode;
use quire_error::{Error, ErrorCode, Result};
use rustix::net::RecvFlags;
use std::io;
use std::time::{Duration, Instant};

/// The first byte of a handshake (RFC 8446, section 5.1: the content type of a record).
const HANDSHAKE_RECORD: u8 = 22;

/// Does what precedes the first message of a connection. An error ends the connection.
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
        // The connection's loop detects the end of the stream.
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

/// Waits for the first byte from the client and leaves it in the socket.
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
