//! The server's side: what it shows to clients, what it asks of them, and their streams.

use crate::{Certificate, TlsError, Versions, pem, provider};
use parking_lot::{Mutex, RwLock};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ProtocolVersion, ServerConfig, ServerConnection};
use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the last record of a stream may take to be sent.
const GOODBYE: Duration = Duration::from_millis(100);

/// How long the records of one call may take to be sent, 64 KiB at most: a client that reads one
/// byte at a time does not hold the call open.
const SEND_LIMIT: Duration = Duration::from_secs(30);

/// The files and rules of a server.
#[derive(Clone)]
pub struct ServerFiles {
    /// The certificate, its chain, and its key.
    pub certificate_key: PathBuf,
    /// The password of the key, if it is encrypted.
    pub password: Option<String>,
    /// The authorities whose clients are trusted.
    pub authorities: PathBuf,
    /// Certificates that are revoked.
    pub revoked: Option<PathBuf>,
    /// Clients may show no certificate. One that is shown must be good all the same.
    pub clients_without_certificate: bool,
    /// The versions that are spoken.
    pub versions: Versions,
}

/// What a server shows and asks. New connections use the files as they were last read.
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
    /// A file that is missing, malformed, or does not fit the others.
    pub fn open(files: ServerFiles) -> Result<ServerTls, TlsError> {
        let current = RwLock::new(load(&files)?);
        Ok(ServerTls { files, current })
    }

    /// Reads the files again, for the connections that come from now on. If one of them is bad,
    /// all stays as it is.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn rotate(&self) -> Result<(), TlsError> {
        let fresh = load(&self.files)?;
        *self.current.write() = fresh;
        Ok(())
    }

    /// Returns what the server's certificate says about itself.
    pub fn certificate(&self) -> Certificate {
        self.current.read().certificate.clone()
    }

    /// Does the handshake with a client that has connected, before `deadline`.
    ///
    /// # Errors
    /// The client speaks no TLS, no common version, shows no good certificate, or is too slow.
    /// The client gets an alert if TLS has one for the reason.
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
        // As OpenSSL checks them: only the client's own certificate is looked up, and a list of
        // its authority that is missing or out of date refuses the client.
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
    // Each connection shows its certificate: one that was revoked does not come back by a ticket.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Current { config: Arc::new(config), certificate })
}

/// The encryption of one connection after its handshake. One thread at a time reads and writes.
pub struct ServerSession(Mutex<ServerConnection>);

impl ServerSession {
    /// Returns what the client's certificate says, if the client has shown one. It was checked in
    /// the handshake.
    pub fn client(&self) -> Option<Certificate> {
        let connection = self.0.lock();
        connection.peer_certificates()?.first().and_then(|leaf| Certificate::parse(leaf))
    }

    /// Returns whether the connection speaks TLS 1.3; else it is 1.2.
    pub fn is_tls13(&self) -> bool {
        self.0.lock().protocol_version() == Some(ProtocolVersion::TLSv1_3)
    }

    /// Reads decrypted bytes; 0 at the end of the stream. Reads the socket at most once, so that
    /// the caller can look at its clock however few bytes come at a time.
    ///
    /// # Errors
    /// `Interrupted` if no whole record is there yet, those of the socket, its time-out among them,
    /// and `InvalidData` for records that were not encrypted by the client.
    pub fn read(&self, stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
        let mut connection = self.0.lock();
        if let Some(count) = decrypted(&mut connection, buffer)? {
            return Ok(count);
        }
        receive(&mut connection, stream)?;
        send(&mut connection, stream, SEND_LIMIT)?;
        decrypted(&mut connection, buffer)?.ok_or_else(|| io::ErrorKind::Interrupted.into())
    }

    /// Encrypts and writes as much of `parts` as one turn takes, and returns how much that is.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn write(&self, stream: &TcpStream, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut connection = self.0.lock();
        let taken = connection.writer().write_vectored(parts)?;
        send(&mut connection, stream, SEND_LIMIT)?;
        Ok(taken)
    }

    /// Tells the client that the stream ends here, unless it does not listen.
    pub fn finish(&self, stream: &TcpStream) {
        let mut connection = self.0.lock();
        connection.send_close_notify();
        if stream.set_write_timeout(Some(GOODBYE)).is_ok() {
            // The client may be gone already.
            let _ = send(&mut connection, stream, GOODBYE);
        }
    }
}

/// Takes decrypted bytes out: `None` if no whole record has come, 0 at the end of the stream.
fn decrypted(connection: &mut ServerConnection, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match connection.reader().read(buffer) {
        Ok(count) => Ok(Some(count)),
        // The socket ended without a close_notify: the length of a message tells whether it was
        // cut off.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Some(0)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads records from the socket once; 0 at its end.
fn receive(connection: &mut ServerConnection, mut stream: &TcpStream) -> io::Result<usize> {
    let count = loop {
        match connection.read_tls(&mut stream) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other?,
        }
    };
    if let Err(error) = connection.process_new_packets() {
        // The alert that tells the client; the error counts, whether or not it arrives.
        let _ = send(connection, stream, GOODBYE);
        return Err(io::Error::new(io::ErrorKind::InvalidData, error));
    }
    Ok(count)
}

/// Writes all records that wait to be sent, or fails with `TimedOut` if the client has not taken
/// them within `limit`.
fn send(
    connection: &mut ServerConnection,
    mut stream: &TcpStream,
    limit: Duration,
) -> io::Result<()> {
    let mut deadline = None;
    while connection.wants_write() {
        match connection.write_tls(&mut stream) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            // Mostly the kernel takes all at once, and no clock is read.
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
