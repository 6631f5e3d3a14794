//! The certificate that the server shows to clients, as commands see it.

use quire_error::Result;

/// The server's certificate; the listener has it.
pub trait ServerCertificate: Send + Sync {
    /// Reads certificate, key, authorities and revoked certificates again, for new connections.
    ///
    /// # Errors
    /// `InvalidSSLConfiguration` if a file is bad; everything stays as it is then.
    fn rotate(&self) -> Result<()>;

    /// Returns the subject as RFC 2253 writes it.
    fn subject(&self) -> String;

    /// Returns the last millisecond at which it is valid, since 1970.
    fn not_after_ms(&self) -> i64;
}
