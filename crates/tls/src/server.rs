//! The server's side: its configuration, its checks of client certificates, and its encrypted
//! streams.

use crate::{Certificate, TlsError, Versions, pem, provider};
use parking_lot::{Mutex, RwLock};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ProtocolVersion, ServerConfig, ServerConnection};
use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time limit for the last record of a stream.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(100);

/// Time limit for the records of one call, which are at most 64 KiB. A client that reads one byte
/// at a time cannot block the call for longer.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// The files and options of a server.
#[derive(Clone)]
pub struct ServerFiles {
    /// The file of the certificate, its intermediate certificates, and its key.
    pub certificate_key: PathBuf,
    /// The password of the key, if it is encrypted.
    pub password: Option<String>,
    /// The file of the certificate authorities that client certificates may come from.
    pub authorities: PathBuf,
    /// The file of certificate revocation lists.
    pub revoked: Option<PathBuf>,
    /// Accepts clients without a certificate. A certificate that a client does send must be valid.
    pub clients_without_certificate: bool,
    /// The protocol versions that the server offers.
    pub versions: Versions,
}

/// A server's TLS configuration. A new connection uses the files as they were last read.
pub struct ServerTls {
    files: ServerFiles,
    current: RwLock<Current>,
}

#[derive(Clone)]
struct Current {
    config: Arc<ServerConfig>,
    certificate: Certificate,
}

impl ServerTls {
    /// Reads the files.
    ///
    /// # Errors
    /// A file is missing or malformed, or does not fit the others.
    pub fn open(files: ServerFiles) -> Result<ServerTls, TlsError> {
        let current = RwLock::new(load(&files)?);
        Ok(ServerTls { files, current })
    }

    /// Reads the files again and uses them for new connections. On an error the earlier
    /// configuration stays in use.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn rotate(&self) -> Result<(), TlsError> {
        let fresh = load(&self.files)?;
        *self.current.write() = fresh;
        Ok(())
    }

    /// Returns the facts of the server's certificate.
    pub fn certificate(&self) -> Certificate {
        self.current.read().certificate.clone()
    }

    /// Performs the handshake with a client that has connected, before `deadline`.
    ///
    /// # Errors
    /// The client does not speak TLS, shares no version with the server, has no valid certificate,
    /// or is too slow. The client gets an alert if TLS defines one for the reason.
    pub fn accept(&self, stream: &TcpStream, deadline: Instant) -> io::Result<ServerSession> {
        let config = Arc::clone(&self.current.read().config);
        let mut connection = ServerConnection::new(config).map_err(io::Error::other)?;
        while connection.is_handshaking() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the handshake took too long"));
            }
            stream.set_read_timeout(Some(left))?;
            match receive(&mut connection, stream) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => send(&mut connection, stream, left)?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        stream.set_read_timeout(None)?;
        Ok(ServerSession(Mutex::new(connection)))
    }
}

fn load(files: &ServerFiles) -> Result<Current, TlsError> {
    let identity = pem::identity(&files.certificate_key, files.password.as_deref())?;
    let path = files.certificate_key.display();
    let certificate = identity.chain.first().and_then(|leaf| Certificate::parse(leaf));
    let certificate = certificate
        .ok_or_else(|| TlsError::new(format!("the certificate in {path} is malformed")))?;
    let roots = Arc::new(pem::authorities(&files.authorities)?);
    let mut clients = WebPkiClientVerifier::builder_with_provider(roots, provider());
    if let Some(revoked) = &files.revoked {
        // Revocation is checked as OpenSSL does: only the client's own certificate is looked up,
        // and a missing or outdated list of its authority refuses the client.
        clients = clients
            .with_crls(pem::revoked(revoked)?)
            .only_check_end_entity_revocation()
            .enforce_revocation_expiration();
    }
    if files.clients_without_certificate {
        clients = clients.allow_unauthenticated();
    }
    let clients = clients.build().map_err(|error| TlsError::new(error.to_string()))?;
    let unusable = |error: rustls::Error| TlsError::new(format!("{path} cannot be used: {error}"));
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&files.versions.list())
        .map_err(unusable)?
        .with_client_cert_verifier(clients)
        .with_single_cert(identity.chain, identity.key)
        .map_err(unusable)?;
    // No session is resumed, so that each connection checks the client's certificate again: a
    // revoked certificate is refused even if its client has a session ticket.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Current { config: Arc::new(config), certificate })
}

/// The encryption of one connection after its handshake. The lock admits one reader or writer at a
/// time.
pub struct ServerSession(Mutex<ServerConnection>);

impl ServerSession {
    /// Returns the facts of the client's certificate, which the handshake has checked; `None` if
    /// the client sent none.
    pub fn client(&self) -> Option<Certificate> {
        let connection = self.0.lock();
        connection.peer_certificates()?.first().and_then(|leaf| Certificate::parse(leaf))
    }

    /// Returns true for TLS 1.3, false for TLS 1.2.
    pub fn is_tls13(&self) -> bool {
        self.0.lock().protocol_version() == Some(ProtocolVersion::TLSv1_3)
    }

    /// Reads decrypted bytes; 0 at the end of the stream. Reads the socket at most once, so that
    /// the caller can check its deadline even if the bytes arrive one by one.
    ///
    /// # Errors
    /// `Interrupted` if no complete record has arrived; errors of the socket, its time-out
    /// included; and `InvalidData` for records that do not decrypt.
    pub fn read(&self, stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
        let mut connection = self.0.lock();
        if let Some(count) = decrypted(&mut connection, buffer)? {
            return Ok(count);
        }
        receive(&mut connection, stream)?;
        send(&mut connection, stream, SEND_TIMEOUT)?;
        decrypted(&mut connection, buffer)?.ok_or_else(|| io::ErrorKind::Interrupted.into())
    }

    /// Encrypts and writes a prefix of `parts`, and returns its length in bytes.
    ///
    /// # Errors
    /// Errors of the socket, and `TimedOut` if the client reads too slowly.
    pub fn write(&self, stream: &TcpStream, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut connection = self.0.lock();
        let taken = connection.writer().write_vectored(parts)?;
        send(&mut connection, stream, SEND_TIMEOUT)?;
        Ok(taken)
    }

    /// Tells the client that the stream ends. Does nothing if the client cannot be reached.
    pub fn finish(&self, stream: &TcpStream) {
        let mut connection = self.0.lock();
        connection.send_close_notify();
        if stream.set_write_timeout(Some(CLOSE_TIMEOUT)).is_ok() {
            // The client may have closed the connection already.
            let _ = send(&mut connection, stream, CLOSE_TIMEOUT);
        }
    }
}

/// Returns the count of decrypted bytes put into `buffer`: `None` if no complete record has
/// arrived, 0 at the end of the stream.
fn decrypted(connection: &mut ServerConnection, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match connection.reader().read(buffer) {
        Ok(count) => Ok(Some(count)),
        // The socket ended without a close_notify. That is no danger here: a message has its
        // length, so a truncated one is noticed.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Some(0)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads records from the socket once; returns 0 at its end.
fn receive(connection: &mut ServerConnection, mut stream: &TcpStream) -> io::Result<usize> {
    let count = loop {
        match connection.read_tls(&mut stream) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other?,
        }
    };
    if let Err(error) = connection.process_new_packets() {
        // Sends the alert that tells the client. The error is returned whether or not the alert
        // arrives.
        let _ = send(connection, stream, CLOSE_TIMEOUT);
        return Err(io::Error::new(io::ErrorKind::InvalidData, error));
    }
    Ok(count)
}

/// Writes all pending records. Fails with `TimedOut` if the client has not received them within
/// `limit`.
fn send(
    connection: &mut ServerConnection,
    mut stream: &TcpStream,
    limit: Duration,
) -> io::Result<()> {
    let mut deadline = None;
    while connection.wants_write() {
        match connection.write_tls(&mut stream) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            // In most cases the kernel accepts all bytes at once, and the clock is not read.
            Ok(_) if !connection.wants_write() => return Ok(()),
            Ok(_) => {
                let now = Instant::now();
                if now > *deadline.get_or_insert_with(|| now + limit) {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
