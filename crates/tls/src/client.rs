//! The client's side, for the command-line tools.

use crate::{TlsError, Versions, pem, provider};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme, StreamOwned,
};
use std::io;
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;

/// The files and options of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientFiles {
    /// The file of trusted certificate authorities; `None` for those of the system.
    pub authorities: Option<PathBuf>,
    /// The client's own certificate and key.
    pub certificate_key: Option<PathBuf>,
    /// The password of the key, if it is encrypted.
    pub password: Option<String>,
    /// Accepts a server certificate for another host name.
    pub any_name: bool,
    /// Accepts any server certificate without a check.
    pub any_certificate: bool,
    /// The protocol versions that the client offers.
    pub versions: Versions,
}

impl ClientFiles {
    /// Returns true if the client's key is encrypted.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn needs_password(&self) -> Result<bool, TlsError> {
        self.certificate_key.as_deref().map_or(Ok(false), pem::is_encrypted)
    }
}

/// A client's TLS configuration: its certificate, and its checks of the server's certificate.
pub struct ClientTls(Arc<ClientConfig>);

impl ClientTls {
    /// Reads the files.
    ///
    /// # Errors
    /// A file is missing or malformed, or does not fit the others.
    pub fn open(files: &ClientFiles) -> Result<ClientTls, TlsError> {
        let checks = Arc::new(Checks::new(files)?);
        let failed = |error: Error| TlsError::new(error.to_string());
        let config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&files.versions.list())
            .map_err(failed)?
            .dangerous()
            .with_custom_certificate_verifier(checks);
        let config = match &files.certificate_key {
            None => config.with_no_client_auth(),
            Some(path) => {
                let identity = pem::identity(path, files.password.as_deref())?;
                config.with_client_auth_cert(identity.chain, identity.key).map_err(|error| {
                    TlsError::new(format!("{} cannot be used: {error}", path.display()))
                })?
            }
        };
        Ok(ClientTls(Arc::new(config)))
    }

    /// Performs the handshake with the server that has this host name or address.
    ///
    /// # Errors
    /// Errors of the socket, and `InvalidData` if the server's certificate is refused.
    pub fn connect(
        &self,
        mut stream: TcpStream,
        host: &str,
    ) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let mut session =
            ClientConnection::new(Arc::clone(&self.0), name).map_err(io::Error::other)?;
        while session.is_handshaking() {
            session.complete_io(&mut stream)?;
        }
        Ok(StreamOwned::new(session, stream))
    }
}

/// The checks of a server's certificate.
#[derive(Debug)]
struct Checks {
    /// The verifier of the chain; `None` accepts any certificate.
    chain: Option<Arc<WebPkiServerVerifier>>,
    any_name: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Checks {
    fn new(files: &ClientFiles) -> Result<Checks, TlsError> {
        let provider = provider();
        let algorithms = provider.signature_verification_algorithms;
        let chain = match files.any_certificate {
            true => None,
            false => {
                let roots = Arc::new(match &files.authorities {
                    Some(path) => pem::authorities(path)?,
                    None => authorities_of_the_system()?,
                });
                let built = WebPkiServerVerifier::builder_with_provider(roots, provider);
                Some(built.build().map_err(|error| TlsError::new(error.to_string()))?)
            }
        };
        Ok(Checks { chain, any_name: files.any_name, algorithms })
    }
}

impl ServerCertVerifier for Checks {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(certificate, between, name, ocsp, now) {
            // The verifier compares the name last, so the chain and the dates are valid.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.any_name => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Returns true if a connection failed because no known authority has issued the server's certificate.
pub fn is_unknown_issuer(error: &std::io::Error) -> bool {
    let of_tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    matches!(of_tls, Some(Error::InvalidCertificate(CertificateError::UnknownIssuer)))
}

fn authorities_of_the_system() -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    match roots.is_empty() {
        true => Err(TlsError::new("the system has no list of authorities: name one (tlsCAFile)")),
        false => Ok(roots),
    }
}
