//! A certificate authority for tests, and the certificates that it signs, as PEM files in a
//! directory.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pkcs8::pkcs5::pbes2;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DistinguishedName,
    DnType, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber,
    date_time_ymd,
};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// An authority and the directory of its files.
pub struct Authority {
    directory: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

/// The special properties of a certificate.
#[derive(Clone, Copy, Default)]
pub struct Unusual {
    /// True if it has expired.
    pub expired: bool,
    /// Its serial number, for the list of revoked certificates.
    pub serial: Option<u64>,
    /// The password of its key.
    pub password: Option<&'static str>,
}

impl Authority {
    /// Creates an authority; its certificate is the file `ca.pem`.
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let own = params.self_signed(&key).unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("ca.pem"), own.pem()).unwrap();
        Authority { directory, issuer: Issuer::new(params, key) }
    }

    /// Returns the file of the authority's certificate.
    pub fn file(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// Returns the directory of the files.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Signs a certificate for a host or for a client. Returns its file, with the key.
    pub fn sign(&self, file: &str, name: &str, hosts: &[&str], unusual: Unusual) -> PathBuf {
        let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "Quire, tests");
        params.distinguished_name.push(DnType::CommonName, name);
        params.serial_number = unusual.serial.map(SerialNumber::from);
        if unusual.expired {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let path = self.directory.path().join(file);
        let key = match unusual.password {
            Some(password) => encrypted(&key, password),
            None => key.serialize_pem(),
        };
        std::fs::write(&path, format!("{}{key}", certificate.pem())).unwrap();
        path
    }

    /// Writes a list of revoked certificates that is valid for a long time, or is out of date.
    pub fn revoke(&self, serials: &[u64], old: bool) -> PathBuf {
        let revoked = |serial: &u64| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2024, 1, 1),
            next_update: date_time_ymd(if old { 2025 } else { 2100 }, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let path = self.directory.path().join("crl.pem");
        std::fs::write(&path, list.signed_by(&self.issuer).unwrap().pem().unwrap()).unwrap();
        path
    }
}

/// Returns the key as OpenSSL 3 encrypts it: PBES2 with PBKDF2 and AES-256.
fn encrypted(key: &KeyPair, password: &str) -> String {
    let key = key.serialize_der();
    let key = pkcs8::PrivateKeyInfo::try_from(key.as_slice()).unwrap();
    let how = pbes2::Parameters::pbkdf2_sha256_aes256cbc(2048, b"saltsalt", &[7; 16]).unwrap();
    let locked = key.encrypt_with_params(how, password).unwrap();
    let text = STANDARD.encode(locked.as_bytes());
    let lines: Vec<_> =
        text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    let label = "ENCRYPTED PRIVATE KEY-----";
    format!("-----BEGIN {label}\n{}\n-----END {label}\n", lines.join("\n"))
}
