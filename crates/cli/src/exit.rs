//! The exit codes other than 0: those of mongod.

/// Invalid or contradictory options.
pub(crate) const BAD_OPTIONS: u8 = 2;
/// An address is in use, or does not exist.
pub(crate) const NETWORK: u8 = 48;
/// A check found a problem that was not repaired.
pub(crate) const FOUND: u8 = 1;
/// The storage engine failed while the server ran.
pub(crate) const ABRUPT: u8 = 14;
/// The start or the operation failed.
pub(crate) const FAILED: u8 = 100;

/// The exit code of the process and the message for people.
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }

    pub(crate) fn options(message: impl Into<String>) -> Failure {
        Failure::new(BAD_OPTIONS, message)
    }
}
