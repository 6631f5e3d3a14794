//! The error type: the error of a command with MongoDB's code and labels, or a failure before the
//! command ran.

use crate::results::VerboseBulkWriteResult;
use bson::{Bson, Document};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// The result of a fallible call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Error {
    /// The kind of the failure, with its details.
    pub kind: Box<ErrorKind>,
    labels: HashSet<String>,
}

/// The kinds of failures.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The database cannot be opened, or was not closed cleanly.
    #[non_exhaustive]
    Open {
        /// The reason of the failure.
        message: String,
    },
    /// A command was refused or failed.
    Command(CommandError),
    /// A write of one statement failed.
    Write(WriteFailure),
    /// Some documents of an `insert_many` were not inserted.
    InsertMany(InsertManyError),
    /// Some writes of a `bulk_write` failed.
    BulkWrite(BulkWriteError),
    /// A value cannot be serialized to BSON.
    BsonSerialization(bson::error::Error),
    /// A document does not match the collection's type.
    BsonDeserialization(bson::error::Error),
    /// An argument is invalid.
    #[non_exhaustive]
    InvalidArgument {
        /// The argument, and why it is invalid.
        message: String,
    },
    /// A reply does not have the expected form, which is a bug of Quire.
    #[non_exhaustive]
    InvalidResponse {
        /// What is wrong with it.
        message: String,
    },
    /// The operating system could not start a thread.
    #[non_exhaustive]
    Thread {
        /// The message of the system.
        message: String,
    },
    /// The client was shut down.
    Shutdown,
}

/// The error of a command.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CommandError {
    /// MongoDB's error code.
    pub code: i32,
    /// The name of the code.
    pub code_name: String,
    /// The message for people.
    pub message: String,
}

/// The error of a write.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum WriteFailure {
    /// The write was done, but is not as durable as requested.
    WriteConcernError(WriteConcernError),
    /// The write was not done.
    WriteError(WriteError),
}

/// Why a statement was not executed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WriteError {
    /// MongoDB's error code.
    pub code: i32,
    /// The message for people.
    pub message: String,
    /// Details: `errInfo` of the reply, which a validator sets.
    pub details: Option<Document>,
}

/// A write error, with the position of its document in the batch.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct IndexedWriteError {
    /// The document's position, from 0.
    pub index: usize,
    /// MongoDB's error code.
    pub code: i32,
    /// The message for people.
    pub message: String,
    /// Details: `errInfo` of the reply, which a validator sets.
    pub details: Option<Document>,
}

/// Why a write is not as durable as requested.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WriteConcernError {
    /// MongoDB's error code.
    pub code: i32,
    /// The name of the code.
    pub code_name: String,
    /// The message for people.
    pub message: String,
    /// Details: `errInfo` of the reply.
    pub details: Option<Document>,
}

/// The errors of an `insert_many`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct InsertManyError {
    /// The documents that were not inserted.
    pub write_errors: Option<Vec<IndexedWriteError>>,
    /// Set if the documents were inserted but are not as durable as requested.
    pub write_concern_error: Option<WriteConcernError>,
    /// The ids of the inserted documents, by position.
    pub inserted_ids: HashMap<usize, Bson>,
}

/// The errors of a `bulk_write`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct BulkWriteError {
    /// The failed writes, by position.
    pub write_errors: HashMap<usize, WriteError>,
    /// Set if the writes were done but are not as durable as requested.
    pub write_concern_errors: Vec<WriteConcernError>,
    /// The result of the writes that were done; for each write if verbose results were requested.
    pub partial_result: Option<VerboseBulkWriteResult>,
}

impl BulkWriteError {
    /// Returns the error of the first failed write, and its position.
    fn first(&self) -> Option<(usize, &WriteError)> {
        let first = self.write_errors.iter().min_by_key(|(place, _)| **place);
        first.map(|(place, error)| (*place, error))
    }
}

impl Error {
    fn new(kind: ErrorKind) -> Error {
        Error::with_labels(kind, HashSet::new())
    }

    pub(crate) fn with_labels(kind: ErrorKind, labels: HashSet<String>) -> Error {
        Error { kind: Box::new(kind), labels }
    }

    pub(crate) fn open(message: String) -> Error {
        Error::new(ErrorKind::Open { message })
    }

    pub(crate) fn thread(error: &std::io::Error) -> Error {
        Error::new(ErrorKind::Thread { message: error.to_string() })
    }

    pub(crate) fn shutdown() -> Error {
        Error::new(ErrorKind::Shutdown)
    }

    /// Returns the error of a stream over a database that keeps no changes.
    pub(crate) fn no_change_log() -> Error {
        let text = "there is no change log: open the database with OpenOptions::change_log(true)";
        Error::from_server(&quire_error::Error::location(40573, text))
    }

    pub(crate) fn invalid_argument(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::InvalidArgument { message: message.into() })
    }

    pub(crate) fn invalid_response(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::InvalidResponse { message: message.into() })
    }

    pub(crate) fn serialization(error: bson::error::Error) -> Error {
        Error::new(ErrorKind::BsonSerialization(error))
    }

    pub(crate) fn deserialization(error: bson::error::Error) -> Error {
        Error::new(ErrorKind::BsonDeserialization(error))
    }

    pub(crate) fn insert_many(error: InsertManyError, labels: HashSet<String>) -> Error {
        Error::with_labels(ErrorKind::InsertMany(error), labels)
    }

    pub(crate) fn bulk_write(error: BulkWriteError, labels: HashSet<String>) -> Error {
        Error::with_labels(ErrorKind::BulkWrite(error), labels)
    }

    /// Returns an error from before the command reached the database.
    pub(crate) fn from_server(error: &quire_error::Error) -> Error {
        Error::new(ErrorKind::Command(CommandError {
            code: error.code().number(),
            code_name: error.code().name().to_string(),
            message: error.message().to_owned(),
        }))
    }

    /// Returns MongoDB's error code, if the database replied with one.
    pub fn code(&self) -> Option<i32> {
        match &*self.kind {
            ErrorKind::Command(error) => Some(error.code),
            ErrorKind::Write(WriteFailure::WriteError(error)) => Some(error.code),
            ErrorKind::Write(WriteFailure::WriteConcernError(error)) => Some(error.code),
            ErrorKind::InsertMany(error) => {
                match (error.write_errors.as_deref(), &error.write_concern_error) {
                    (Some([first, ..]), _) => Some(first.code),
                    (_, Some(error)) => Some(error.code),
                    _ => None,
                }
            }
            ErrorKind::BulkWrite(error) => {
                let first = error.first().map(|(_, error)| error.code);
                first.or_else(|| error.write_concern_errors.first().map(|error| error.code))
            }
            _ => None,
        }
    }

    /// Returns the labels, which tell a program how it may react.
    pub fn labels(&self) -> &HashSet<String> {
        &self.labels
    }

    /// Returns true if the error has this label.
    pub fn contains_label(&self, label: impl AsRef<str>) -> bool {
        self.labels.contains(label.as_ref())
    }

    /// Returns true if a unique index refused the document (code 11000).
    pub fn is_duplicate_key(&self) -> bool {
        self.code() == Some(11000)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.kind {
            ErrorKind::Open { message } | ErrorKind::InvalidArgument { message } => {
                f.write_str(message)
            }
            ErrorKind::InvalidResponse { message } => write!(f, "unexpected reply: {message}"),
            ErrorKind::Command(error) => {
                write!(f, "{} ({} {})", error.message, error.code, error.code_name)
            }
            ErrorKind::Write(WriteFailure::WriteError(error)) => {
                write!(f, "{} ({})", error.message, error.code)
            }
            ErrorKind::Write(WriteFailure::WriteConcernError(error)) => {
                write!(f, "{} ({} {})", error.message, error.code, error.code_name)
            }
            ErrorKind::InsertMany(error) => insert_many(error, f),
            ErrorKind::BulkWrite(error) => bulk_write(error, f),
            ErrorKind::BsonSerialization(error) => write!(f, "not serializable: {error}"),
            ErrorKind::BsonDeserialization(error) => write!(f, "not deserializable: {error}"),
            ErrorKind::Thread { message } => write!(f, "cannot start a thread: {message}"),
            ErrorKind::Shutdown => f.write_str("the client was shut down"),
        }
    }
}

fn insert_many(error: &InsertManyError, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let failed = error.write_errors.as_deref().unwrap_or_default();
    if let [first, rest @ ..] = failed {
        write!(f, "document {}: {} ({})", first.index, first.message, first.code)?;
        if !rest.is_empty() {
            write!(f, ", and {} more", rest.len())?;
        }
        return Ok(());
    }
    match &error.write_concern_error {
        Some(error) => write!(f, "{} ({} {})", error.message, error.code, error.code_name),
        None => f.write_str("some documents were not inserted"),
    }
}

fn bulk_write(error: &BulkWriteError, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if let Some((place, first)) = error.first() {
        write!(f, "write {place}: {} ({})", first.message, first.code)?;
        return match error.write_errors.len() {
            1 => Ok(()),
            all => write!(f, ", and {} more", all - 1),
        };
    }
    match error.write_concern_errors.first() {
        Some(error) => write!(f, "{} ({} {})", error.message, error.code, error.code_name),
        None => f.write_str("some writes failed"),
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.kind {
            ErrorKind::BsonSerialization(error) | ErrorKind::BsonDeserialization(error) => {
                Some(error)
            }
            _ => None,
        }
    }
}
