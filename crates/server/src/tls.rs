//! Which connections are encrypted, and with which certificate.

use quire_commands::ServerCertificate;
use quire_error::{Error, ErrorCode, Result};
use quire_tls::ServerTls;
use std::fmt;

/// Which clients must be encrypted. Without encryption there is no [`Encryption`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsMode {
    /// Those that begin a TLS handshake (`allowTLS`, `preferTLS`: these differ only between
    /// members).
    Optional,
    /// All; a client without encryption is disconnected (`requireTLS`).
    Required,
}

/// The encryption of TCP connections. Unix sockets have none, because their clients are on the same
/// machine.
pub struct Encryption {
    /// Which clients must be encrypted.
    pub mode: TlsMode,
    /// The certificate of the server, and the certificates that it accepts.
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
