//! SCRAM on the client's side, with which the command-line tools log in.

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use quire_error::{Error, Result};
use ring::{digest, pbkdf2};
use subtle::ConstantTimeEq;

use super::{Mechanism, digest_password, failed, random};

/// The fewest rounds of PBKDF2 that a client accepts. A server that asks for fewer may be an
/// impostor that wants to guess the password. (RFC 7677, section 4.)
const ITERATIONS_MIN: u32 = 4096;

/// A login before the client's proof.
pub struct ClientLogin {
    mechanism: Mechanism,
    password: String,
    nonce: String,
    bare: String,
}

/// A login after the client's proof, which waits for the server's proof.
pub struct ClientProof {
    expected: String,
}

impl ClientLogin {
    /// Begins a login.
    ///
    /// # Errors
    /// 2 BadValue for a password that SASLprep refuses; 1 InternalError if the system has no random
    /// bytes.
    pub fn new(mechanism: Mechanism, user: &str, password: &str) -> Result<Self> {
        let password = match mechanism {
            Mechanism::Sha1 => digest_password(user, password),
            Mechanism::Sha256 => stringprep::saslprep(password)
                .map_err(|error| Error::bad_value(error.to_string()))?
                .into_owned(),
        };
        let nonce = BASE64.encode(random(24)?);
        let name = user.replace('=', "=3D").replace(',', "=2C");
        let bare = format!("n={name},r={nonce}");
        Ok(ClientLogin { mechanism, password, nonce, bare })
    }

    /// Returns the client's first message.
    pub fn first(&self) -> String {
        format!("n,,{}", self.bare)
    }

    #[cfg(test)]
    pub(super) fn nonce(&self) -> &str {
        &self.nonce
    }

    /// Returns the client's proof that it knows the password, in answer to the server's first
    /// message.
    ///
    /// # Errors
    /// 18 AuthenticationFailed if the message is malformed, belongs to another login, or asks for
    /// too few rounds.
    pub fn prove(self, server: &[u8]) -> Result<(ClientProof, String)> {
        let server = std::str::from_utf8(server).map_err(|_| failed())?;
        let field = |name: &str| {
            server.split(',').find_map(|part| part.strip_prefix(name)).ok_or_else(failed)
        };
        let nonce = field("r=")?;
        let rounds: u32 = field("i=")?.parse().map_err(|_| failed())?;
        let rounds = NonZeroU32::new(rounds).filter(|rounds| rounds.get() >= ITERATIONS_MIN);
        let rounds = rounds.ok_or_else(failed)?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(failed());
        }
        let salt = BASE64.decode(field("s=")?).map_err(|_| failed())?;
        let mechanism = self.mechanism;
        let mut salted = vec![0; mechanism.hash_bytes()];
        let password = self.password.as_bytes();
        pbkdf2::derive(mechanism.pbkdf2(), rounds, &salt, password, &mut salted);
        let client_key = mechanism.sign(&salted, b"Client Key");
        let stored = digest::digest(mechanism.digest(), client_key.as_ref());
        let without_proof = format!("c=biws,r={nonce}");
        let signed = format!("{},{server},{without_proof}", self.bare);
        let signature = mechanism.sign(stored.as_ref(), signed.as_bytes());
        let pairs = client_key.as_ref().iter().zip(signature.as_ref());
        let proof: Vec<u8> = pairs.map(|(key, sign)| key ^ sign).collect();
        let server_key = mechanism.sign(&salted, b"Server Key");
        let expected = mechanism.sign(server_key.as_ref(), signed.as_bytes());
        let expected = format!("v={}", BASE64.encode(expected.as_ref()));
        Ok((ClientProof { expected }, format!("{without_proof},p={}", BASE64.encode(proof))))
    }
}

impl ClientProof {
    /// Checks the server's proof that it knows the password's keys.
    ///
    /// # Errors
    /// 18 AuthenticationFailed if the proof is wrong.
    pub fn check(&self, server: &[u8]) -> Result<()> {
        match bool::from(server.ct_eq(self.expected.as_bytes())) {
            true => Ok(()),
            false => Err(failed()),
        }
    }
}
