//! TLS of the server and of the tools, over rustls: certificates and keys from PEM files, the
//! checks of the other side's certificate, and encrypted streams.
//!
//! Read [`server`] and [`client`] first; `pem` reads the files, and `certificate` the names in a
//! certificate.

pub mod certificate;
pub mod client;
mod pem;
pub mod server;
mod versions;

pub use certificate::Certificate;
pub use client::{ClientFiles, ClientTls};
pub use server::{ServerFiles, ServerSession, ServerTls};
pub use versions::Versions;

use rustls::crypto::CryptoProvider;
use std::fmt;
use std::sync::Arc;

/// Why files, names or options cannot be used: a text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError(String);

impl TlsError {
    pub(crate) fn new(text: impl Into<String>) -> TlsError {
        TlsError(text.into())
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

/// The cryptography of every connection.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
