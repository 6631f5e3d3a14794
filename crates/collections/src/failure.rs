//! Converts failures of the engine to MongoDB's errors, and keeps conflicts apart so that callers
//! can retry them.

use quire_error::{Error, ErrorCode, Label};
use quire_storage::{Conflict, Interruption, StorageError};

/// The failure of a write attempt.
#[derive(Debug)]
pub enum Failure {
    /// Another transaction committed first or holds the key. Nothing was written. Outside a
    /// client's transaction the write is retried.
    Conflict(Box<Conflict>),
    /// An error that a retry would meet again.
    Error(Error),
}

/// The result of one attempt to write.
pub type Attempt<T> = Result<T, Failure>;

impl Failure {
    /// Returns the error inside, if it is not a conflict.
    pub fn error(&self) -> Option<&Error> {
        match self {
            Failure::Conflict(_) => None,
            Failure::Error(error) => Some(error),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Conflict(conflict) => Failure::Conflict(conflict),
            other => Failure::Error(from_storage(other)),
        }
    }
}

impl From<Interruption> for Failure {
    fn from(why: Interruption) -> Self {
        Failure::Error(from_interruption(why))
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Conflict(_) => write_conflict(),
            Failure::Error(error) => error,
        }
    }
}

fn write_conflict() -> Error {
    Error::new(
        ErrorCode::WriteConflict,
        "Caused by :: Write conflict during plan execution and yielding is disabled. :: Please retry your operation or multi-document transaction.",
    )
}

/// Returns MongoDB's error for a failure of the engine.
pub fn from_storage(error: StorageError) -> Error {
    match error {
        StorageError::Conflict(_) => write_conflict(),
        StorageError::Duplicate(_) => Error::internal("a duplicate key was not expected here"),
        StorageError::SnapshotTooOld => Error::new(
            ErrorCode::SnapshotTooOld,
            "the snapshot of this operation is no longer available",
        ),
        StorageError::TooLarge => Error::new(
            ErrorCode::TransactionTooLarge,
            "the write is larger than the storage engine can commit at once",
        ),
        StorageError::Corruption { place } => Error::new(
            ErrorCode::DataCorruptionDetected,
            format!("stored data is damaged: {place}"),
        ),
        StorageError::Full => Error::new(
            ErrorCode::OutOfDiskSpace,
            "the disk is nearly full: writes of new data are refused until space is freed",
        ),
        StorageError::Io(text) => Error::internal(format!("I/O error: {text}")),
        // This error says that the server has stepped down, so a driver looks for a new primary.
        StorageError::Unavailable(why) => Error::new(
            ErrorCode::NotWritablePrimary,
            format!("not primary: the storage engine does not serve: {why}"),
        ),
        StorageError::OutcomeUnknown(why) => {
            let text = format!("the outcome of the commit is unknown: {why}");
            Error::new(ErrorCode::UnknownError, text)
                .with_label(Label::UnknownTransactionCommitResult)
        }
        StorageError::Closed => {
            Error::new(ErrorCode::InterruptedAtShutdown, "the storage engine is closed")
        }
        StorageError::Interrupted(why) => from_interruption(why),
        StorageError::Unsupported(what) => {
            Error::new(ErrorCode::IllegalOperation, format!("the storage engine has no {what}"))
        }
    }
}

/// Returns true if the failed operation may have succeeded nevertheless.
pub fn is_in_doubt(error: &Error) -> bool {
    error.labels().contains(&Label::UnknownTransactionCommitResult)
}

/// Returns MongoDB's error for an interrupted operation.
pub fn from_interruption(why: Interruption) -> Error {
    match why {
        Interruption::Killed => Error::new(ErrorCode::Interrupted, "operation was interrupted"),
        Interruption::DeadlineExceeded => {
            Error::new(ErrorCode::MaxTimeMSExpired, "operation exceeded time limit")
        }
        Interruption::Disconnected => Error::new(
            ErrorCode::ClientDisconnect,
            "operation was interrupted because a client disconnected",
        ),
        Interruption::TransactionExpired => Error::new(
            ErrorCode::TransactionExceededLifetimeLimitSeconds,
            "operation was interrupted because the transaction exceeded the configured 'transactionLifetimeLimitSeconds'",
        ),
        Interruption::ShuttingDown => Error::new(
            ErrorCode::InterruptedAtShutdown,
            "operation was interrupted because the server is shutting down",
        ),
    }
}
