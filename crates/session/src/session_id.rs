//! The id of a logical session: a UUID and the digest of the user who owns it.

use std::fmt;

use quire_collections::SessionKey;
use quire_document::{Binary, DocBuf, DocWriter, Value};

/// The user digest in the ids of sessions without a user: SHA-256 of the empty string.
pub const NO_USER: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24,
    0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// The id of a logical session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId {
    /// The UUID that the client generated.
    pub id: [u8; 16],
    /// The digest of the user; [`NO_USER`] on a server without logins.
    pub user: [u8; 32],
}

impl SessionId {
    /// Returns the id of a session without a user.
    pub const fn without_user(id: [u8; 16]) -> Self {
        SessionId { id, user: NO_USER }
    }

    /// Returns `{id, uid}`, as MongoDB shows it.
    pub fn to_doc(&self) -> DocBuf {
        DocBuf::build(|writer| self.write(writer))
    }

    /// Appends the fields `id` and `uid`.
    pub fn write(&self, writer: &mut DocWriter<'_>) {
        writer.append("id", Value::Binary(Binary { subtype: 4, bytes: &self.id }));
        writer.append("uid", Value::Binary(Binary { subtype: 0, bytes: &self.user }));
    }

    /// Returns the key of the session's records in the store.
    pub fn key(&self) -> SessionKey {
        SessionKey::new(&self.id, (self.user != NO_USER).then_some(&self.user))
    }

    /// Returns the id of the session whose records have this key.
    pub fn from_key(id: &[u8; 16], user: Option<&[u8; 32]>) -> Self {
        SessionId { id: *id, user: user.copied().unwrap_or(NO_USER) }
    }
}

/// Prints `uuid - digest` as MongoDB's messages do, but the digest in hexadecimal.
impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.id.iter().enumerate() {
            let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        f.write_str(" - ")?;
        self.user.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
