//! The one `Error` from `mql` up: code, message, details and labels in one box.

use crate::ErrorCode;
use std::fmt;

/// What a fallible function of the upper layers answers.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error as a client sees it. One word wide, so that `Result` stays small.
pub struct Error(Box<Inner>);

struct Inner {
    code: ErrorCode,
    message: String,
    labels: Vec<Label>,
    details: Option<Vec<u8>>,
}

/// A label tells a driver what it may do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// The whole transaction may be tried again.
    TransientTransactionError,
    /// The commit may be sent again.
    UnknownTransactionCommitResult,
    /// The write may be sent again under the same transaction number.
    RetryableWriteError,
    /// The change stream may be resumed.
    ResumableChangeStreamError,
    /// Nothing of the write happened.
    NoWritesPerformed,
}

impl Label {
    /// The label's spelling on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Label::TransientTransactionError => "TransientTransactionError",
            Label::UnknownTransactionCommitResult => "UnknownTransactionCommitResult",
            Label::RetryableWriteError => "RetryableWriteError",
            Label::ResumableChangeStreamError => "ResumableChangeStreamError",
            Label::NoWritesPerformed => "NoWritesPerformed",
        }
    }
}

impl Error {
    /// An error with a code and a message for people.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let message = message.into();
        Error(Box::new(Inner { code, message, labels: Vec::new(), details: None }))
    }

    /// An error of one check, known by its location number.
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

    /// `CommandNotSupported` (115): known to MongoDB, not built here yet; `feature` names it.
    pub fn not_built(feature: &str) -> Self {
        Error::new(ErrorCode::CommandNotSupported, format!("{feature} is not supported yet"))
    }

    /// `InternalError` (1): a broken invariant, never the client's fault.
    pub fn internal(message: impl Into<String>) -> Self {
        Error::new(ErrorCode::InternalError, message)
    }

    /// Returns the code.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// The text for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The labels, in the order in which they were added.
    pub fn labels(&self) -> &[Label] {
        &self.0.labels
    }

    /// A BSON document whose fields (`keyPattern`, `keyValue`, `errInfo`) join the reply.
    pub fn details(&self) -> Option<&[u8]> {
        self.0.details.as_deref()
    }

    /// The same error with a label more.
    pub fn with_label(mut self, label: Label) -> Self {
        if !self.0.labels.contains(&label) {
            self.0.labels.push(label);
        }
        self
    }

    /// The same error with a BSON document of details; its fields join the reply.
    pub fn with_details(mut self, bson: impl Into<Vec<u8>>) -> Self {
        self.0.details = Some(bson.into());
        self
    }

    /// The same error with `context: ` (MongoDB writes `context :: caused by :: `) in front.
    pub fn context(mut self, context: &str) -> Self {
        self.0.message = format!("{context} :: caused by :: {}", self.0.message);
        self
    }

    /// The same error with another text.
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
