//! `Error`, the one error type of `mql` and of every layer above it: code, message, details and
//! labels.

use crate::ErrorCode;
use std::fmt;

/// The result of a fallible function in the upper layers.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error as a client sees it. It is boxed, one word wide, so that `Result` stays small.
pub struct Error(Box<Inner>);

struct Inner {
    code: ErrorCode,
    message: String,
    labels: Vec<Label>,
    details: Option<Vec<u8>>,
}

/// A label tells a driver how it may react to an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// The client may retry the whole transaction.
    TransientTransactionError,
    /// The client may send the commit again.
    UnknownTransactionCommitResult,
    /// The client may send the write again with the same transaction number.
    RetryableWriteError,
    /// The client may resume the change stream.
    ResumableChangeStreamError,
    /// A change stream cannot continue after this error.
    NonResumableChangeStreamError,
    /// No part of the write took effect.
    NoWritesPerformed,
}

impl Label {
    /// Returns the label as it is spelled on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Label::TransientTransactionError => "TransientTransactionError",
            Label::UnknownTransactionCommitResult => "UnknownTransactionCommitResult",
            Label::RetryableWriteError => "RetryableWriteError",
            Label::ResumableChangeStreamError => "ResumableChangeStreamError",
            Label::NonResumableChangeStreamError => "NonResumableChangeStreamError",
            Label::NoWritesPerformed => "NoWritesPerformed",
        }
    }
}

impl Error {
    /// Returns an error with a code and a message for people.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let message = message.into();
        Error(Box::new(Inner { code, message, labels: Vec::new(), details: None }))
    }

    /// Returns the error of one check, which its location number identifies.
    pub fn location(number: i32, message: impl Into<String>) -> Self {
        Error::new(ErrorCode::location(number), message)
    }

    /// Returns a `BadValue` (2).
    pub fn bad_value(message: impl Into<String>) -> Self {
        Error::new(ErrorCode::BadValue, message)
    }

    /// Returns a `FailedToParse` (9).
    pub fn failed_to_parse(message: impl Into<String>) -> Self {
        Error::new(ErrorCode::FailedToParse, message)
    }

    /// Returns a `TypeMismatch` (14).
    pub fn type_mismatch(message: impl Into<String>) -> Self {
        Error::new(ErrorCode::TypeMismatch, message)
    }

    /// Returns a `CommandNotSupported` (115): MongoDB has `feature`, this server does not yet.
    pub fn not_built(feature: &str) -> Self {
        Error::new(ErrorCode::CommandNotSupported, format!("{feature} is not supported yet"))
    }

    /// Returns an `InternalError` (1): an invariant is broken, and the client is not the cause.
    pub fn internal(message: impl Into<String>) -> Self {
        Error::new(ErrorCode::InternalError, message)
    }

    /// Returns the code.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// Returns the text for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the labels in the order in which they were added.
    pub fn labels(&self) -> &[Label] {
        &self.0.labels
    }

    /// Returns the BSON document whose fields (`keyPattern`, `keyValue`, `errInfo`) are added to
    /// the reply.
    pub fn details(&self) -> Option<&[u8]> {
        self.0.details.as_deref()
    }

    /// Adds a label, unless the error already has it.
    pub fn with_label(mut self, label: Label) -> Self {
        if !self.0.labels.contains(&label) {
            self.0.labels.push(label);
        }
        self
    }

    /// Removes a label.
    pub fn without_label(mut self, label: Label) -> Self {
        self.0.labels.retain(|own| *own != label);
        self
    }

    /// Sets the BSON document of details; its fields are added to the reply.
    pub fn with_details(mut self, bson: impl Into<Vec<u8>>) -> Self {
        self.0.details = Some(bson.into());
        self
    }

    /// Puts `<context> :: caused by :: ` before the message, as MongoDB does.
    pub fn context(mut self, context: &str) -> Self {
        self.0.message = format!("{context} :: caused by :: {}", self.0.message);
        self
    }

    /// Replaces the message.
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.0.message = message.into();
        self
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.code, self.0.message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code, self.0.message)
    }
}

impl std::error::Error for Error {}
