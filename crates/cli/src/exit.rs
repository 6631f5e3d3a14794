//! Why the process ends with something else than 0: mongod's exit codes.

/// Options that are wrong, or don't go together.
pub(crate) const BAD_OPTIONS: u8 = 2;
/// An address is in use, or there is no such address.
pub(crate) const NETWORK: u8 = 48;
/// A check found something that is not mended.
pub(crate) const FOUND: u8 = 1;
/// The storage engine failed while the server ran.
pub(crate) const ABRUPT: u8 = 14;
/// The start or the work failed.
pub(crate) const FAILED: u8 = 100;

/// The end of the process, and what people read about it.
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
