//! The server's certificate, as commands use it.

use quire_error::Result;

/// The server's certificate, which the listener implements.
pub trait ServerCertificate: Send + Sync {
    /// Reads the certificate, the key, the authorities and the revoked certificates again, for new
    /// connections.
    ///
    /// # Errors
    /// `InvalidSSLConfiguration` if a file is invalid; then nothing changes.
    fn rotate(&self) -> Result<()>;

    /// Returns the subject in the form of RFC 2253.
    fn subject(&self) -> String;

    /// Returns the end of its validity, in milliseconds since 1970.
    fn not_after_ms(&self) -> i64;
}
