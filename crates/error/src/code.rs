//! The error code: its number, its name and its classes in MongoDB.

use std::borrow::Cow;
use std::fmt;

/// A MongoDB error code. Codes with a name are associated constants (`ErrorCode::BadValue`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ErrorCode(pub(crate) i32);

/// A group of codes that clients and the server handle in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The network failed between two processes.
    NetworkError,
    /// The operation was interrupted: killed, timed out, shut down.
    Interruption,
    /// The server is not (or no longer) a primary.
    NotPrimaryError,
    /// The server is shutting down.
    ShutdownError,
    /// A driver may retry the command once.
    RetriableError,
    /// A deadline passed.
    ExceededTimeLimitError,
    /// The cursor is no longer usable.
    CursorInvalidatedError,
    /// The write concern was not met or cannot be met. The write itself may have happened.
    WriteConcernError,
    /// The bytes or the document break a rule of BSON.
    ValidationError,
}

impl ErrorCode {
    /// Returns a location code: the number of one check, named `Location<number>`.
    pub const fn location(number: i32) -> Self {
        ErrorCode(number)
    }

    /// Returns the number that goes on the wire.
    pub const fn number(self) -> i32 {
        self.0
    }

    /// Returns MongoDB's name of the code, or `Location<number>` for a code without a name.
    pub fn name(self) -> Cow<'static, str> {
        match crate::codes::NAMES.binary_search_by_key(&self.0, |row| row.0) {
            Ok(at) => Cow::Borrowed(crate::codes::NAMES[at].1),
            Err(_) => Cow::Owned(format!("Location{}", self.0)),
        }
    }

    /// Returns the code with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        crate::codes::NAMES.iter().find(|row| row.1 == name).map(|row| ErrorCode(row.0))
    }

    /// Returns true if the code belongs to `class`.
    pub fn is_a(self, class: ErrorClass) -> bool {
        match crate::codes::NAMES.binary_search_by_key(&self.0, |row| row.0) {
            Ok(at) => crate::codes::NAMES[at].2.contains(&class),
            Err(_) => false,
        }
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_names_are_unique() {
        let names = crate::codes::NAMES;
        assert!(names.is_sorted_by(|a, b| a.0 < b.0));
        for row in names {
            assert_eq!(ErrorCode::by_name(row.1), Some(ErrorCode(row.0)), "{}", row.1);
        }
    }

    #[test]
    fn names_and_classes() {
        assert_eq!(ErrorCode::BadValue.name(), "BadValue");
        assert_eq!(ErrorCode::location(16702).name(), "Location16702");
        assert_eq!(ErrorCode::location(11000), ErrorCode::DuplicateKey);
        assert!(ErrorCode::MaxTimeMSExpired.is_a(ErrorClass::ExceededTimeLimitError));
        assert!(!ErrorCode::location(16702).is_a(ErrorClass::Interruption));
        assert_eq!(format!("{:?}", ErrorCode::NamespaceNotFound), "NamespaceNotFound(26)");
    }
}
