//! Reads certificates, keys and certificate revocation lists from PEM files (RFC 7468).

use crate::TlsError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pkcs8::EncryptedPrivateKeyInfo;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, PrivatePkcs8KeyDer,
};
use std::path::Path;

/// Size limit of a file in bytes. Files of certificates and keys are far smaller; a larger file is
/// a mistake.
const FILE_BYTES_MAX: u64 = 16 << 20;

const ENCRYPTED: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const ENCRYPTED_END: &str = "-----END ENCRYPTED PRIVATE KEY-----";

/// A certificate with its intermediate certificates, and its private key.
pub(crate) struct Identity {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

/// Returns true if the key in a file is encrypted and therefore needs a password.
pub(crate) fn is_encrypted(path: &Path) -> Result<bool, TlsError> {
    Ok(read(path)?.contains(ENCRYPTED))
}

/// Reads a certificate, its intermediate certificates and its key from one file.
pub(crate) fn identity(path: &Path, password: Option<&str>) -> Result<Identity, TlsError> {
    let text = read(path)?;
    let key = private_key(path, &text, password)?;
    Ok(Identity { chain: certificates(path, &text)?, key })
}

/// Reads the trusted certificate authorities.
pub(crate) fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, &read(path)?)? {
        roots.add(certificate).map_err(|error| {
            TlsError::new(format!("a certificate in {} is unusable: {error}", path.display()))
        })?;
    }
    Ok(roots)
}

/// Reads certificate revocation lists; a file without one is an error.
pub(crate) fn revoked(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let text = read(path)?;
    let lists: Result<Vec<_>, _> =
        CertificateRevocationListDer::pem_slice_iter(text.as_bytes()).collect();
    match lists {
        Ok(lists) if !lists.is_empty() => Ok(lists),
        Ok(_) => Err(TlsError::new(format!("there is no X509 CRL in {}", path.display()))),
        Err(error) => Err(damaged(path, &error)),
    }
}

fn read(path: &Path) -> Result<String, TlsError> {
    let failed = |why: String| TlsError::new(format!("cannot read {}: {why}", path.display()));
    let file = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?;
    if file.len() > FILE_BYTES_MAX {
        return Err(failed(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))
}

fn certificates(path: &Path, text: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(TlsError::new(format!("there is no certificate in {}", path.display()))),
        Err(error) => Err(damaged(path, &error)),
    }
}

fn private_key(
    path: &Path,
    text: &str,
    password: Option<&str>,
) -> Result<PrivateKeyDer<'static>, TlsError> {
    if let Some((_, rest)) = text.split_once(ENCRYPTED) {
        return decrypted(path, rest, password);
    }
    if text.contains("Proc-Type: 4,ENCRYPTED") {
        return Err(TlsError::new(format!(
            "the key in {} has OpenSSL's old encryption: 'openssl pkcs8 -topk8' makes PKCS #8 of it",
            path.display()
        )));
    }
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|error| match error {
        rustls::pki_types::pem::Error::NoItemsFound => {
            TlsError::new(format!("there is no private key in {}", path.display()))
        }
        error => damaged(path, &error),
    })
}

/// Decrypts the PKCS #8 key (RFC 5958) whose base64 lines are at the start of `rest`.
fn decrypted(
    path: &Path,
    rest: &str,
    password: Option<&str>,
) -> Result<PrivateKeyDer<'static>, TlsError> {
    let failed = |why: &str| TlsError::new(format!("the key in {} {why}", path.display()));
    let password = password.ok_or_else(|| failed("is encrypted, and there is no password"))?;
    let (lines, _) = rest.split_once(ENCRYPTED_END).ok_or_else(|| failed("has no end"))?;
    let base64: String = lines.split_ascii_whitespace().collect();
    let bytes = STANDARD.decode(base64).map_err(|_| failed("is not valid base64"))?;
    let key = EncryptedPrivateKeyInfo::try_from(bytes.as_slice())
        .map_err(|error| failed(&format!("has an encryption that is not known: {error}")))?;
    let key = key
        .decrypt(password)
        .map_err(|_| failed("cannot be decrypted: the password may be wrong"))?;
    Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into())
}

fn damaged(path: &Path, error: &rustls::pki_types::pem::Error) -> TlsError {
    TlsError::new(format!("{} is not a PEM file: {error}", path.display()))
}
