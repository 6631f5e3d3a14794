//! What is wrong with a message, and what the server does about it.

use quire_error::{Error, ErrorCode};
use std::fmt;

/// A message that cannot be handed to a command.
#[derive(Debug)]
pub enum Malformed {
    /// The error is the reply; the connection stays open.
    Answer(Error),
    /// The client sent something that takes no answer; the connection stays open.
    Ignore(Error),
    /// The stream cannot be trusted any more: close without an answer, as mongod does.
    HangUp(Error),
}

impl Malformed {
    /// `ProtocolError` (17), which closes the connection.
    pub fn hang_up(message: impl Into<String>) -> Self {
        Malformed::HangUp(Error::new(ErrorCode::ProtocolError, message))
    }

    /// The error itself.
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
