//! Malformed messages, and how the server reacts to them.

use quire_error::{Error, ErrorCode};
use std::fmt;

/// A message that no command can be run for.
#[derive(Debug)]
pub enum Malformed {
    /// The error is sent as the reply; the connection stays open.
    Answer(Error),
    /// A message of a kind that has no reply; the connection stays open.
    Ignore(Error),
    /// The rest of the stream cannot be decoded: close the connection without a reply, as mongod
    /// does.
    HangUp(Error),
}

impl Malformed {
    /// Returns a `ProtocolError` (17) that closes the connection.
    pub fn hang_up(message: impl Into<String>) -> Self {
        Malformed::HangUp(Error::new(ErrorCode::ProtocolError, message))
    }

    /// Returns the error of any variant.
    pub fn error(&self) -> &Error {
        match self {
            Malformed::Answer(error) | Malformed::Ignore(error) | Malformed::HangUp(error) => error,
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error().fmt(f)
    }
}

impl std::error::Error for Malformed {}
