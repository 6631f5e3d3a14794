//! SCRAM-SHA-1 and SCRAM-SHA-256 on the server's side: stored credentials, and the exchange of
//! messages in which a client proves that it knows the password. (RFC 5802 and RFC 7677. MongoDB's
//! specification "Driver Authentication" says what is hashed instead of the password.)

#[path = "scram_client.rs"]
mod client;

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use md5::{Digest as _, Md5};
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac, pbkdf2};
use subtle::ConstantTimeEq;

pub use client::{ClientLogin, ClientProof};

/// Random bytes in the server's nonce.
const NONCE_BYTES: usize = 24;
/// Size limit of a client's message in bytes: many times that of a name and a nonce.
pub const MESSAGE_BYTES_MAX: usize = 4096;

/// A SCRAM mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mechanism {
    /// SCRAM-SHA-1 with the MD5 digest of user and password as its password.
    Sha1,
    /// SCRAM-SHA-256 with the password itself, normalised by SASLprep.
    Sha256,
}

/// The values that the server stores for a password. They verify the password, but do not suffice
/// to log in.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// The rounds of PBKDF2.
    pub iterations: u32,
    salt: Vec<u8>,
    stored_key: Vec<u8>,
    server_key: Vec<u8>,
}

impl Mechanism {
    /// Both mechanisms, in the order in which MongoDB stores and lists them.
    pub const ALL: &[Mechanism] = &[Mechanism::Sha1, Mechanism::Sha256];

    /// Returns the mechanism's name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Mechanism::Sha1 => "SCRAM-SHA-1",
            Mechanism::Sha256 => "SCRAM-SHA-256",
        }
    }

    /// Returns the mechanism with this name.
    pub fn parse(name: &str) -> Option<Mechanism> {
        Mechanism::ALL.iter().copied().find(|mechanism| mechanism.name() == name)
    }

    fn hmac(self) -> hmac::Algorithm {
        match self {
            Mechanism::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Mechanism::Sha256 => hmac::HMAC_SHA256,
        }
    }

    fn digest(self) -> &'static digest::Algorithm {
        match self {
            Mechanism::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Mechanism::Sha256 => &digest::SHA256,
        }
    }

    fn pbkdf2(self) -> pbkdf2::Algorithm {
        match self {
            Mechanism::Sha1 => pbkdf2::PBKDF2_HMAC_SHA1,
            Mechanism::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
        }
    }

    fn hash_bytes(self) -> usize {
        self.digest().output_len()
    }

    /// Returns the length of a salt in bytes. It is four bytes less than the hash, so that the salt
    /// and PBKDF2's block counter fit into one block.
    fn salt_bytes(self) -> usize {
        self.hash_bytes() - 4
    }

    fn sign(self, key: &[u8], message: &[u8]) -> hmac::Tag {
        hmac::sign(&hmac::Key::new(self.hmac(), key), message)
    }
}

/// Returns the MD5 digest, in hexadecimal, that SCRAM-SHA-1 uses instead of the password.
pub fn digest_password(user: &str, password: &str) -> String {
    let hash = Md5::digest(format!("{user}:mongo:{password}"));
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Credential {
    /// Makes the credential of a password with a new random salt. `password` is what
    /// [`digest_password`] returns for SCRAM-SHA-1, and the password itself for SCRAM-SHA-256.
    ///
    /// # Errors
    /// 2 BadValue for a password that SASLprep refuses.
    pub fn new(mechanism: Mechanism, password: &str, iterations: NonZeroU32) -> Result<Self> {
        let prepared = match mechanism {
            Mechanism::Sha1 => password.into(),
            Mechanism::Sha256 => stringprep::saslprep(password).map_err(|error| {
                Error::bad_value(format!("the password can't be normalised: {error}"))
            })?,
        };
        let salt = random(mechanism.salt_bytes())?;
        let mut salted = vec![0; mechanism.hash_bytes()];
        pbkdf2::derive(mechanism.pbkdf2(), iterations, &salt, prepared.as_bytes(), &mut salted);
        let client_key = mechanism.sign(&salted, b"Client Key");
        let server_key = mechanism.sign(&salted, b"Server Key").as_ref().to_vec();
        let stored_key = digest::digest(mechanism.digest(), client_key.as_ref()).as_ref().to_vec();
        Ok(Credential { iterations: iterations.get(), salt, stored_key, server_key })
    }

    /// Returns a credential that no password matches. The salt depends only on `secret` and the
    /// name, so that a client cannot tell unknown users from known ones by the server's answers.
    pub fn decoy(mechanism: Mechanism, secret: &[u8], name: &str, iterations: NonZeroU32) -> Self {
        let mut salt = mechanism.sign(secret, name.as_bytes()).as_ref().to_vec();
        salt.truncate(mechanism.salt_bytes());
        // The keys are derived from the secret, so that no one outside this process can compute
        // them.
        let stored_key = mechanism.sign(secret, &salt).as_ref().to_vec();
        Credential {
            iterations: iterations.get(),
            salt,
            server_key: stored_key.clone(),
            stored_key,
        }
    }

    /// Reads a stored credential.
    ///
    /// # Errors
    /// 45 UserDataInconsistent for a document that [`Credential::write`] does not produce.
    pub fn parse(mechanism: Mechanism, doc: Doc<'_>) -> Result<Self> {
        let bytes = |name: &str| {
            let text = doc.get(name).and_then(|value| value.as_str())?;
            BASE64.decode(text).ok()
        };
        let iterations = match doc.get("iterationCount") {
            Some(Value::Int32(count)) => u32::try_from(count).ok().filter(|count| *count > 0),
            _ => None,
        };
        let read = || {
            let (stored_key, server_key) = (bytes("storedKey")?, bytes("serverKey")?);
            let length = mechanism.hash_bytes();
            (stored_key.len() == length && server_key.len() == length).then_some(())?;
            let salt = bytes("salt").filter(|salt| !salt.is_empty())?;
            Some(Credential { iterations: iterations?, salt, stored_key, server_key })
        };
        read().ok_or_else(|| {
            let text = format!("the stored credentials for {} are malformed", mechanism.name());
            Error::new(ErrorCode::UserDataInconsistent, text)
        })
    }

    /// Writes the credential as MongoDB stores it: `iterationCount`, and `salt`, `storedKey` and
    /// `serverKey` in base64.
    pub fn write(&self, out: &mut DocWriter<'_>) {
        out.append("iterationCount", i32::try_from(self.iterations).unwrap_or(i32::MAX));
        for (name, bytes) in
            [("salt", &self.salt), ("storedKey", &self.stored_key), ("serverKey", &self.server_key)]
        {
            out.append(name, BASE64.encode(bytes).as_str());
        }
    }
}

/// A client's first message, parsed but not yet answered.
pub struct ClientFirst {
    /// The name of the user.
    pub user: String,
    nonce: String,
    /// The message without its header for channel binding.
    bare: String,
    /// The header in base64; the client's last message must repeat it.
    header: String,
}

/// An exchange after the server's first message: it waits for the client's proof.
pub struct Exchange {
    mechanism: Mechanism,
    credential: Credential,
    nonce: String,
    header: String,
    /// Both first messages, joined as the proof signs them.
    signed: String,
}

impl ClientFirst {
    /// Parses `n,,n=user,r=nonce`.
    ///
    /// # Errors
    /// 18 AuthenticationFailed for a malformed message, for channel binding, or if the client asks
    /// to act as another user.
    pub fn parse(message: &[u8]) -> Result<Self> {
        let text = text(message)?;
        let mut parts = text.splitn(3, ',');
        let (binding, identity) = (parts.next(), parts.next());
        let bare = parts.next().ok_or_else(failed)?;
        // "y" means that the client would use channel binding if the server offered it, which it
        // does not.
        if !matches!(binding, Some("n" | "y")) {
            return Err(failed());
        }
        let mut fields = bare.split(',');
        let user = fields.next().and_then(|field| field.strip_prefix("n=")).ok_or_else(failed)?;
        let nonce = fields.next().and_then(|field| field.strip_prefix("r=")).ok_or_else(failed)?;
        let user = unescape(user).ok_or_else(failed)?;
        if nonce.is_empty() || user.is_empty() || user.contains('\0') {
            return Err(failed());
        }
        match identity.and_then(|identity| identity.strip_prefix("a=")) {
            Some(other) if unescape(other).as_deref() != Some(&user) => return Err(failed()),
            None if identity != Some("") => return Err(failed()),
            _ => {}
        }
        let header = &text[..text.len() - bare.len()];
        Ok(ClientFirst {
            user,
            nonce: nonce.to_owned(),
            bare: bare.to_owned(),
            header: BASE64.encode(header),
        })
    }

    /// Returns the server's first message, with the salt and the joined nonce, and the exchange
    /// that waits for the client's proof.
    ///
    /// # Errors
    /// 1 InternalError if the system has no random bytes.
    pub fn answer(
        self,
        mechanism: Mechanism,
        credential: Credential,
    ) -> Result<(Exchange, String)> {
        let nonce = format!("{}{}", self.nonce, BASE64.encode(random(NONCE_BYTES)?));
        let salt = BASE64.encode(&credential.salt);
        let first = format!("r={nonce},s={salt},i={}", credential.iterations);
        let signed = format!("{},{first}", self.bare);
        let header = self.header;
        Ok((Exchange { mechanism, credential, nonce, header, signed }, first))
    }
}

impl Exchange {
    /// Checks the client's proof. Returns the server's own proof, `v=signature`.
    ///
    /// # Errors
    /// 18 AuthenticationFailed if the client does not know the password, or the message belongs to
    /// another exchange.
    pub fn finish(self, message: &[u8]) -> Result<String> {
        let text = text(message)?;
        let (without_proof, proof) = text.rsplit_once(",p=").ok_or_else(failed)?;
        let mut fields = without_proof.split(',');
        let header = fields.next().and_then(|field| field.strip_prefix("c="));
        let nonce = fields.next().and_then(|field| field.strip_prefix("r="));
        if header != Some(self.header.as_str()) || nonce != Some(self.nonce.as_str()) {
            return Err(failed());
        }
        let proof = BASE64.decode(proof).map_err(|_| failed())?;
        if proof.len() != self.mechanism.hash_bytes() {
            return Err(failed());
        }
        let signed = format!("{},{without_proof}", self.signed);
        let signature = self.mechanism.sign(&self.credential.stored_key, signed.as_bytes());
        let client_key: Vec<u8> =
            proof.iter().zip(signature.as_ref()).map(|(proof, sign)| proof ^ sign).collect();
        let hashed = digest::digest(self.mechanism.digest(), &client_key);
        if !bool::from(hashed.as_ref().ct_eq(&self.credential.stored_key)) {
            return Err(failed());
        }
        let own = self.mechanism.sign(&self.credential.server_key, signed.as_bytes());
        Ok(format!("v={}", BASE64.encode(own.as_ref())))
    }
}

/// Returns the error of every failed authentication. It is always the same, so that it does not
/// reveal the reason.
pub fn failed() -> Error {
    Error::new(ErrorCode::AuthenticationFailed, "Authentication failed.")
}

fn text(message: &[u8]) -> Result<&str> {
    if message.len() > MESSAGE_BYTES_MAX {
        return Err(failed());
    }
    std::str::from_utf8(message).map_err(|_| failed())
}

/// Decodes the escapes of a name: `=2C` is a comma, `=3D` an equals sign. Any other escape is
/// malformed.
fn unescape(name: &str) -> Option<String> {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('=') {
        out.push_str(before);
        out.push(match after.get(..2)? {
            "2C" => ',',
            "3D" => '=',
            _ => return None,
        });
        rest = &after[2..];
    }
    out.push_str(rest);
    Some(out)
}

/// Returns the HMAC with SHA-256 of a message.
pub fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut tag = [0; 32];
    tag.copy_from_slice(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref());
    tag
}

/// Returns cryptographically secure random bytes.
///
/// # Errors
/// 1 InternalError if the system has none.
pub fn random(bytes: usize) -> Result<Vec<u8>> {
    let mut out = vec![0; bytes];
    let filled = SystemRandom::new().fill(&mut out);
    filled.map_err(|_| Error::internal("the system gave no random bytes"))?;
    Ok(out)
}

#[cfg(test)]
#[path = "scram_tests.rs"]
mod tests;
