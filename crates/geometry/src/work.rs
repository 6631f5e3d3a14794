//! Work that is counted, so that an operation can end within a geometry of many vertices; and the
//! two reasons for which parsing a geometry fails.

use quire_error::{Error, Result};

/// Counts units of work, of about ten nanoseconds each. Fails if the operation must end.
pub type Work<'w> = &'w dyn Fn(u32) -> Result<()>;

/// Why parsing a geometry failed.
#[derive(Debug)]
pub enum Fault {
    /// The value is no valid geometry, for the reason in the text.
    Invalid(String),
    /// The operation must end.
    Ended(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::Ended(error)
    }
}

impl From<Fault> for Error {
    /// Returns 2 BadValue for an invalid geometry.
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Invalid(text) => Error::bad_value(text),
            Fault::Ended(error) => error,
        }
    }
}

impl Fault {
    /// Returns the fault with a text before that of an invalid geometry.
    pub(crate) fn within(self, what: &str) -> Self {
        match self {
            Fault::Invalid(text) => Fault::Invalid(format!("{what}{text}")),
            ended @ Fault::Ended(_) => ended,
        }
    }
}

/// Returns the failure of an invalid geometry.
pub(crate) fn invalid<T>(text: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Invalid(text.into()))
}

/// Counts `units` for each of `count` steps.
pub(crate) fn each(count: usize, units: u32, work: Work<'_>) -> Result<()> {
    work(u32::try_from(count).unwrap_or(u32::MAX).saturating_mul(units))
}
