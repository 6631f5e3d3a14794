//! TLS for the server and the tools, built on rustls: certificates and keys from PEM files, checks
//! of the peer's certificate, and encrypted streams.
//!
//! Read [`server`] and [`client`] first. `pem` reads the files, `certificate` the facts of a
//! certificate.

pub mod certificate;
pub mod client;
mod pem;
pub mod server;
mod versions;

pub use certificate::Certificate;
pub use client::{ClientFiles, ClientTls, is_unknown_issuer};
pub use server::{ServerFiles, ServerSession, ServerTls};
pub use versions::Versions;

use rustls::crypto::CryptoProvider;
use std::fmt;
use std::sync::Arc;

/// The reason why files, names or options cannot be used: a text for people.
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

/// Returns the cryptography that every connection uses.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
